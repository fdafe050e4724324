"""The page of `audit-replicas`: which replica has what, and from where on it differs."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import Axis, Band, Bar, Bars, Key, Marker, Pen, Strip, Strips
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import DRAWN_MAX, counted, heading_of, listed, of_cluster, text

_VERDICTS: Final = {
    "same": Pen.GOOD,
    "behind": Pen.FIRST,
    "torn end": Pen.WARN,
    "stale tail": Pen.WARN,
    "uncommitted tail": Pen.WARN,
    "undecided": Pen.NEUTRAL,
    "divergent": Pen.BAD,
    "lacks committed records": Pen.BAD,
}
"""The worst last."""
_RANKS: Final = {verdict: nth for nth, verdict in enumerate(_VERDICTS)}
_KEYS: Final = (
    Key("as the majority has it", Pen.GOOD),
    Key("not known", Pen.NEUTRAL),
    Key("uncommitted or stale tail, torn end", Pen.WARN),
    Key("divergent", Pen.BAD),
)
_COLUMNS: Final = {
    "cluster_id": "cluster",
    "node_id": "node",
    "directory": "directory",
    "is_voter": "voter",
    "end_offset": "end",
    "committed_end": "committed",
    "verdict": "verdict",
    "offset": "from",
    "bytes": "bytes",
    "why": "why",
}
_WORDS: Final = ("cluster_id", "directory", "verdict", "why")
_AGREED, _UNKNOWN, _TAIL, _DIVERGENT = range(4)


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report that `pipelines.audit_replicas.as_report` made."""
    scope = counted(len(report["replicas"]), "replica")
    return Page(
        title=f"fastquorum audit replicas, {scope}",
        heading="Do the replicas hold the same bytes?",
        subtitles=[f"fastquorum audit replicas: {scope} of {counted(len(_clusters(report)), 'cluster')}."],
        report=report,
        cards=list(_cards(report)),
        warnings=list(warnings_of(report)),
        sections=list(sections_of(report)),
    )


def warnings_of(report: dict[str, Any]) -> Iterator[str]:
    """Each replica that is wrong, as far as one can read them."""
    for each in report["divergent"][:DRAWN_MAX]:
        yield (
            f"Node {text(each['replica'])} of {of_cluster(each['cluster_id'])} is divergent from offset "
            f"{each['offset']:,} on, {each['bytes']:,} bytes: {each['why']}. {each['directory']}"
        )
    if (more := len(report["divergent"]) - DRAWN_MAX) > 0:
        yield f"Divergent as well: {counted(more, 'more replica')}; see the JSON."
    for why in dict.fromkeys(each["why"] for each in report.get("lacking_committed", ())):
        replicas = [each for each in report.get("lacking_committed", ()) if each["why"] == why]
        nodes = listed([text(each["replica"]) for each in replicas])
        yield f"Nodes {nodes} of {of_cluster(replicas[0]['cluster_id'])} lack committed records: {why}."
    whys = [each["why"] for each in report["undecided"]]
    for why in list(dict.fromkeys(whys))[:DRAWN_MAX]:
        yield f"{counted(whys.count(why), 'replica')} cannot be judged: {why}."
    for note in report["notes"]:
        yield f"{note['text'][0].upper()}{note['text'][1:]}."


def sections_of(report: dict[str, Any]) -> Iterator[Section]:
    """Clusters, the worst first; then every replica."""
    clusters = _clusters(report)
    if len(report["replicas"]) > len(clusters[0][1] if clusters else ()):
        yield Section("All replicas, by verdict", [_overview(report["replicas"])])
    drawn = [each for each in clusters if len(clusters) == 1 or each[1][0]["verdict"] != "same"][:DRAWN_MAX]
    for cluster_id, replicas in drawn:
        yield Section(heading_of(cluster_id), list(_cluster(replicas)))
    if more := len(clusters) - len(drawn):
        what = "none of them is worse than these" if len(drawn) == DRAWN_MAX else "all their replicas hold the same"
        yield Section("", [Prose(f"Not drawn: {counted(more, 'more cluster')}; {what}.")])
    yield Section("Replicas, the worst first", [_table([each for _, replicas in clusters for each in replicas])])


