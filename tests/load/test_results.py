"""What becomes of a result: the history, the comparison, charts and the page."""

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from fastquorum.cli.load.view import show
from fastquorum.errors import UsageError
from fastquorum.load.reports import files, history
from fastquorum.load.reports.chart import charts_of
from fastquorum.load.reports.compare import compare, differences
from fastquorum.load.reports.page import page_of
from fastquorum.load.result import Result
from fastquorum.load.runs import keeps_up
from fastquorum.load.stage import ended
from fastquorum.pages import document, svg
from fastquorum.pages.chart import Chart
from fastquorum.pages.frame import WIDTH
from fastquorum.pages.lines import HEIGHT
from fastquorum.pages.scales import Range, ranges
from fastquorum.pages.text import number
from tests.cli.conftest import Ran
from tests.load.results import result, sweep
from tests.pages.reading import looked_at

KILLED = {
    "kills": [{"t_s": 0.5, "node_id": 1}],
    "elections": [{"t_s": 1.2, "epoch": 2, "leader": 3}],
    "errors": {"killed": 7},
}


def series_of(chart: Chart) -> dict[str, list[tuple[float, float]]]:
    return {series.name: list(series.points) for series in chart.series}


# --- history and comparison -------------------------------------------------------------------------------------------


def test_a_history_keeps_every_result_and_reads_the_newest(tmp_path: Path) -> None:
    first, second = result(1000), result(2000)
    second["started"] = "2026-11-01T10:00:05+00:00"
    paths = [history.save(str(tmp_path / "h"), each) for each in (first, second, first)]
    assert len(set(paths)) == 3
    assert all(Path(path).name.startswith("20261101T1000") for path in paths)
    assert [history.read(path) for path in paths] == [first, second, first]
    assert history.read(str(tmp_path / "h")) == second


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is not a result"),
        ('{"format": "x/1"}', "is not a result"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str | None, expected: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=expected):
        history.read(str(path))


def test_an_empty_history_has_no_newest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no results"):
        history.read(str(tmp_path))


def test_a_comparison_is_b_over_a() -> None:
    lines = {line.figure: line for line in compare(result(latency_us=400), result(latency_us=800))}
    assert lines["p50_us"].ratio == pytest.approx(2, rel=0.01)
    assert lines["achieved_per_s"].ratio == 1
    assert lines["errors"].ratio is None  # none of none


def test_a_run_in_which_nothing_was_acknowledged_has_no_latencies(
    tmp_path: Path, fastquorum: Callable[..., Ran]
) -> None:
    none = dict.fromkeys(("p50", "p90", "p99", "p999", "max"))
    nothing = result(acknowledged=0, achieved_per_s=0.0) | {"latency_us": none}
    assert not keeps_up(nothing, result())
    with redirect_stdout(io.StringIO()) as printed:
        show(nothing)
    assert "p50 -  p90 -" in printed.getvalue()
    assert len(charts_of(nothing)) == 3
    assert len(charts_of(sweep() | {"steps": [nothing, *sweep()["steps"]]})) == 3
    for name, each in (("a.json", nothing), ("b.json", result())):
        (tmp_path / name).write_text(json.dumps(each))
    ran = fastquorum("load", "compare", tmp_path / "a.json", tmp_path / "b.json")
    assert ran.code == 0
    assert re.search(r"p50_us +- +\d", ran.out), ran.out


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (1, "no room", "ended with exit code 1: no room"),
        (5, "", "ended with exit code 5"),
        (-9, "", "was ended by SIGKILL"),
        (-7, "Bus error", "was ended by SIGBUS: Bus error"),
        (-200, "", "was ended by signal 200"),
    ],
)
def test_how_a_process_ended_is_said_in_words(code: int, words: str, expected: str) -> None:
    assert ended(code, words) == expected


def test_sweeps_are_compared_where_they_meet() -> None:
    lines = compare(sweep((1000.0, 2000.0, 4000.0)), sweep((2000.0, 4000.0, 8000.0)))
    assert {line.load for line in lines} == {"2,000/s", "4,000/s", "knee"}
    assert [line.ratio for line in lines if line.load == "knee"] == [2.0]


def test_what_else_differs_is_named() -> None:
    a, b = result(), result(generator_was_bottleneck=True)
    b["machine"]["kernel"] = "Linux 7"
    b["plan"]["seed"] = 9
    assert differences(a, a) == []
    assert differences(a, b) == [
        "kernel: Linux 6 / Linux 7",
        "seed: 1 / 9",
        "in B the generator was the bottleneck at 1,000/s",
    ]


def test_the_command_prints_ratios(tmp_path: Path, fastquorum: Callable[..., Ran]) -> None:
    paths = []
    for name, each in (("a", result(latency_us=400)), ("b", result(latency_us=800))):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(each))
    ran = fastquorum("load", "compare", *paths)
    assert ran.code == 0, ran.err
    assert re.search(r"p50_us +500 +999 +2\.00", ran.out), ran.out
    report = json.loads(fastquorum("load", "compare", *paths, "--format", "json").out)
    assert {line["figure"] for line in report["figures"]} >= {"p50_us", "p999_us", "offered_per_s", "achieved_per_s"}
    missing = fastquorum("load", "compare", paths[0], tmp_path / "none.json")
    assert missing.code == 2
    assert "none.json cannot be read" in missing.err


