"""Charts: what is given is drawn, within the picture, and what is left out is told."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.pages import Page, Section, svg
from fastquorum.pages.chart import AnyChart, Axis, Band, Bar, Bars, Chart, Key, Marker, Pen, Series, Strip, Strips
from fastquorum.pages.frame import WIDTH
from fastquorum.pages.html_file import document
from fastquorum.pages.scales import Range
from fastquorum.pages.text import plain, shortened, visible

SVG = "{http://www.w3.org/2000/svg}"
STATES = [Key("active", Pen.GOOD), Key("fenced", Pen.BAD)]
BEGIN = 1_790_000_000.0


def drawn(chart: AnyChart) -> ET.Element:
    return ET.fromstring(svg.draw(chart))


def texts(root: ET.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def titles(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}title")]


def inks(root: ET.Element, pen: Pen) -> list[tuple[float, float]]:
    """Where rectangles of this colour begin, and how wide they are; the legend's aside."""
    rects = [each for each in root.iter(f"{SVG}rect") if each.get("class") == f"ink {pen}" and each.get("rx") is None]
    return [(float(each.get("x", "")), float(each.get("width", ""))) for each in rects]


def strips(*rows: list[Band], **more: int) -> Strips:
    time = Axis("time, UTC", "time", (BEGIN, BEGIN + 100))
    return Strips("s", "Brokers", time, STATES, [Strip(f"b{nth}", row) for nth, row in enumerate(rows)], **more)


def assert_inside(root: ET.Element) -> None:
    height = float(root.get("height", ""))
    for each in root.iter(f"{SVG}rect"):
        x, width = float(each.get("x", "0")), float(each.get("width", ""))
        assert x >= -0.1
        assert x + width <= WIDTH + 0.1
        assert float(each.get("y", "0")) + float(each.get("height", "")) <= height + 0.1
    for each in root.iter(f"{SVG}path"):
        for across, down in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", each.get("d", "")):
            assert -0.1 <= float(across) <= WIDTH + 0.1
            assert -0.1 <= float(down) <= height + 0.1


# --- bars -------------------------------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    root = drawn(Bars("b", "Worst", Axis("minutes"), [Key("offline", Pen.BAD)], [Bar("t-0", [30]), Bar("t-1", [15])]))
    (_, first), (_, second) = inks(root, Pen.BAD)
    assert first == pytest.approx(2 * second, rel=0.01)
    assert {"Worst", "minutes", "t-0", "t-1", "30", "15"} <= set(texts(root))
    assert "t-0: 30" in titles(root)


def test_parts_of_a_bar_follow_one_another() -> None:
    root = drawn(Bars("b", "Brokers", Axis("min"), STATES, [Bar("b1", [10, 5], "15 in all")]))
    ((good, good_width),), ((bad, bad_width),) = inks(root, Pen.GOOD), inks(root, Pen.BAD)
    assert bad == pytest.approx(good + good_width, abs=0.2)
    assert good_width == pytest.approx(2 * bad_width, rel=0.01)
    assert titles(root) == ["b1: active: 10", "b1: fenced: 5"]


def test_bars_may_go_below_nothing() -> None:
    root = drawn(Bars("b", "Change", Axis("%"), STATES[:1], [Bar("p50", [-10]), Bar("p99", [20])]))
    (down, down_width), (up, _) = inks(root, Pen.GOOD)
    assert down + down_width == pytest.approx(up, abs=0.2)


def test_more_rows_than_can_be_told_apart_are_left_out_and_told() -> None:
    bars = Bars("b", "Brokers", Axis("leaders"), STATES[:1], [Bar(f"b{each}", [each]) for each in range(1000)])
    assert len(inks(drawn(bars), Pen.GOOD)) == 39  # the first is 0 long
    assert (svg.cut_off(bars), svg.left_out(bars)) == (960, 0)
    many = strips(*[[Band(BEGIN, BEGIN + 9, 0)]] * 50, left_out=5)
    assert (svg.cut_off(many), svg.left_out(many)) == (10, 5)
    chart = Chart("c", "c", Axis("x"), Axis("y"), [])
    assert (svg.cut_off(chart), svg.left_out(chart)) == (0, 0)


def test_a_long_name_is_cut_and_is_whole_in_its_title() -> None:
    name = "a-topic-whose-name-goes-on-and-on-and-on-and-on-17"
    root = drawn(Bars("b", "Worst", Axis("minutes"), STATES[:1], [Bar(name, [1])]))
    assert name in titles(root)
    assert any(each.endswith("on-17") and "…" in each for each in texts(root))


# --- strips -----------------------------------------------------------------------------------------------------------


