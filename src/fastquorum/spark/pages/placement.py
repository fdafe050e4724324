"""The page of `placement`: how leaders and replicas lie, what each loss would do, and what moves would repair."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import ROWS_MAX, Axis, Bar, Bars, Chart, Key, Pen, Series
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import DRAWN_MAX, counted, heading_of, of_cluster, text, unproven

MOVES_MAX: Final = 2000
LOSSES_MAX: Final = 200
"""Most losses of each cluster in a report that becomes a page."""
_WRONG: Final = {
    "offline": "offline",
    "under_min_isr": "under min ISR",
    "under_replicated": "under-replicated",
    "rack_violations": "sharing a rack",
}
_FIGURES: Final = {
    **_WRONG,
    "replicas_on_inactive": "replicas on brokers that are not active",
    "not_led_by_preferred": "not led by the preferred replica",
    "moving": "being reassigned",
}
_KEYS: Final = [Key("leads", Pen.FIRST), Key("follows", Pen.MUTED)]


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report that `pipelines.placement.as_report` made, best with MOVES_MAX and LOSSES_MAX."""
    clusters = sorted((each for each in report["clusters"] if "unchecked" not in each), key=_badness, reverse=True)
    unread = [each for each in report["clusters"] if "unchecked" in each]
    scope = counted(len(report["clusters"]), "cluster")
    sections = [Section(heading_of(each["cluster_id"]), list(_cluster(each))) for each in clusters[:DRAWN_MAX]]
    if len(clusters) > 1:
        sections.insert(0, Section("Clusters, the worst first", [_overview(clusters)]))
    return Page(
        title=f"fastquorum report placement, {scope}",
        heading="Where do replicas and leaders lie?",
        subtitles=[f"fastquorum report placement: {scope}."],
        report=report,
        cards=list(_cards(clusters)),
        warnings=[*_unread(unread), *_warnings(clusters)],
        sections=sections,
    )


def _badness(cluster: dict[str, Any]) -> tuple[int, ...]:
    return (len(cluster["errors"]), *(cluster["now"][name] for name in _WRONG))


def _cards(clusters: Sequence[dict[str, Any]]) -> Iterator[Card]:
    yield Card("partitions", text(sum(each["partitions"] for each in clusters)))
    yield Card("brokers", text(sum(sum(each["broker_states"].values()) for each in clusters)))
    for name, label in _WRONG.items():
        count = sum(each["now"][name] for each in clusters)
        yield Card(label, text(count), None if not count else Pen.BAD if name == "offline" else Pen.WARN)
    yield Card("replicas to copy", text(sum(each["plan"]["moved_replicas"] for each in clusters)))


