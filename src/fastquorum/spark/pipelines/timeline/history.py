"""What one cluster's metadata log says, ready to be asked: one replica's committed records that count, with times.

Several replicas may be given. By Raft's log matching (section 5.3), logs that have a record of the same epoch at an
offset are the same up to it; committed is what a majority of those given share, unless the caller knows better. Of the
replicas that hold all of it the one is read whose log begins first, then that of the lowest node id and directory.

What a transaction holds counts when it has ended, and from then on; of one that was aborted or is open still nothing
does (KIP-868). Time is that of the records' timestamps, which leaders take from their own clocks: where it goes back,
it stands still until it has caught up, so that nothing lasts less than no time; `clock_back_ms` says by how much.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import ImageFailed, UsageError
from fastquorum.spark.texts import parsed

COLUMNS: Final = ("cluster_id", "node_id", "directory", "offset", "epoch", "timestamp", "is_control", "type", "data")
"""What is read of table `records`."""
BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"
_NO_TIME: Final = np.iinfo(np.int64).min
_NO_TYPE: Final = -1

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


class Carried(NamedTuple):
    """Records of one type that an earlier part of a log came to."""

    rows: Ints
    said: pa.Table


class History(NamedTuple):
    """The records that count, in order. A record's row here is its place in all that is asked of them."""

    replica: Replica
    offsets: Ints
    epochs: Ints
    times_ms: Ints
    """When each came to count, since 1970; of a transaction's, when it ended."""
    image_count: int
    """How many rows come first that are of the image before the log."""
    end_offset: int
    """Exclusive, of the log as far as it is committed, uncounted records too."""
    begin_ms: int
    end_ms: int
    """The time of the last committed record."""
    clock_back_ms: int
    """How far a timestamp lay behind an earlier one, at most."""
    is_whole: bool
    """It is known what there was before the log: nothing, or the image that was given."""
    unreadable_count: int
    """Metadata records without text: of a type or version that nobody here knows."""
    types: Ints
    type_names: tuple[str, ...]
    texts: pa.ChunkedArray
    carried: "Mapping[str, Carried]" = MappingProxyType({})
    """By type of record: what comes before all others."""

    @classmethod
    def of(cls, records: pa.Table, image: pa.Table | None = None, committed_end: int | None = None) -> Self:
        """Of the records of one cluster, with COLUMNS, in any order of replicas, each in order of its offsets or not.

        `image`: the records of a snapshot at the offset at which `records` begin, in the same form and in their order.
        Without it, a log that begins later than at 0 is told from its first records on: a partition or broker is
        known from where it is created or registered. `committed_end`: exclusive.

        Raises:
            UsageError: records of several clusters, or replicas of which no majority shares anything.
            ImageFailed: a transaction that ends without having begun, or begins in another.
        """
        clusters = pc.unique(records["cluster_id"]).to_pylist()
        if len(clusters) > 1:
            raise UsageError(f"records of {len(clusters)} clusters are no one history", "hand in one cluster's")
        chosen, replica = _chosen(records.select(COLUMNS), committed_end)
        image_count = 0 if image is None else image.num_rows
        whole = chosen if image is None else pa.concat_tables([image.select(COLUMNS), chosen])
        first = int(chosen["offset"][0].as_py()) if chosen.num_rows else 0
        is_whole = image is not None or first == 0
        offsets, names = _ints(whole["offset"]), whole["type"].dictionary_encode().combine_chunks()
        type_names = tuple(names.dictionary.to_pylist())
        types = np.asarray(names.indices.fill_null(_NO_TYPE), np.int64)
        times, clock_back_ms = _times(whole["timestamp"], image_count)
        is_control = np.asarray(whole["is_control"].fill_null(False))
        counts, settled_at = _fates(types, type_names, is_control, offsets, begins_whole=is_whole)
        is_read = np.asarray(whole["data"].is_valid())
        return cls(
            replica=replica,
            offsets=offsets[counts],
            epochs=_ints(whole["epoch"])[counts],
            times_ms=times[settled_at][counts],
            image_count=int(counts[:image_count].sum()),
            end_offset=int(offsets[-1]) + 1 if chosen.num_rows else first,
            begin_ms=int(times[0]) if len(times) else 0,
            end_ms=int(times[-1]) if len(times) else 0,
            clock_back_ms=clock_back_ms,
            is_whole=is_whole,
            unreadable_count=int((~is_read & ~is_control).sum()),
            types=types[counts],
            type_names=type_names,
            texts=_those(whole["data"], counts),
        )

    def said(self, kind: str, fields: pa.Schema) -> tuple[Ints, pa.Table]:
        """The rows of all records of a type, and of each the fields asked for; null is what its text does not have."""
        rows, found = np.empty(0, np.int64), fields.empty_table()
        if kind in self.type_names:
            is_wanted = (self.types == self.type_names.index(kind)) & np.asarray(self.texts.is_valid())
            rows, found = np.flatnonzero(is_wanted), parsed(self.texts, fields, is_wanted)
        before = self.carried.get(kind)
        if before is None:
            return rows, found
        chosen = before.said.select(fields.names).cast(fields)
        return np.concatenate([before.rows, rows]), pa.concat_tables([chosen, found])

    def after(self, carried: Mapping[str, pa.Table]) -> Self:
        """The same, with records before it, as an image is: by type, what `said` gives of each, in this order."""
        ends = np.cumsum([0, *(each.num_rows for each in carried.values())])
        count = int(ends[-1])

        def behind(column: Ints, value: int) -> Ints:
            return np.concatenate([np.full(count, value, np.int64), column])

        return self._replace(
            offsets=behind(self.offsets, -1),
            epochs=behind(self.epochs, -1),
            times_ms=behind(self.times_ms, self.begin_ms),
            image_count=count + self.image_count,
            types=behind(self.types, _NO_TYPE),
            texts=pa.chunked_array([pa.nulls(count, pa.string()), *self.texts.chunks], pa.string()),
            carried={
                kind: Carried(np.arange(start, start + said.num_rows), said)
                for start, (kind, said) in zip(ends.tolist(), carried.items(), strict=False)
            },
        )

    def without_texts(self, but: Collection[str]) -> Self:
        """The same, of which only records of these types can be asked any more: texts are what takes room."""
        numbers = [number for number, name in enumerate(self.type_names) if name in but]
        kept = pa.array(np.isin(self.types, numbers))
        return self._replace(texts=pc.if_else(kept, self.texts, pa.scalar(None, pa.string())))