def test_a_strip_shows_what_something_was_and_for_how_long() -> None:
    root = drawn(strips([Band(BEGIN, BEGIN + 50, 0), Band(BEGIN + 50, BEGIN + 100, 1)]))
    ((good, good_width),), ((bad, bad_width),) = inks(root, Pen.GOOD), inks(root, Pen.BAD)
    assert good_width == pytest.approx(bad_width, abs=0.2)
    assert bad == pytest.approx(good + good_width, abs=0.2)
    assert "b0: fenced, 2026-09-21 14:14:10.000 to 14:15:00.000, 50 s" in titles(root)
    assert {"b0", "active", "fenced", "time, UTC"} <= set(texts(root))


def test_however_short_something_was_it_is_seen() -> None:
    root = drawn(strips([Band(BEGIN, BEGIN + 100, 0), Band(BEGIN + 99.9999, BEGIN + 100, 1)]))
    ((at, width),) = inks(root, Pen.BAD)
    assert width >= 1
    assert at + width <= WIDTH


def test_ten_thousand_spans_are_thinned_out_and_the_worst_stay() -> None:
    many = [Band(BEGIN + each / 100, BEGIN + (each + 1) / 100, 0) for each in range(9_999)]
    root = drawn(strips([*many[:5000], Band(BEGIN + 50, BEGIN + 50.01, 1), *many[5001:]]))
    assert titles(root) == ["b0: active, 9,998 times, 99.98 s in all", "b0: fenced, 1 times, 0.01 s in all"]
    (path,) = (each.get("d", "") for each in root.iter(f"{SVG}path") if each.get("class") == "ink bad")
    assert path.count("M") == 1
    assert 1 <= float(re.findall(r"h([\d.]+)", path)[0]) < 10


def test_labels_of_marks_do_not_cover_each_other() -> None:
    marks = [Marker(BEGIN + each * 1.6, f"epoch {each}") for each in range(60)]
    chart = strips([Band(BEGIN, BEGIN + 100, 0)])
    root = drawn(Strips(chart.name, chart.title, chart.x, chart.keys, chart.strips, marks))
    labels = [each for each in texts(root) if each.startswith("epoch")]
    assert labels[0] == "epoch 0"
    assert 5 < len(labels) < 20
    many = [Marker(BEGIN + each / 100, f"epoch {each}") for each in range(1000)]
    assert not any("epoch" in each for each in texts(drawn(Strips("s", "S", chart.x, STATES, chart.strips, many))))


# --- lines ------------------------------------------------------------------------------------------------------------


def test_steps_hold_until_the_next_and_can_be_pointed_at() -> None:
    points = [(BEGIN, 0.0), (BEGIN + 10, 3.0), (BEGIN + 20, 3.0), (BEGIN + 30, 3.0)]
    time = Axis("time", "time")
    root = drawn(Chart("c", "Offline", time, Axis("partitions", "count"), [Series("offline", points, is_step=True)]))
    paths = [each.get("d", "") for each in root.iter(f"{SVG}path") if each.get("class") == "pen s0"]
    assert any(re.fullmatch(r"M[\d. ]+H[\d.]+V[\d.]+H[\d.]+", path) for path in paths), paths
    assert titles(root) == ["2026-09-21 14:13:20.000: offline 0", "2026-09-21 14:13:30.000: offline 3"]


@pytest.mark.parametrize("top", [1, 2, 3, 7, 1000])
def test_what_is_counted_has_whole_ticks(top: int) -> None:
    ticks = [tick.value for tick in Range(Axis("n", "count"), [0.0, float(top)]).ticks()]
    assert ticks == [int(each) for each in ticks]
    assert 2 <= len(ticks) <= 8


def test_a_log_that_begins_late_is_drawn_from_there() -> None:
    axis = Range(Axis("offset", "count", has_zero=False), [123_400_000.0, 123_500_000.0])
    assert (axis.place(123_400_000), axis.place(123_500_000)) == (0, 1)
    labels = [tick.label for tick in axis.ticks()]
    assert labels == ["123,400,000", "123,420,000", "123,440,000", "123,460,000", "123,480,000", "123,500,000"]
    assert Range(Axis("offset", "count", has_zero=False), [7.0, 7.0]).place(7) == 0


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 4e9), st.floats(0, 3e9))
def test_ticks_of_time_lie_within_and_are_few(begin: float, lasted: float) -> None:
    axis = Range(Axis("time", "time"), [begin, begin + lasted])
    ticks = axis.ticks()
    assert len(ticks) <= 9
    assert all(-1e-3 <= axis.place(tick.value) <= 1 + 1e-3 for tick in ticks)
    whole, date = set(), ""
    for tick in ticks:  # the date stands where it changes
        date = tick.label.rpartition(" ")[0] or date
        whole.add(f"{date} {tick.label.rpartition(' ')[2]}")
    assert len(whole) == len(ticks)


