"""What was measured, as JSON and as a table."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import Outcome, Role, Spread, Verdict


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "group": case.group,
        "case": case.name,
        "unit": case.unit.name,
        "contenders": [
            {"name": each.name, "role": str(each.role), **_spread(outcome.values[each.name])}
            for each in case.contenders
        ],
        "ratios": [{"of": ratio.of, "over": ratio.against, **_spread(ratio.ratio)} for ratio in outcome.ratios],
        "goals": [
            {
                "of": verdict.goal.of,
                "goal": str(verdict.goal),
                **_spread(verdict.value),
                "met": verdict.met,
            }
            for verdict in outcome.verdicts
        ],
    }


def kernel_table(outcomes: Sequence[Outcome]) -> list[str]:
    """A Markdown table, a case a line."""
    rows = [("work", "unit", "native", "pure", "native/pure", "yardsticks", "goal and what was reached")]
    for outcome in outcomes:
        case, values = outcome.case, outcome.values
        own = [f"{each.name} {_short(values[each.name].median)}" for each in case.contenders if each.role is Role.OWN]
        others = [
            f"{each.name} {_short(values[each.name].median)}"
            for each in case.contenders
            if each.role in (Role.PEER, Role.FLOOR)
        ]
        native, pure = values.get("native"), values.get("pure")
        over = next((_times(ratio.ratio) for ratio in outcome.ratios if ratio.against == "pure"), "")
        rows.append(
            (
                f"{case.group}, {case.name}",
                case.unit.name,
                _short(native.median) if native else "; ".join(own),
                _short(pure.median) if pure else "",
                over,
                ", ".join(others),
                "; ".join(_verdict(verdict, bool(own)) for verdict in outcome.verdicts),
            )
        )
    return table(rows)


def _verdict(verdict: Verdict, with_name: bool) -> str:
    name = f"{verdict.goal.of} " if with_name else ""
    value = _times(verdict.value) if verdict.goal.at_least else _short(verdict.value.median)
    return f"{name}{verdict.goal}: {value}, {'met' if verdict.met else 'NOT met'}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, columns aligned; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines = [f"| {' | '.join(cells)} |" for cells in padded]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def facts_lines(facts: dict[str, Any]) -> list[str]:
    build = facts["build"]
    return [
        f"{facts['date']}, commit {facts['commit']}, {facts['cpus']} x {facts['cpu']}, {facts['memory']}, "
        f"{facts['kernel']}, Python {facts['python']}",
        f"files on {facts['file_system']}; {facts['fsync']}; load average {facts['load_average']:.1f} at the start",
        f"kernels: {build['build_kind']}, {build['compiler']} {build['compiler_flags']}, CRC path {build['cpu_path']}; "
        + "peers: "
        + ", ".join(f"{name} {version or 'not installed'}" for name, version in facts["peers"].items()),
    ]


def _spread(spread: Spread) -> dict[str, float]:
    return {"median": spread.median, "low": spread.low, "high": spread.high}


def _times(spread: Spread) -> str:
    return f"{_short(spread.median)} x ({_short(spread.low)}-{_short(spread.high)})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def check_places(directory: str, save: str | None) -> None:
    """Before minutes are spent."""
    if not os.access(directory, os.W_OK | os.X_OK):
        raise SystemExit(f"bench: {directory} is no directory that can be written: name one with --directory")
    if save and not os.access(Path(save).absolute().parent, os.W_OK | os.X_OK):
        raise SystemExit(f"bench: {save} cannot be written: its directory must be there and writable")