def _unread(clusters: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in clusters[:DRAWN_MAX]:
        yield f"{heading_of(each['cluster_id'])} could not be looked at: {each['unchecked']}."
    if (more := len(clusters) - DRAWN_MAX) > 0:
        yield f"Nor were these: {counted(more, 'more cluster')}; the JSON has all."


def _warnings(clusters: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in clusters[:DRAWN_MAX]:
        name = of_cluster(each["cluster_id"])
        yield from unproven(each)
        yield from (f"{name}, not read: {error}" for error in each["errors"][:DRAWN_MAX])
        for kind, worst in each["worst_losses"].items():
            if worst is not None and worst["would_take_offline"]:
                count = counted(worst["would_take_offline"], kind)
                yield (
                    f"{name}: any one of {count} would take partitions offline if it were lost; {kind} {worst['name']} "
                    f"most, {worst['offline']:,}."
                )
        if each["plan"]["stuck"]:
            count = counted(each["plan"]["stuck"], "partition")
            yield f"{name}: {count} with a dead replica cannot be helped: no leader, or no broker to spare."


def _overview(clusters: Sequence[dict[str, Any]]) -> Table:
    header = ["cluster", "partitions", "brokers", *_WRONG.values(), "most replicas", "most leaders", "to copy"]
    rows = [
        [
            text(each["cluster_id"]),
            text(each["partitions"]),
            text(sum(each["broker_states"].values())),
            *(text(each["now"][name]) for name in _WRONG),
            _imbalance(each["now"]["replicas_per_broker"]),
            _imbalance(each["now"]["leaders_per_broker"]),
            text(each["plan"]["moved_replicas"]),
        ]
        for each in clusters
    ]
    return Table(header, rows)


def _imbalance(shares: dict[str, Any]) -> str:
    if shares["max"] is None:
        return "-"
    return f"{shares['max']:,} ({shares['imbalance']:+.0%})"


# --- one cluster ------------------------------------------------------------------------------------------------------


def _cluster(cluster: dict[str, Any]) -> Iterator[Part]:
    states = ", ".join(f"{count:,} {state}" for state, count in cluster["broker_states"].items()) or "none"
    yield Prose(f"As of offset {text(cluster['end_offset'])}. Brokers: {states}.")
    yield from _figures(cluster)
    yield from _balance(cluster["brokers"])
    racks = [each for each in cluster["racks"] if each["rack"] is not None]
    if racks:
        bars = [_load(each["rack"], each["leaders"], each["replicas"]) for each in racks]
        yield Bars("racks", "Replicas of each rack", Axis("replicas", "count"), _KEYS, bars)
    yield from _losses(cluster)
    yield from _plan(cluster)


def _figures(cluster: dict[str, Any]) -> Iterator[Table]:
    now, after = cluster["now"], cluster["plan"]["after"]
    rows = [[label, text(now[name]), text(after[name])] for name, label in _FIGURES.items()]
    yield Table(("partitions", "now", "after the plan"), rows)
    shares = ("min", "mean", "max")
    rows = [
        [name.removesuffix("_per_broker"), *(text(side[name][share]) for side in (now, after) for share in shares)]
        for name in now
        if name.endswith("_per_broker")
    ]
    yield Table(("an active broker's", *shares, *(f"{share} after" for share in shares)), rows)


def _load(label: str, leaders: int, replicas: int) -> Bar:
    return Bar(label, [leaders, max(replicas - leaders, 0)], f"{replicas:,}, leads {leaders:,}")


def _balance(brokers: Sequence[dict[str, Any]]) -> Iterator[Bars | Chart]:
    """A bar for each; of more brokers than can be told apart their curve, from the fullest to the emptiest."""
    changes = any(each[f"{name}_after"] != each[name] for each in brokers for name in ("replicas", "leaders"))
    most = sorted(brokers, key=lambda each: (-each["replicas"], each["broker_id"]))
    if len(most) > ROWS_MAX:
        names = ["replicas", "leaders", *(["replicas_after", "leaders_after"] if changes else [])]
        series = [
            Series(
                name.replace("_after", " after the plan"),
                list(enumerate(sorted((each[name] for each in most), reverse=True))),
                is_step=True,
            )
            for name in names
        ]
        x, y = Axis("brokers, the fullest first", "count"), Axis("partitions", "count")
        yield Chart("balance", "Balance over brokers", x, y, series)
        bars = [_load(_name(each), each["leaders"], each["replicas"]) for each in most[: ROWS_MAX // 2]]
        yield Bars("fullest", "The fullest brokers", Axis("replicas", "count"), _KEYS, bars)
        return
    if most:
        bars = [_load(_name(each), each["leaders"], each["replicas"]) for each in most]
        yield Bars("balance", "Replicas of each broker, now", Axis("replicas", "count"), _KEYS, bars)
    if most and changes:
        bars = [_load(_name(each), each["leaders_after"], each["replicas_after"]) for each in most]
        yield Bars("balance-after", "Replicas of each broker, after the plan", Axis("replicas", "count"), _KEYS, bars)


def _name(broker: dict[str, Any]) -> str:
    state = "" if broker["state"] == "active" else f", {broker['state']}"
    rack = "" if broker["rack"] is None else f" ({broker['rack']})"
    return f"{broker['broker_id']}{rack}{state}"


def _losses(cluster: dict[str, Any]) -> Iterator[Part]:
    losses = cluster["losses"]
    if not losses:
        return
    keys = [Key("offline", Pen.BAD), Key("under min ISR, beyond these", Pen.WARN)]
    bars = [
        Bar(
            f"{row['kind']} {text(row['name'])}",
            [row["offline"], max(row["under_min_isr"] - row["offline"], 0)],
            f"{row['offline']:,} offline, {row['under_min_isr']:,} under min ISR",
        )
        for row in losses
        if row["offline"] or row["under_min_isr"]
    ]
    if bars:
        yield Bars("losses", "Partitions hit if it were lost", Axis("partitions", "count"), keys, bars, rows_max=20)
    else:
        yield Prose("No single loss would take a partition offline, or below its least ISR.")
    rows = [
        [
            f"{row['kind']} {text(row['name'])}",
            *(text(row[name]) for name in ("partitions", "leaders", "offline", "without_replica", "under_min_isr")),
            ", ".join(f"{each['broker_id']}: {each['leaders']:,}" for each in row["heirs"][:3]) or "-",
            "-" if row["most_leader"] is None else f"{row['most_leader']}: {row['most_led']:,}",
        ]
        for row in losses
    ]
    header = ("lost", "partitions", "leaders", "offline", "without replica", "under min ISR", "led by then", "most")
    yield Table(header, rows, left=(0, 6, 7), rows_max=40)


def _plan(cluster: dict[str, Any]) -> Iterator[Part]:
    plan, moves = cluster["plan"], cluster["moves"]
    yield Prose(
        f"The plan changes {counted(plan['partitions'], 'partition')}, of which {plan['reordered']:,} only in their "
        f"order, and copies {counted(plan['moved_replicas'], 'replica')}. Left alone, being reassigned: "
        f"{plan['skipped']:,}."
    )
    reasons = [Bar(name.replace("_", " "), [count]) for name, count in plan["reasons"].items() if count]
    if reasons:
        axis = Axis("partitions, by reason", "count")
        yield Bars("reasons", "Why partitions move", axis, [Key("partitions", Pen.FIRST)], reasons)
    if moves:
        rows = [
            [
                f"{row['topic']}-{row['partition']}",
                _nodes(row["replicas"]),
                _nodes(row["planned"]),
                text(row["added"]),
                ", ".join(reason.replace("_", " ") for reason in row["reasons"]),
            ]
            for row in moves
        ]
        left_out = max(plan["partitions"] - len(moves), 0)
        yield Table(
            ("partition", "from", "to", "copied", "why"), rows, left=(0, 1, 2, 4), left_out=left_out, whole="--out"
        )


def _nodes(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