@pytest.mark.parametrize(
    ("lasted", "labels"),
    [
        (0.004, ["09-21 14:13:20.000", "14:13:20.001", "14:13:20.002", "14:13:20.003", "14:13:20.004"]),
        (60, ["09-21 14:13:20", "14:13:30", "14:13:40", "14:13:50", "14:14:00", "14:14:10", "14:14:20"]),
        (86_400, ["09-21 18:00", "09-22 00:00", "06:00", "12:00"]),
        (6 * 86_400, ["2026-09-22", "2026-09-23", "2026-09-24", "2026-09-25", "2026-09-26", "2026-09-27"]),
    ],
)
def test_times_are_as_exact_as_they_need_to_be(lasted: float, labels: list[str]) -> None:
    assert [tick.label for tick in Range(Axis("t", "time"), [BEGIN, BEGIN + lasted]).ticks()] == labels


# --- all of them ------------------------------------------------------------------------------------------------------

VALUES = st.floats(-1e12, 1e12, allow_nan=False) | st.integers(0, 5).map(float)
SCALES = st.sampled_from(["linear", "count", "log", "percentile", "time"])


@st.composite
def charts(draw: st.DrawFn) -> AnyChart:
    kind, label = draw(st.integers(0, 2)), st.text(max_size=50)
    if kind == 0:
        points = st.lists(st.tuples(st.floats(0, 4e9), VALUES | st.just(float("nan"))), max_size=6)
        series = st.builds(Series, label, points, st.booleans(), st.booleans(), st.booleans())
        marks = st.lists(st.builds(Marker, st.floats(0, 4e9), label, st.booleans()), max_size=3)
        x, y = Axis(draw(label), draw(SCALES)), Axis(draw(label), draw(SCALES.filter(lambda each: each != "time")))
        return Chart("c", draw(label), x, y, draw(st.lists(series, max_size=3)), draw(marks))
    if kind == 1:
        bars = st.lists(st.builds(Bar, label, st.tuples(VALUES, VALUES), label), max_size=5)
        return Bars("b", draw(label), Axis(draw(label)), STATES, draw(bars))
    edges = st.tuples(st.floats(0, 4e9), st.floats(0, 4e9)).map(sorted)
    spans = st.lists(st.builds(lambda ends, key, text: Band(*ends, key, text), edges, st.integers(0, 1), label))
    rows = draw(st.lists(st.builds(Strip, label, spans), max_size=3))
    return Strips(
        "s",
        draw(label),
        Axis(draw(label), draw(st.sampled_from(["time", "count"])), has_zero=draw(st.booleans())),
        STATES,
        rows,
    )


@settings(max_examples=300, deadline=None)
@given(charts())
def test_whatever_is_drawn_stays_within_its_picture(chart: AnyChart) -> None:
    assert_inside(drawn(chart))


# --- text -------------------------------------------------------------------------------------------------------------


@given(st.text(), st.integers(3, 40))
def test_what_is_cut_is_no_longer_than_allowed_and_all_visible(text: str, length: int) -> None:
    short = shortened(text, length)
    assert len(short) <= length
    assert short.isprintable()
    assert visible(visible(text)) == visible(text)


def test_charts_over_time_stand_in_line_on_a_page_and_ids_are_not_cut_off() -> None:
    ids = ["WWWWWWWWWWWWWWWWWWWWWW", "usACA5tBSrKS64DhDt4jig"]
    time = Axis("time, UTC", "time", (0.0, 50_000.0))
    spans = [Band(at * 500.0, at * 500.0 + 300, 0) for at in range(90)]
    strips = Strips("q", "Over time", time, [Key("k", Pen.BAD)], [Strip(each, spans) for each in ids])
    lines = Chart("l", "Partitions", time, Axis("partitions"), [Series("s", [(0.0, 1.0), (50_000.0, 2.0)])])
    narrow = Strips("n", "Few", time, [Key("k", Pen.BAD)], [Strip("a", spans[:1])])
    page = Page(title="t", heading="h", subtitles=[], report={}, sections=[Section("s", [strips, lines, narrow])])
    text = document(page)
    places = re.findall(r'<path class="grid" d="M([\d.]+) [\d.]+V', text)
    assert {places.count(each) for each in places} == {3}, "each time has one place on all three"
    assert "e+0" not in text
    right = {float(each) for each in re.findall(r'<text class="end" x="([\d.]+)"[^>]*>W', text)}
    assert min(right) > 22 * 11.5, "22 of the widest characters fit"


@pytest.mark.parametrize(
    ("value", "text"),
    [(27_000.0, "27,000"), (12_345.6, "12,346"), (0.25, "0.25"), (0.0, "0"), (1e16, "10,000,000,000,000,000")],
)
def test_figures_have_no_powers_of_ten(value: float, text: str) -> None:
    assert plain(value) == text
