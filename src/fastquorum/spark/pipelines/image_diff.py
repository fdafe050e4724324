"""`image-diff`: what changed of a cluster between two offsets, or what differs between two clusters, or two replicas.

From table `image`: things by section and key, as JSON. What differs is said as `controller.image.diff` says it, so that
one log is told of by `fastquorum image diff` in the same words. Whatever is the same on both sides is left out before
anything is looked into. Needs pyarrow, and no JVM.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.controller.image.diff import Difference
from fastquorum.controller.image.image import NO_PRODUCER_ID
from fastquorum.controller.image.view import View
from fastquorum.spark.pipelines.choosing import USER_RECORDS
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.image_sections import BARE, SECTIONS, compact

CHANGE_COLUMNS: Final = ("cluster_id", "end_offset", "section", "key", "data", "change", "before", "error")
"""Columns that are read from table `image` with `diffFrom`."""
IMAGE_COLUMNS: Final = ("cluster_id", "end_offset", "section", "key", "data", "error")
"""Columns that are read from table `image`."""
SCHEMA: Final = pa.schema(
    [
        *arrow.fields(pa.string(), "cluster_id", "other_cluster_id"),
        *arrow.fields(pa.int64(), "from_offset", "to_offset"),
        *arrow.fields(pa.string(), "kind", "name", "change"),
        pa.field("fields", pa.list_(pa.string())),
        *arrow.fields(pa.string(), "before", "after", "words", "error", "unproven"),
    ]
)
"""One row for each thing that was created, is gone, or has changed. `before` and `after` are JSON: of what has changed
only the `fields` that differ, else the whole. `error`: nothing, or not all, could be compared, and why. `unproven`, in
a row of its own: why what was compared may not be committed."""
KINDS: Final = {section: kind for kind, section in SECTIONS.items()}
_OF_ONE_CLUSTER: Final = frozenset(
    ("id", "epoch", "incarnationId", "logDirs", "cordonedLogDirs", "directories", "leaderEpoch", "partitionEpoch")
)
"""What says nothing where two clusters are compared: no two have it in common."""
_CHANGES: Final = ("created", "gone", "changed")


class _Sides(NamedTuple):
    """The two sides that are compared."""

    cluster_id: str | None
    other_cluster_id: str | None
    from_offset: int | None
    to_offset: int | None


# --- between two offsets ----------------------------------------------------------------------------------------------


def changes_of(rows: pa.Table, from_offset: int) -> pa.Table:
    """SCHEMA, of rows with CHANGE_COLUMNS: what changed since `from_offset`. Each row is looked at by itself."""
    found: list[dict[str, Any]] = []
    for row in rows.select(CHANGE_COLUMNS).to_pylist():
        sides = _Sides(row["cluster_id"], row["cluster_id"], from_offset, row["end_offset"])
        if row["error"] is not None:
            found.append(sides._asdict() | {"error": row["error"]})
            continue
        was = row["data"] if row["change"] == "removed" else (row["before"] or {}).get("data")
        now = None if row["change"] == "removed" else row["data"]
        kind = KINDS[row["section"]]
        found.append(_row(sides, Difference(kind, row["key"] or "", _view(kind, was), _view(kind, now))))
    return pa.Table.from_pylist(found, SCHEMA)


# --- between two images -----------------------------------------------------------------------------------------------


def compared(before: pa.Table, after: pa.Table, *, everything: bool | None = None) -> pa.Table:
    """SCHEMA: what differs between two images, each with IMAGE_COLUMNS and of one cluster.

    Args:
        everything: also what no two clusters have in common, as ids and epochs. None: unless they are two clusters'.
    """
    ids, ends = [], []
    for side in (before, after):
        ids.append(next(iter(side["cluster_id"].to_pylist()), None))
        ends.append(pc.max(side["end_offset"]).as_py() if side.num_rows else None)
    sides = _Sides(ids[0], ids[1], ends[0], ends[1])
    is_whole = ids[0] == ids[1] or None in ids if everything is None else everything
    found = [
        sides._asdict() | {"error": error}
        for side in (before, after)
        for error in side["error"].drop_null().to_pylist()
    ]
    for section, key, was, now in _pairs(before, after):
        for each in _differences(KINDS[section], key, _view(KINDS[section], was), _view(KINDS[section], now), is_whole):
            found.append(_row(sides, each))
    return pa.Table.from_pylist(found, SCHEMA)


def not_compared(cluster_id: str | None, other_cluster_id: str | None, why: str) -> pa.Table:
    """SCHEMA: all there is to tell of two that could not be looked at."""
    return pa.Table.from_pylist([_Sides(cluster_id, other_cluster_id, None, None)._asdict() | {"error": why}], SCHEMA)


def beside_user_logs(found: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """Return the clusters, without those of user records if there are others: no image is made of them."""
    return [each for each in found if each["error"].to_pylist() != [USER_RECORDS]] or found


def not_proven(
    cluster_ids: tuple[str | None, str | None], offsets: tuple[int | None, int | None], why: str
) -> pa.Table:
    """SCHEMA: what was compared of the two sides, up to these offsets, may not be committed."""
    sides = _Sides(*cluster_ids, *offsets)
    return pa.Table.from_pylist([sides._asdict() | {"unproven": why}], SCHEMA)


def _pairs(before: pa.Table, after: pa.Table) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Section, key and both texts of what is not the same text on both sides, in the order of sections and keys."""
    keys = ["section", "key"]
    sides = []
    for side in (before, after):
        good = side.filter(side["error"].is_null()).select([*keys, "data"])
        sides.append(good.set_column(1, "key", good["key"].fill_null("")))
    joined = sides[0].join(sides[1], keys, join_type="full outer", left_suffix="", right_suffix="_after")
    is_same = pc.fill_null(pc.equal(joined["data"], joined["data_after"]), False)
    differing = joined.filter(pc.invert(is_same))
    order = {section: number for number, section in enumerate(KINDS)}
    rows = ((row["section"], row["key"], row["data"], row["data_after"]) for row in differing.to_pylist())
    yield from sorted(rows, key=lambda row: (order[row[0]], _natural(row[1])))