def _clusters(report: dict[str, Any]) -> list[tuple[str | None, list[dict[str, Any]]]]:
    """By cluster, the worst first; in each too."""
    found: dict[str | None, list[dict[str, Any]]] = {}
    for each in report["replicas"]:
        found.setdefault(each["cluster_id"], []).append(each)
    for replicas in found.values():
        replicas.sort(key=lambda each: (-_RANKS[each["verdict"]], each["directory"]))

    def badness(cluster: tuple[str | None, list[dict[str, Any]]]) -> tuple[int, int, str]:
        worst = cluster[1][0]
        return (-_RANKS[worst["verdict"]], -worst["bytes"], cluster[0] or "")

    return sorted(found.items(), key=badness)


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    yield Card("replicas", text(len(report["replicas"])))
    yield Card("clusters", text(len(_clusters(report))))
    for name, label, pen in (
        ("divergent", "divergent", Pen.BAD),
        ("lacking_committed", "lacking committed records", Pen.BAD),
        ("undecided", "undecided", Pen.BAD),
        ("uncommitted_tails", "with an uncommitted tail", Pen.WARN),
        ("stale_tails", "with a stale tail", Pen.WARN),
        ("torn_ends", "with a torn end", Pen.WARN),
    ):
        count = len(report.get(name, ()))
        if not count and name in ("lacking_committed", "stale_tails", "torn_ends"):
            continue
        yield Card(label, text(count), pen if count else Pen.GOOD if name == "divergent" else None)


def _overview(replicas: Sequence[dict[str, Any]]) -> Bars:
    counts = [sum(each["verdict"] == verdict for each in replicas) for verdict in _VERDICTS]
    keys = [Key(verdict, pen) for verdict, pen in _VERDICTS.items()]
    bars = [
        Bar(verdict, [count if at == nth else 0 for at in range(len(keys))], text(count))
        for nth, (verdict, count) in enumerate(zip(_VERDICTS, counts, strict=True))
    ]
    return Bars("verdicts", "Replicas", Axis("replicas", "count"), keys, bars)


def _cluster(replicas: Sequence[dict[str, Any]]) -> Iterator[Part]:
    committed = replicas[0]["committed_end"]
    if committed is None:
        yield Prose("Nobody can tell what is committed: no majority of the voters' directories holds the same record.")
    else:
        wrong = sum(each["verdict"] == "divergent" for each in replicas)
        yield Prose(
            "Committed, by a majority of the voters' directories, a snapshot or a durable mark, up to offset "
            f"{committed:,}. {counted(len(replicas), 'replica')}, {wrong:,} divergent."
        )
    yield _strips(replicas, committed)
    wrongs = [each for each in replicas if each["bytes"]]
    if wrongs:
        kinds = sorted({each["verdict"] for each in wrongs})
        keys = [Key(kind, _VERDICTS[kind]) for kind in kinds]
        bars = [
            Bar(
                _name(each),
                [each["bytes"] * (each["verdict"] == kind) for kind in kinds],
                f"{each['bytes']:,} bytes from offset {each['offset']:,} on",
            )
            for each in wrongs
        ]
        yield Bars("bytes", "Bytes that the majority does not have", Axis("bytes"), keys, bars)


def _strips(replicas: Sequence[dict[str, Any]], committed: int | None) -> Strips:
    marks = [] if committed is None else [Marker(committed, f"committed, {committed:,}")]
    strips = [Strip(_name(each), list(_spans(each, committed))) for each in replicas]
    title = "Offsets of each replica, and whether the majority has them"
    return Strips("offsets", title, Axis("offset", "count", has_zero=False), _KEYS, strips, marks)


def _spans(replica: dict[str, Any], committed: int | None) -> Iterator[Band]:
    start, end, offset = replica["start_offset"] or 0, replica["end_offset"] or 0, replica["offset"]
    if committed is None:
        yield Band(start, end, _UNKNOWN)
        return
    agreed = end if offset is None else min(max(offset, start), end)
    if agreed > start:
        yield Band(start, agreed, _AGREED)
    if offset is not None:
        tails = dict.fromkeys(("uncommitted tail", "stale tail", "torn end"), _TAIL)
        what = {**tails, "undecided": _UNKNOWN}.get(replica["verdict"], _DIVERGENT)
        yield Band(agreed, max(end, agreed), what, f"{replica['bytes']:,} bytes")


def _name(replica: dict[str, Any]) -> str:
    return f"node {text(replica['node_id'])}, {replica['directory'].rstrip('/').rpartition('/')[2]}"


def _table(replicas: Sequence[dict[str, Any]]) -> Table:
    """Without the columns that say nothing."""
    columns = dict(_COLUMNS)
    if len({each["cluster_id"] for each in replicas}) == 1:
        del columns["cluster_id"]
    if not any(each["why"] for each in replicas):
        del columns["why"]
    rows = [[text(each[name]) for name in columns] for each in replicas]
    left = [nth for nth, name in enumerate(columns) if name in _WORDS]
    return Table(list(columns.values()), rows, left=left)
