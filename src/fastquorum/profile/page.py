"""One self-contained HTML page of a profile: the flame graph, time on and off the processor, syncs, what is missing."""

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from fastquorum.profile.report import PATH, Report, achieved, busiest, thread_name

_STYLE: Final = """
body{font:15px/1.5 system-ui,'Segoe UI',Helvetica,Arial,sans-serif;color:#212529;max-width:1230px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{margin:.3rem 0}
code{background:#f1f3f5;padding:.1rem .3rem}
table{border-collapse:collapse;font-size:.9rem}td,th{padding:.2rem 1.1rem .2rem 0;text-align:right;
border-bottom:1px solid #e9ecef}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto;display:block;margin:.8rem 0}
.bar{display:inline-block;width:240px;height:11px;background:#eef0f2;white-space:nowrap;font-size:0}
.bar i{display:inline-block;height:11px}.missing td{text-align:left}
pre{overflow:auto;max-height:30rem;background:#f8f9fa;padding:.8rem}
"""
_RUNNING, _READY, _BLOCKED = "#2b8a3e", "#e8a400", "#ced4da"


def page_of(report: Report, flame: str, waits: str) -> str:
    """The flame graphs as SVG: on a processor, and waiting."""
    body = [
        "<h1>fastquorum profile</h1>",
        f"<p><code>{escape(' '.join(report['command']))}</code></p>",
        f"<p>{escape(report['started'])} · fastquorum {escape(report['version'])} · {report['wall_s']:.1f} s, "
        f"{report['rate_hz']} samples a second · {achieved(report['load'])}</p>",
        "<h2>On the processor: Python and native frames</h2>",
        flame if report["sampled_s"] else "<p>No stacks were found; see what is missing, below.</p>",
        "<h2>Off the processor: what threads that run Python wait for</h2>",
        waits if report["waited_s"] else "<p>No stacks were found; see what is missing, below.</p>",
        *_commit(report["commit"]),
        "<h2>Time of each thread</h2>",
        f"<p>{_key(_RUNNING, 'running')} {_key(_READY, 'ready, but without a processor')} "
        f"{_key(_BLOCKED, 'off: waiting for something')}</p>",
        *(line for node in report["nodes"] for line in _node(node, report["wall_s"])),
        "<h2>Not in this profile</h2>",
        '<table class="missing">',
        *(
            f"<tr><td>{escape(each['what'])}</td><td>{escape(each['why'])}</td><td>{escape(each['hint'])}</td></tr>"
            for each in report["missing"]
        ),
        "</table>",
        "<details><summary>Everything, as JSON</summary>",
        f"<pre>{escape(json.dumps(report, indent=1))}</pre></details>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>fastquorum profile</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _key(colour: str, text: str) -> str:
    return f'<span class="bar" style="width:11px;background:{colour}"></span> {text} &nbsp;'


def _commit(commit: dict[str, Any] | None) -> Iterator[str]:
    if commit is None:
        return
    yield "<h2>A batch on the leader</h2>"
    yield f"<p>An append waits {commit['append_told_us']:,.0f} us on average.</p>"
    rows = [[title, f"{commit['mean_us'][name]:,.0f}", f"{commit['shares'][name]:.0%}"] for name, title in PATH]
    rows.append(["meanwhile: written to the end of its own sync", f"{commit['own_sync_us']:,.0f}", ""])
    rows.append(["meanwhile: sent to a majority's acknowledgement", f"{commit['majority_us']:,.0f}", ""])
    yield from _table(("", "mean us", "share"), rows)


def _node(node: dict[str, Any], wall_s: float) -> Iterator[str]:
    yield f"<h2>node {node['node_id']}, {node['role']}</h2>"
    if (sync := node["sync"]) is not None:
        yield (
            f"<p>A sync was under way {sync['share']:.0%} of the time: {sync['count']:,.0f} syncs, p50 "
            f"{sync['p50_us']:,.0f} us, p99 {sync['p99_us']:,.0f} us.</p>"
        )
    rows = []
    for row in busiest(node):
        times = [f"{row[name]:.2f}" if row[name] is not None else "" for name in ("running_s", "ready_s", "blocked_s")]
        rows.append([escape(thread_name(row)), _bar(row, wall_s), *times, f"{row['given_up']:,}", f"{row['taken']:,}"])
    header = ("thread", "", "running s", "ready s", "off s", "gave way", "had to")
    yield from _table(header, rows)


def _bar(row: dict[str, Any], wall_s: float) -> str:
    parts = ((row["running_s"], _RUNNING), (row["ready_s"] or 0.0, _READY))
    drawn = "".join(
        f'<i style="width:{min(seconds / max(wall_s, 1e-9), 1) * 240:.0f}px;background:{colour}"></i>'
        for seconds, colour in parts
    )
    return f'<span class="bar" style="background:{_BLOCKED}">{drawn}</span>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells are HTML."""
    yield "<table><tr>" + "".join(f"<th>{each}</th>" for each in header) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</table>"
