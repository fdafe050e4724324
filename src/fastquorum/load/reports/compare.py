"""Two results side by side, as ratios. Only what was measured on the same machine, one soon after the other, can be
told apart from the machine's own moods: what differs beside the figures is named.
"""

from typing import Any, Final, NamedTuple

from fastquorum.load.result import Result
from fastquorum.load.runs import steps_of
from fastquorum.load.stolen import in_words

_MACHINE: Final = ("cpu", "cpus", "kernel", "file_system", "python", "version", "commit", "build_kind")
_LATENCIES: Final = ("p50", "p90", "p99", "p999", "max")


class ComparedFigure(NamedTuple):
    """A figure of both, None where a run has none; `ratio` is B over A, None where one has none, or A's is 0."""

    load: str
    figure: str
    a: float | None
    b: float | None
    ratio: float | None


def compare(a: Result, b: Result) -> list[ComparedFigure]:
    """Every figure of the loads that both have; of two single runs, whatever their loads."""
    pairs = _pairs(a, b)
    lines = []
    for load, one, other in pairs:
        figures = [(f"{name}_us", one["latency_us"][name], other["latency_us"][name]) for name in _LATENCIES]
        figures += [(name, one[name], other[name]) for name in ("offered_per_s", "achieved_per_s")]
        figures.append(("errors", sum(one["errors"].values()), sum(other["errors"].values())))
        if one.get("cpu_us_per_append") and other.get("cpu_us_per_append"):
            figures.append(("cpu_us_per_append", one["cpu_us_per_append"], other["cpu_us_per_append"]))
        lines += [ComparedFigure(load, name, x, y, y / x if x and y is not None else None) for name, x, y in figures]
    if a.get("knee") and b.get("knee"):
        x, y = a["knee"]["achieved_per_s"], b["knee"]["achieved_per_s"]
        lines.append(ComparedFigure("knee", "achieved_per_s", x, y, y / x if x else None))
    return lines


def differences(a: Result, b: Result) -> list[str]:
    """What else differs, in words: machine, build and plan."""
    found = []
    for name in _MACHINE:
        x, y = a["machine"].get(name), b["machine"].get(name)
        if x != y:
            found.append(f"{name}: {x} / {y}")
    one, other = steps_of(a)[0]["plan"], steps_of(b)[0]["plan"]
    found += [
        f"{name}: {one.get(name)} / {other.get(name)}"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
    for name, result in (("A", a), ("B", b)):
        slow = [_load_of(step) for step in steps_of(result) if step["generator_was_bottleneck"]]
        if slow:
            found.append(f"in {name} the generator was the bottleneck at {', '.join(slow)}")
        for step in steps_of(result):
            if stolen := in_words(step.get("stolen_cpu_share")):
                found.append(f"in {name} {stolen} at {_load_of(step)}")
    return found


def _pairs(a: Result, b: Result) -> list[tuple[str, Result, Result]]:
    ones, others = steps_of(a), steps_of(b)
    if len(ones) == len(others) == 1:
        name, second = _load_of(ones[0]), _load_of(others[0])
        return [(name if name == second else f"{name} / {second}", ones[0], others[0])]
    by_load: dict[str, Any] = {_load_of(step): step for step in others}
    return [(_load_of(step), step, by_load[_load_of(step)]) for step in ones if _load_of(step) in by_load]


def _load_of(step: Result) -> str:
    plan = step["plan"]
    return f"{plan['closed']} in flight" if plan["closed"] else f"{plan['records_per_s']:,.0f}/s"
