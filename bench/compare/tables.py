"""What was measured, as Markdown and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.compare.contenders import Contender
from bench.compare.goals import FIGURES, FLOOR, Verdict, over_floor, spread
from bench.compare.run import Slice, Taken
from bench.compare.syncs import SyncCount
from bench.compare.workload import Workload
from bench.measure import Spread
from bench.report import table

HEAD = ("who", "commits/s", "p50 us", "p99 us", "CPU us a commit", "rate / floor", "p50 / floor", "not sent, failed")


def workload_tables(taken: Taken, contenders: Sequence[Contender], workloads: Sequence[Workload]) -> list[str]:
    lines: list[str] = []
    for workload in workloads:
        rows: list[Sequence[str]] = [HEAD]
        for contender in contenders:
            slices = taken.slices.get((contender.name, workload.name))
            if slices:
                rows.append(_row(_shown(contender, taken.syncs.get(contender.name)), slices))
        floors = _floor_slices(taken, workload)
        if floors:
            rows.append(_row(FLOOR, floors))
        if len(rows) > 1:
            lines += ["", f"**{workload.name}**", "", *table(rows)]
    return lines


def _shown(contender: Contender, counted: SyncCount | None) -> str:
    return f"{contender.name} (not durable)" if counted and counted.is_durable is False else contender.name


def _floor_slices(taken: Taken, workload: Workload) -> list[Slice]:
    """The floor's own, from beside everybody's."""
    beside = (each for (_, name), slices in taken.slices.items() if name == workload.name for each in slices)
    return [Slice(each.round, each.floor, None) for each in beside if each.floor is not None]


def _row(name: str, slices: Sequence[Slice]) -> Sequence[str]:
    lost = sum(each.figures.not_sent + each.figures.errors for each in slices)
    sent = sum(each.figures.commits for each in slices)
    return (
        name,
        _with_range(spread(slices, "commits/s"), ",.0f"),
        _with_range(spread(slices, "p50"), ",.0f"),
        _with_range(spread(slices, "p99"), ",.0f"),
        f"{spread(slices, 'CPU us a commit').median:,.1f}",
        _with_range(over_floor(slices, "commits/s"), ".3g"),
        _with_range(over_floor(slices, "p50"), ".3g"),
        f"{lost / (lost + sent):.0%}" if lost else "",
    )


def _with_range(value: Spread | None, form: str) -> str:
    if value is None:
        return ""
    if value.low == value.high:  # a single round
        return f"{value.median:{form}}"
    return f"{value.median:{form}} ({value.low:{form}}-{value.high:{form}})"


def noise(taken: Taken) -> str:
    """How much of the machine others had. Empty where the kernel does not tell."""
    if not taken.stolen:
        return ""
    shares = ", ".join(f"{each:.0%}" for each in taken.stolen)
    return f"stolen by the hypervisor, of the CPU time wanted, round by round: {shares}"


def sync_table(taken: Taken, contenders: Sequence[Contender]) -> list[str]:
    rows: list[Sequence[str]] = [("who", "syncs a commit, each node", "durable", "what it is")]
    for contender in contenders:
        counted = taken.syncs.get(contender.name)
        if counted is not None:
            verdict = {True: "yes", False: "NOT durable", None: "not known"}[counted.is_durable]
            if counted.is_durable is None:
                verdict += f": {counted.why_unknown or 'it uses io_uring'}"
            per_commit = ", ".join(f"{each:.2f}" for each in counted.per_commit)
            rows.append((contender.name, per_commit, verdict, contender.note))
    return table(rows) if len(rows) > 1 else []


def goal_table(verdicts: Sequence[Verdict]) -> list[str]:
    rows: list[Sequence[str]] = [("goal", "reached", "")]
    for verdict in verdicts:
        reached = _with_range(verdict.value, ",.3g" if verdict.goal.over else ",.0f")
        outcome = "met" if verdict.met else "not decided" if verdict.value is None else "NOT met"
        rows.append((str(verdict.goal), reached, f"{outcome}: {verdict.why}" if verdict.why else outcome))
    return table(rows)


def report(
    taken: Taken, contenders: Sequence[Contender], workloads: Sequence[Workload], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    return {
        "contenders": [_contender(each, taken) for each in contenders if each.name not in taken.skipped],
        "skipped": [{"name": name, "why": why} for name, why in taken.skipped.items()],
        "lost": taken.failures,
        "stolen_cpu_share": taken.stolen,
        "results": list(_results(taken, workloads)),
        "goals": [
            {
                "goal": str(verdict.goal),
                "value": verdict.value._asdict() if verdict.value else None,
                "met": verdict.met if verdict.value else None,
                "why": verdict.why,
            }
            for verdict in verdicts
        ],
    }


def _contender(contender: Contender, taken: Taken) -> dict[str, Any]:
    counted = taken.syncs.get(contender.name)
    syncs = {"per_commit": list(counted.per_commit), "durable": counted.is_durable} if counted else None
    return {"name": contender.name, "role": contender.role, "note": contender.note, "syncs": syncs}


def _results(taken: Taken, workloads: Sequence[Workload]) -> Iterator[dict[str, Any]]:
    for workload in workloads:
        of_floor = _floor_slices(taken, workload)
        named = [(name, slices) for (name, done), slices in taken.slices.items() if done == workload.name]
        for name, slices in [*named, *([(FLOOR, of_floor)] if of_floor else [])]:
            yield {
                "workload": workload.name,
                "name": name,
                "figures": {figure: spread(slices, figure)._asdict() for figure in FIGURES},
                "over_floor": {
                    figure: ratio._asdict() for figure in FIGURES if (ratio := over_floor(slices, figure)) is not None
                },
                "rounds": [_slice(each) for each in slices],
            }


def _slice(each: Slice) -> dict[str, Any]:
    figures = each.figures
    return {
        "round": each.round,
        "commits": figures.commits,
        "seconds": figures.seconds,
        "errors": figures.errors,
        "error": figures.error,
        "not_sent": figures.not_sent,
        "cpu_us_by_process": dict(figures.cpu_us_by_process),
        "percentiles_us": {f"{rank:g}": us for rank, us in figures.percentiles_us.items()},
    }
