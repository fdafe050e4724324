"""The page of `timeline`: who led the quorum, what brokers were, and when partitions lacked what they need."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import ROWS_MAX, Axis, Band, Bar, Bars, Chart, Key, Marker, Pen, Series, Strip, Strips
from fastquorum.pages.page import TABLE_ROWS_MAX, Part
from fastquorum.pages.scales import moment, seconds_of
from fastquorum.spark.pages.words import DRAWN_MAX, counted, heading_of, lasted, of_cluster, text, unproven

_CONDITIONS: Final = {"under_replicated": "under-replicated", "under_min_isr": "under min ISR", "offline": "offline"}
_PENS: Final = {"under_replicated": Pen.FIRST, "under_min_isr": Pen.SECOND, "offline": Pen.BAD}
_STATES: Final = (
    Key("active", Pen.GOOD),
    Key("in controlled shutdown", Pen.WARN),
    Key("unregistered", Pen.MUTED),
    Key("fenced", Pen.BAD),
)
_STATE_NUMBERS: Final = {key.name: nth for nth, key in enumerate(_STATES)}
_LEADER: Final = "quorum leader"
_MINUTE_MS: Final = 60_000
_EVENTS_MAX: Final = 40
_STRIPS_MAX: Final = 15
"""Most strips of each cluster, if there are several."""


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report with `events` and `clusters`."""
    scope = counted(len(report["clusters"]), "cluster")
    return Page(
        title=f"fastquorum report timeline, {scope}",
        heading="What happened?",
        subtitles=[f"fastquorum report timeline: {scope}. Times are UTC."],
        report=report,
        cards=list(_cards(report)),
        warnings=list(warnings_of(report)),
        sections=list(sections_of(report)),
    )


def warnings_of(report: dict[str, Any]) -> Iterator[str]:
    """Warn of clusters without a timeline, and of doubts about those that are drawn."""
    unchecked = [each for each in report["clusters"] if "unchecked" in each]
    for each in unchecked[:DRAWN_MAX]:
        yield f"{heading_of(each['cluster_id'])} has no timeline: {each['unchecked']}."
    if (more := len(unchecked) - DRAWN_MAX) > 0:
        yield f"No timeline either: {counted(more, 'more cluster')}; the JSON has all."
    for each in _worst_first(report)[:DRAWN_MAX]:
        yield from _doubts(each)


def sections_of(report: dict[str, Any]) -> Iterator[Section]:
    """A table of clusters, if there are several; the worst ones drawn."""
    clusters = _worst_first(report)
    if len(clusters) > 1:
        yield Section("Clusters, the worst first", [_overview(clusters)])
    events: dict[str | None, list[dict[str, Any]]] = {}
    for event in report["events"]:
        events.setdefault(event["cluster_id"], []).append(event)
    for each in clusters[:DRAWN_MAX]:
        parts = _cluster(each, events.get(each["cluster_id"], []), is_only=len(clusters) == 1)
        yield Section(heading_of(each["cluster_id"]), list(parts))
    if (more := len(clusters) - DRAWN_MAX) > 0:
        yield Section("", [Prose(f"Only in the table: {counted(more, 'more cluster')}; the JSON has all.")])


