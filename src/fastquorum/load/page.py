"""One self-contained HTML page of a result: figures, charts, machine, and the whole JSON. Nothing is fetched from
anywhere.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from fastquorum.load import svg
from fastquorum.load.chart import charts_of, load_name
from fastquorum.load.result import SWEEP_FORMAT, Result
from fastquorum.load.stolen import in_words

_STYLE: Final = """
body{font:15px/1.5 system-ui,'Segoe UI',Helvetica,Arial,sans-serif;color:#212529;max-width:940px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{margin:.3rem 0}
.cards{display:flex;flex-wrap:wrap;gap:.7rem;margin:1.2rem 0}
.card{border:1px solid #dee2e6;border-radius:8px;padding:.5rem .9rem;min-width:6.5rem}
.card b{display:block;font-size:1.25rem}.card span{color:#6c757d;font-size:.85rem}
.warn{background:#fff3bf;border-left:4px solid #e8a400;padding:.5rem .8rem;margin:.8rem 0}
table{border-collapse:collapse;font-size:.9rem}td,th{padding:.2rem .9rem .2rem 0;text-align:right;
border-bottom:1px solid #e9ecef}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto;display:block;margin:.8rem 0}
.facts td{text-align:left}pre{overflow:auto;max-height:30rem;background:#f8f9fa;padding:.8rem;font-size:.8rem}
"""
_LATENCIES: Final = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
_BULKY: Final = ("timeline", "histogram", "machine")


def page_of(result: Result) -> str:
    """The page."""
    is_sweep = result["format"] == SWEEP_FORMAT
    steps: Sequence[Result] = result["steps"] if is_sweep else [result]
    body = [
        f"<h1>fastquorum load{': sweep' if is_sweep else ''}</h1>",
        f"<p>{escape(_what(steps))}</p><p>{escape(result['started'])} · fastquorum {escape(result['version'])}</p>",
        *_warnings(steps),
        *_cards(result, is_sweep),
        *(svg.draw(chart) for chart in charts_of(result)),
        "<h2>Figures</h2>",
        *_table(_HEADER, [_row(step) for step in steps]),
        *_events(steps),
        "<h2>Machine</h2>",
        *_facts(result["machine"]),
        "<details><summary>Everything, as JSON</summary>",
        f"<pre>{escape(json.dumps(_slim(result), indent=1))}</pre></details>",
        f'<script type="application/json" id="result">{json.dumps(result).replace("</", "<" + chr(92) + "/")}</script>',
    ]
    title = f"fastquorum load, {result['started']}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


_HEADER: Final = ("load", "offered/s", "achieved/s", *(f"{label} us" for _, label in _LATENCIES), "errors")


def _row(step: Result) -> list[str]:
    figures = [f"{step['latency_us'][name]:,.0f}" for name, _ in _LATENCIES]
    errors = ", ".join(f"{kind} {count:,}" for kind, count in step["errors"].items()) or "none"
    return [load_name(step), f"{step['offered_per_s']:,.0f}", f"{step['achieved_per_s']:,.0f}", *figures, errors]


def _what(steps: Sequence[Result]) -> str:
    if not steps:
        return "Nothing was measured."
    plan = steps[0]["plan"]
    size = f"{plan['record_bytes']} B records" if plan["workload"] in ("values", "keys") else "metadata records"
    count = plan["records_per_append"]
    return (
        f"Workload {plan['workload']}, {size}, {count} to an append; driver {plan['driver']}"
        f"{', ' + plan['api'] + ' API' if plan['driver'] == 'embedded' else ''}; {plan['seconds']:g} s each."
    )


def _warnings(steps: Sequence[Result]) -> Iterator[str]:
    for step in steps:
        if step["generator_was_bottleneck"]:
            how = escape(f"{load_name(step)}: the generator was the bottleneck: {step['generator']['how']}.")
            yield f'<p class="warn">{how}</p>'
        if stolen := in_words(step.get("stolen_cpu_share")):
            yield f'<p class="warn">{escape(load_name(step))}: {stolen}.</p>'
    if any(step["interrupted"] for step in steps):
        yield '<p class="warn">The run was ended early.</p>'


def _cards(result: Result, is_sweep: bool) -> Iterator[str]:
    if is_sweep:
        knee, overload = result["knee"], result["overload"]
        cards = [("knee, records/s", f"{knee['achieved_per_s']:,.0f}" if knee else "not found")]
        if knee:
            cards += [("p50 there, us", f"{knee['latency_us']['p50']:,.0f}")]
            cards += [("p99 there, us", f"{knee['latency_us']['p99']:,.0f}")]
        if overload:
            cards.append(("kept when offered twice as much", f"{overload['achieved_over_knee']:.0%}"))
    else:
        cards = [("achieved, records/s", f"{result['achieved_per_s']:,.0f}")]
        cards.append(("offered, records/s", f"{result['offered_per_s']:,.0f}"))
        cards += [(f"{label}, us", f"{result['latency_us'][name]:,.0f}") for name, label in _LATENCIES]
        cards.append(("errors", f"{sum(result['errors'].values()):,}"))
    yield '<div class="cards">'
    for label, value in cards:
        yield f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>'
    yield "</div>"


def _events(steps: Sequence[Result]) -> Iterator[str]:
    rows = []
    for step in steps:
        rows += [[f"{each['t_s']:.2f}", f"kill -9 of node {each['node_id']}"] for each in step["kills"]]
        rows += [
            [f"{each['t_s']:.2f}", f"node {each['leader']} leads epoch {each['epoch']}"] for each in step["elections"]
        ]
    if rows:
        yield "<h2>What happened</h2>"
        yield from _table(("seconds", "event"), sorted(rows, key=lambda row: float(row[0])))


def _facts(machine: Mapping[str, Any]) -> Iterator[str]:
    yield '<table class="facts">'
    for name, value in machine.items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
    yield "</table>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(each)}</th>" for each in header) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table>"


def _slim(result: Result) -> Result:
    """Without what is drawn already."""
    slim = {name: value for name, value in result.items() if name not in _BULKY}
    if "steps" in slim:
        slim["steps"] = [_slim(step) for step in slim["steps"]]
    return slim