@pytest.mark.parametrize(
    ("more", "does"),
    [
        ({}, True),
        ({"achieved_per_s": 900.0}, False),
        ({"errors": {"overloaded": 5}}, False),
        ({"latency_us": 50_000}, False),
    ],
)
def test_beyond_the_knee_a_load_is_not_kept_up_with(more: dict[str, Any], does: bool) -> None:
    assert keeps_up(result(**more), result()) is does


# --- charts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [result(), result(**KILLED), sweep(), result(acknowledged=0, timeline=[])])
def test_every_chart_is_drawn_whole(made: Result, tmp_path: Path) -> None:
    for chart, path in zip(charts_of(made), files.write_charts(str(tmp_path), made, "svg"), strict=True):
        root = ET.parse(path).getroot()
        texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {chart.title, chart.x.label, chart.y.label} <= set(texts)
        assert {series.name for series in chart.series} <= set(texts)
        for mark in chart.marks:
            assert mark.label in texts
        for path_element in root.iter("{http://www.w3.org/2000/svg}path"):
            for across, down in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path_element.get("d", "")):
                assert 0 <= float(across) <= WIDTH
                assert 0 <= float(down) <= HEIGHT


def test_the_chart_by_percentile_says_what_the_result_says() -> None:
    made = result()
    (points,) = series_of(charts_of(made)[0]).values()
    by_nines = dict(points)
    assert max(by_nines.values()) == made["latency_us"]["max"]
    assert next(value for nines, value in points if nines >= 2) == pytest.approx(made["latency_us"]["p50"], rel=0.01)
    assert [value for _, value in points] == sorted(value for _, value in points)


def test_the_timeline_marks_kills_and_elections() -> None:
    _, rate, latency = charts_of(result(**KILLED))
    for chart in (rate, latency):
        assert [(mark.x, mark.label, mark.is_bad) for mark in chart.marks] == [
            (0.5, "kill -9 of node 1", True),
            (1.2, "node 3 leads epoch 2", False),
        ]
    assert [value for _, value in series_of(rate)["acknowledged"]] == pytest.approx([500.0] * 20)


def test_a_silence_breaks_the_line_of_latencies() -> None:
    made = result()
    made["timeline"] = [*made["timeline"][:5], {**made["timeline"][15], "span_s": 1.1}, *made["timeline"][16:]]
    drawn = svg.draw(charts_of(made)[2])
    lines = [each for each in re.findall(r'<path [^>]*d="([^"]+)"', drawn) if "L" in each]
    assert [line.count("M") for line in lines] == [2, 2, 2]


def test_a_sweep_is_drawn_over_its_load_with_the_knee() -> None:
    throughput, latency, percentiles = charts_of(sweep())
    assert series_of(throughput)["achieved"] == [(1000.0, 990.0), (2000.0, 1980.0), (4000.0, 3960.0)]
    assert [mark.x for mark in throughput.marks] == [2000.0]
    assert [at for at, _ in series_of(latency)["p99"]] == [1000.0, 2000.0, 4000.0]
    assert list(series_of(percentiles)) == ["1k/s", "2k/s", "4k/s"]


def test_ticks_lie_on_their_axis() -> None:
    for made in (result(), sweep()):
        for chart in charts_of(made):
            for axis in ranges(chart):
                ticks = axis.ticks()
                assert len(ticks) >= 2
                assert all(-1e-9 <= axis.place(tick.value) <= 1 + 1e-9 for tick in ticks)
                assert len({tick.label for tick in ticks}) == len(ticks)


def test_percentiles_are_labelled_as_such() -> None:
    chart = charts_of(result())[0]
    labels = [tick.label for tick in Range(chart.x, [1.0, 10_000.0]).ticks()]
    assert labels == ["0%", "50%", "75%", "90%", "99%", "99.9%", "99.99%"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.25"), (300, "300"), (1000, "1k"), (22_627, "22.63k"), (1.5e6, "1.5M")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (result(**KILLED), ["latency.png", "timeline-rate.png", "timeline-latency.png"]),
        (sweep(), ["throughput.png", "latency-over-load.png", "latency.png"]),
    ],
    ids=["a run", "a sweep"],
)
def test_png_charts_are_pictures(made: Result, names: list[str], tmp_path: Path) -> None:
    paths = files.write_charts(str(tmp_path), made, "png")
    assert [Path(path).name for path in paths] == names
    for path in paths:
        assert Path(path).read_bytes().startswith(b"\x89PNG")
        picture = imread(path)
        assert min(picture.shape[:2]) >= 200
        assert (picture != picture[0, 0]).any(), f"{path} shows nothing"


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [result(**KILLED), sweep(), result(generator_was_bottleneck=True, interrupted=True)])
def test_the_page_is_whole_and_fetches_nothing(made: Result) -> None:
    page = document(page_of(made))
    looked = looked_at(page)
    assert page.count("<svg") == 3
    assert "a <fast> one" in looked.words  # escaped
    within = re.search(r'id="result">(.*?)</script>', page, re.DOTALL)
    assert within is not None
    assert json.loads(within[1]) == made


def test_the_page_warns() -> None:
    page = document(page_of(result(generator_was_bottleneck=True, interrupted=True)))
    assert "the generator was the bottleneck: ticks began in time" in page
    assert "ended early" in page
    assert "kill -9 of node 1" in document(page_of(result(**KILLED)))