def _worst_first(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the clusters that have a timeline, the worst first."""
    return sorted((each for each in report["clusters"] if "unchecked" not in each), key=_badness, reverse=True)


def _badness(cluster: dict[str, Any]) -> tuple[int, ...]:
    return tuple(cluster["partitions"][f"{each}_ms"] for each in ("offline", "under_min_isr", "under_replicated"))


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    clusters = _worst_first(report)
    yield Card("clusters", text(len(report["clusters"])))
    if unchecked := len(report["clusters"]) - len(clusters):
        yield Card("without a timeline", text(unchecked), Pen.BAD)
    yield Card("brokers", text(sum(each["brokers"] for each in clusters)))
    yield Card("partitions", text(sum(each["partitions"]["count"] for each in clusters)))
    for event, label in ((_LEADER, "elections"), ("fenced", "times a broker was fenced")):
        yield Card(label, text(sum(each["events"].get(event, 0) for each in clusters)))
    for name, label in _CONDITIONS.items():
        total = sum(each["partitions"][f"{name}_ms"] for each in clusters)
        pen = None if not total else Pen.BAD if name == "offline" else Pen.WARN
        yield Card(f"partition time {label}", lasted(total) if total else "none", pen)


def _doubts(cluster: dict[str, Any]) -> Iterator[str]:
    name = of_cluster(cluster["cluster_id"])
    yield from unproven(cluster)
    if not cluster["is_whole"]:
        yield (
            f"{name}: what was before the log is not known; {cluster['unknown_partitions']:,} partitions changed "
            "before it says what they were."
        )
    if cluster["missing_records"]:
        yield (
            f"{name}: {cluster['missing_records']:,} records are missing from this log, or damaged, and no other is "
            f"without a hole; {cluster['unknown_partitions']:,} partitions changed before it says what they were."
        )
    if cluster["unreadable_records"]:
        count = cluster["unreadable_records"]
        yield f"{name}: {count:,} records cannot be read: damage, or a type or version unknown here."
    if cluster["clock_back_ms"]:
        back = lasted(cluster["clock_back_ms"])
        yield f"{name}: the clock went back, by {back} at most; it stands still for as long."


def _overview(clusters: Sequence[dict[str, Any]]) -> Table:
    header = ["cluster", "lasted", "brokers", "partitions", *_CONDITIONS.values(), "elections", "fenced"]
    rows = [
        [
            text(each["cluster_id"]),
            lasted(each["lasted_ms"]),
            text(each["brokers"]),
            text(each["partitions"]["count"]),
            *(lasted(each["partitions"][f"{name}_ms"]) for name in _CONDITIONS),
            text(each["events"].get(_LEADER, 0)),
            text(each["events"].get("fenced", 0)),
        ]
        for each in clusters
    ]
    return Table(header, rows)


# --- one cluster ------------------------------------------------------------------------------------------------------


def _cluster(cluster: dict[str, Any], events: Sequence[dict[str, Any]], *, is_only: bool) -> Iterator[Part]:
    begin_s, end_s = seconds_of(cluster["begin"]), seconds_of(cluster["end"])
    time = Axis("time, UTC", "time", (begin_s, end_s))
    at_end = cluster["partitions"]["at_end"]["count"]
    yield Prose(
        f"As node {text(cluster['node_id'])} has it: {_shortly(cluster['begin'])} to {_shortly(cluster['end'])}, "
        f"{lasted(cluster['lasted_ms'])}, up to offset {cluster['end_offset']:,}. "
        f"{counted(cluster['partitions']['count'], 'partition')}, {at_end:,} of them at the end."
    )
    leaders = [event for event in events if event["event"] == _LEADER]
    if leaders:
        yield _quorum(leaders, time, end_s)
    if cluster["strips"]:
        yield _brokers(cluster, time, begin_s, ROWS_MAX if is_only else _STRIPS_MAX)
    yield from _over_time(cluster, leaders, time)
    yield from _worst(cluster)
    if events:
        rows = [
            [_shortly(event["timestamp"]), text(event["offset"]), text(event["epoch"]), event["text"]]
            for event in events
        ]
        yield Table(
            ("time, UTC", "offset", "epoch", "what happened"),
            rows,
            left=(0, 3),
            rows_max=TABLE_ROWS_MAX if is_only else _EVENTS_MAX,
        )


def _shortly(iso: str) -> str:
    return moment(seconds_of(iso))


def _unit(times_ms: Iterable[int]) -> tuple[int, str]:
    return (_MINUTE_MS, "minutes") if max(times_ms) >= _MINUTE_MS else (1000, "seconds")


def _quorum(leaders: Sequence[dict[str, Any]], time: Axis, end_s: float) -> Strips:
    """A strip for each node that ever led."""
    begins = [seconds_of(event["timestamp"]) for event in leaders]
    led: dict[int, list[Band]] = {}
    for event, begin, end in zip(leaders, begins, [*begins[1:], end_s], strict=True):
        led.setdefault(event["node_id"], []).append(Band(begin, end, 0, f"leads in epoch {event['epoch']}"))
    marks = [Marker(begin, f"epoch {event['epoch']}") for begin, event in zip(begins, leaders, strict=True)]
    strips = [Strip(f"controller {node}", spans) for node, spans in sorted(led.items())]
    return Strips("quorum", "Who led the quorum", time, [Key("leads", Pen.FIRST)], strips, marks)


def _brokers(cluster: dict[str, Any], time: Axis, begin_s: float, rows_max: int) -> Strips:
    strips = []
    for each in cluster["strips"]:
        spans = [
            Band(begin_s + begin / 1000, begin_s + end / 1000, _STATE_NUMBERS[state])
            for state, begin, end in each["spans"]
        ]
        strips.append(Strip(f"broker {each['broker_id']}", spans))
    left_out = max(cluster["brokers"] - len(strips), 0)
    title = "What brokers were" + ("; those that were active for the shortest time" if left_out else "")
    return Strips("brokers", title, time, _STATES, strips, left_out=left_out, rows_max=rows_max)


def _over_time(cluster: dict[str, Any], leaders: Sequence[dict[str, Any]], time: Axis) -> Iterator[Chart]:
    curves = cluster["over_time"]
    marks = [Marker(seconds_of(event["timestamp"]), f"epoch {event['epoch']}") for event in leaders]
    series = [
        Series(label, _points(curves, name, time), is_step=True, pen=_PENS[name])
        for name, label in _CONDITIONS.items()
        if any(curves[name]["most"])
    ]
    if series:
        step = lasted(curves["step_ms"])
        title = f"Partitions that lacked something: the most at once in every {step}"
        yield Chart("partitions", title, time, Axis("partitions", "count"), series, marks)
    if cluster["brokers"] > len(cluster["strips"]):
        both = [
            Series("registered", _points(curves, "brokers", time), is_step=True),
            Series("active", _points(curves, "active_brokers", time, "mean"), is_step=True),
        ]
        yield Chart("broker-count", "Brokers, over time", time, Axis("brokers", "count"), both, marks)


def _points(curves: dict[str, Any], name: str, time: Axis, figure: str = "most") -> list[tuple[float, float]]:
    """A value for each step, and the last one at the end again."""
    begin_s, end_s = time.extent
    values = curves[name][figure]
    places = [min(begin_s + nth * curves["step_ms"] / 1000, end_s) for nth in range(len(values))]
    return [*zip(places, values, strict=True), (end_s, values[-1])]


def _worst(cluster: dict[str, Any]) -> Iterator[Bars]:
    for name, label in reversed(_CONDITIONS.items()):
        rows = cluster["worst_partitions"][name]
        if rows:
            unit_ms, unit = _unit(row[f"{name}_ms"] for row in rows)
            bars = [
                Bar(
                    f"{text(row['topic'] or row['topic_id'])}-{row['partition']}",
                    [row[f"{name}_ms"] / unit_ms],
                    f"{lasted(row[f'{name}_ms'])}, {lasted(row[f'longest_{name}_ms'])} at a stretch",
                )
                for row in rows
            ]
            key = Key(label, _PENS[name])
            yield Bars(f"worst-{name}", f"Partitions longest {label}", Axis(unit), [key], bars)
    if rows := cluster["worst_brokers"]:
        keys = [Key("fenced", Pen.BAD), Key("in controlled shutdown", Pen.WARN)]
        unit_ms, unit = _unit(row["fenced_ms"] for row in rows)
        bars = [
            Bar(
                f"broker {row['broker_id']}",
                [row["fenced_ms"] / unit_ms, row["controlled_shutdown_ms"] / unit_ms],
                f"{lasted(row['fenced_ms'])} fenced, {counted(row['bounces'], 'bounce')}",
            )
            for row in rows
        ]
        yield Bars("worst-brokers", "Brokers fenced longest", Axis(unit), keys, bars)
