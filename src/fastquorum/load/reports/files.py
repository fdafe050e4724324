"""The files that a result is written to on request: HDR histograms, charts, the page."""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path

from fastquorum.load.hdr import Histogram, Interval, log_lines
from fastquorum.load.reports import png
from fastquorum.load.reports.chart import charts_of
from fastquorum.load.reports.page import page_of
from fastquorum.load.result import Result
from fastquorum.pages import document, svg
from fastquorum.pages.new_files import replaced_file
from fastquorum.trace import NodeTrace, Trace


def write_hdr(prefix: str, result: Result, intervals: Sequence[Interval]) -> list[str]:
    """`PREFIX.hlog`, the latencies by the second, and `PREFIX.hgrm`, all of them by percentile, in milliseconds."""
    started = datetime.datetime.fromisoformat(result["started"])
    plan = result["plan"]
    tag = f"{plan['driver']}, {plan['workload']}"
    paths = [f"{prefix}.hlog", f"{prefix}.hgrm"]
    contents = (log_lines(started, intervals, tag), Histogram.decode(result["histogram"]).percentile_lines())
    for path, lines in zip(paths, contents, strict=True):
        with replaced_file(path) as draft, open(draft, "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in lines)
    return paths


def write_charts(directory: str, result: Result, suffix: str) -> list[str]:
    """A file a chart; `suffix`: svg or png. UsageError if png needs matplotlib, and that is not installed."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for chart in charts_of(result):
        paths.append(os.path.join(directory, f"{chart.name}.{suffix}"))
        with replaced_file(paths[-1]) as draft:
            if suffix == "svg":
                Path(draft).write_text(svg.draw(chart) + "\n", encoding="utf-8")
            else:
                png.draw(chart, draft)
    return paths


def write_trace(path: str, traces: Sequence[NodeTrace]) -> str:
    """What the nodes recorded, for Perfetto."""
    with replaced_file(path) as draft:
        Trace(traces).write(draft)
    return path


def write_page(path: str, result: Result) -> str:
    with replaced_file(path) as draft, open(draft, "w", encoding="utf-8") as file:
        file.write(document(page_of(result)))
    return path