def _natural(key: str) -> tuple[int, int, str]:
    """Node ids by number, all else by name."""
    return (0, int(key), key) if key.isdigit() else (1, 0, key)


def _differences(kind: str, key: str, was: View | None, now: View | None, is_whole: bool) -> Iterator[Difference]:
    if not is_whole:
        if kind == "producer ids":
            return  # no two have them in common
        was, now = (None if each is None else _shared(each) for each in (was, now))
    if kind == "producer ids":
        was, now = (each or {BARE[kind]: NO_PRODUCER_ID} for each in (was, now))
    if kind == "topic" and was is not None and now is not None:
        yield from _of_topic(key, was, now)
    elif was != now:
        yield Difference(kind, key, was, now)


def _of_topic(name: str, was: View, now: View) -> Iterator[Difference]:
    """Partition by partition; one that was made anew under its name is gone, and created."""
    if was.get("id") != now.get("id"):
        yield Difference("topic", name, was, None)
        yield Difference("topic", name, None, now)
        return
    old, new = was["partitions"], now["partitions"]
    for number in sorted({*old, *new}, key=int):
        if old.get(number) != new.get(number):
            yield Difference("partition", f"{name}-{number}", old.get(number), new.get(number))


def _shared(view: View) -> View:
    """Return what two clusters may have in common."""
    kept = {key: value for key, value in view.items() if key not in _OF_ONE_CLUSTER}
    if "partitions" in kept:
        kept["partitions"] = {number: _shared(each) for number, each in kept["partitions"].items()}
    return kept


# --- rows -------------------------------------------------------------------------------------------------------------


def _view(kind: str, text: str | None) -> View | None:
    """Return a thing as `Difference` has it: a plain value has a name there."""
    if text is None:
        return None
    shown: Any = json.loads(text)
    return {BARE[kind]: shown} if kind in BARE else shown


def _row(sides: _Sides, each: Difference) -> dict[str, Any]:
    fields = each.changes
    was, now = each.before, each.after
    if was is not None and now is not None:
        was = {name: pair[0] for name, pair in fields.items()}
        now = {name: pair[1] for name, pair in fields.items()}
    return sides._asdict() | {
        "kind": each.kind,
        "name": each.name,
        "change": "created" if was is None else "gone" if now is None else "changed",
        "fields": list(fields),
        "before": None if was is None else compact(was),
        "after": None if now is None else compact(now),
        "words": _words(each),
    }


def _words(each: Difference) -> str:
    """They name an id or epoch, which may be left out of the comparison of two clusters."""
    if each.kind not in ("topic", "broker"):
        return each.words
    before, after = (None if view is None else {"id": "-", "epoch": "-"} | view for view in (each.before, each.after))
    return each._replace(before=before, after=after).words


# --- the whole --------------------------------------------------------------------------------------------------------


def as_report(rows: pa.Table, *, changes_max: int | None = None) -> dict[str, Any]:
    """For programs: `clusters`, each with `counts` by kind, `errors`, `unproven` (why what was compared may not be
    committed), and `changes`, no more than asked for."""
    clusters: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.to_pylist():
        key = row["cluster_id"], row["other_cluster_id"]
        one = clusters.setdefault(
            key,
            {name: row[name] for name in _Sides._fields}
            | {"total": 0, "counts": {}, "errors": [], "unproven": [], "changes": []},
        )
        one["to_offset"] = one["to_offset"] if row["to_offset"] is None else row["to_offset"]
        if row["error"] is not None:
            one["errors"].append(row["error"])
            continue
        if row["unproven"] is not None:
            one["unproven"].append(row["unproven"])
            continue
        one["total"] += 1
        counts = one["counts"].setdefault(row["kind"], dict.fromkeys(_CHANGES, 0))
        counts[row["change"]] += 1
        if changes_max is None or len(one["changes"]) < changes_max:
            one["changes"].append(_report_row(row))
    for one in clusters.values():
        one["counts"] = {kind: one["counts"][kind] for kind in SECTIONS if kind in one["counts"]}
    return {"clusters": [one for _, one in sorted(clusters.items(), key=lambda item: _order(item[0]))]}


def _report_row(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("kind", "name", "change", "fields", "words")}
    return kept | {name: None if row[name] is None else json.loads(row[name]) for name in ("before", "after")}


def _order(ids: Iterable[str | None]) -> list[tuple[bool, str]]:
    return [(each is not None, each or "") for each in ids]