# --- which replica, and how far ---------------------------------------------------------------------------------------


def _chosen(records: pa.Table, committed_end: int | None) -> tuple[pa.Table, Replica]:
    """The committed records of the replica that is read, in order, and which it is."""
    records = _those(records, np.asarray(records["offset"].is_valid()))  # a row of damaged bytes is no record
    if records.num_rows == 0:
        return records, Replica(None, None, None)
    directories = records["directory"].dictionary_encode().combine_chunks()
    owners = np.asarray(directories.indices)
    found = [_in_order(_those(records, owners == each)) for each in range(len(directories.dictionary))]
    logs = [(_ints(each["offset"]), _ints(each["epoch"])) for each in found]
    majority = len(logs) // 2 + 1
    shared = [sorted((_shared_end(log, other) for other in logs), reverse=True)[majority - 1] for log in logs]
    if max(shared) < 0:
        raise UsageError(
            f"of {len(logs)} replicas of cluster {records['cluster_id'][0]} no majority shares a record",
            "hand in the records of one",
        )
    replicas = [Replica(*(each[name][0].as_py() for name in Replica._fields)) for each in found]
    end = max(shared) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, int, int, str]:
        node_id = replicas[at].node_id
        return (-min(shared[at], end), int(logs[at][0][0]), -1 if node_id is None else node_id, f"{directories[at]}")

    best = min(range(len(found)), key=rank)
    return found[best].slice(0, int(np.searchsorted(logs[best][0], end))), replicas[best]


def _shared_end(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> int:
    """Exclusive; -1 if they share nothing."""
    (offsets, epochs), (its_offsets, its_epochs) = one, other
    at = np.minimum(np.searchsorted(its_offsets, offsets), len(its_offsets) - 1)
    same = np.flatnonzero((its_offsets[at] == offsets) & (its_epochs[at] == epochs))
    return int(offsets[same[-1]]) + 1 if len(same) else -1


def _in_order(records: pa.Table) -> pa.Table:
    offsets = _ints(records["offset"])
    if bool((np.diff(offsets) > 0).all()):
        return records
    return records.take(pa.array(np.argsort(offsets, kind="stable")))


# --- when, and whether at all -----------------------------------------------------------------------------------------


def _times(timestamps: pa.ChunkedArray, image_count: int) -> tuple[Ints, int]:
    """Never back, and how far back they went. Of an image: its latest, for all of it. Without a time: as before."""
    said = np.asarray(timestamps.cast(pa.int64()).fill_null(_NO_TIME), np.int64)
    said = np.where(said == _NO_TIME, _NO_TIME, said // 1000)
    if image_count:
        said[:image_count] = said[:image_count].max()
    times = np.maximum.accumulate(said)
    known = times[times != _NO_TIME]
    times[times == _NO_TIME] = known[0] if len(known) else 0
    back = (times - said)[said != _NO_TIME]
    return times, int(back.max()) if len(back) else 0


def _fates(
    types: Ints, type_names: tuple[str, ...], is_control: Flags, offsets: Ints, *, begins_whole: bool
) -> tuple[Flags, Ints]:
    """Does each row count, and with which row does it come to count?"""
    numbers = {name: type_names.index(name) for name in (BEGIN, END, ABORT) if name in type_names}
    rows = np.arange(len(types), dtype=np.int64)
    markers = np.flatnonzero(np.isin(types, list(numbers.values())))
    begins = types[markers] == numbers.get(BEGIN)
    ends = types[markers] == numbers.get(END)
    _check(begins, [type_names[each] for each in types[markers][:1]], offsets[markers], begins_whole=begins_whole)
    following = np.searchsorted(markers, rows, side="right")
    is_marker = np.zeros(len(types), np.bool_)
    is_marker[markers] = True
    began = np.concatenate([[False], begins])[following] & ~is_marker
    is_open = np.concatenate([begins, [True]])[following]
    is_ended = np.concatenate([ends, [False]])[following]
    is_held = (began | ~is_open) & ~is_control & ~is_marker
    settled_at = np.where(is_held & is_ended, np.concatenate([markers, [0]])[following], rows)
    return ~is_held | is_ended, settled_at


def _check(begins: Flags, first: list[str], offsets: Ints, *, begins_whole: bool) -> None:
    """Begins and ends take turns. A log that is cut off may begin inside a transaction. ImageFailed."""
    if len(begins) and not begins[0] and begins_whole:
        raise ImageFailed("no transaction is open", first[0], int(offsets[0]))
    again = np.flatnonzero(begins[1:] == begins[:-1]) + 1
    if len(again):
        is_begin = bool(begins[again[0]])
        why = "a transaction is open already" if is_begin else "no transaction is open"
        raise ImageFailed(why, BEGIN if is_begin else END, int(offsets[again[0]]))


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.fill_null(-1).cast(pa.int64()), np.int64)


def _those(table: Any, wanted: Flags) -> Any:
    """Rows of a table or column; no copy if it is all of them."""
    return table if bool(wanted.all()) else table.filter(pa.array(wanted))
