"""Directories that a stream follows: each up to what others, or a snapshot of its own, prove to be committed.

The high watermark is on no disk. Committed is what a majority of the voters' directories share, as `audit-replicas`
has it, once no leader to come can undo that (`stream.settling`). What a directory has beyond, or otherwise than they,
is left alone until it is settled. One directory alone proves nothing but by its snapshots, and by being the only voter:
what cannot be told is refused, unless an option says how it is. Files are read while their nodes write them: never
further than to what is committed.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import DirectoryError, OffsetOutOfRange, UsageError
from fastquorum.kernels import load
from fastquorum.spark.pipelines.audit_replicas import BATCH_COLUMNS, VOTER_COLUMNS, audit, audit_cluster
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.pipelines.voting import VoterKey, seats_of
from fastquorum.spark.quorum import BY_BATCH, lost
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.beginnings import has_snapshot
from fastquorum.spark.stored.logs import FoundLog, find_logs
from fastquorum.spark.stored.options import CommittedBy, ReadOptions, parse_options
from fastquorum.spark.stored.places import Places, pieces_between
from fastquorum.spark.stored.splits import Piece, packed
from fastquorum.spark.stored.stores import store_of
from fastquorum.spark.stream.following import Offsets
from fastquorum.spark.stream.settling import OTHERS, unsettled_from
from fastquorum.spark.tables import TABLES, Task
from fastquorum.spark.tables.table import bounds_of, owner_columns
from fastquorum.types import Epoch, Offset

_LOOKS: Final = 3
"""A file may go while it is looked at, and another stand for it: so many looks fail before it counts."""
_NEVER: Final = 1 << 63
_BATCH_COLUMNS: Final = (*BATCH_COLUMNS, "is_control")
_BATCHES: Final = arrow.pruned(TABLES["batches"].schema, _BATCH_COLUMNS)
_HINT: Final = (
    "name the directories of a majority of its voters; or say, with option committed=majority, that those given are "
    "all its voters; or read each up to its latest snapshot, with committed=single"
)


class LogStretch(NamedTuple):
    """The part of a log that one task reads: the records of its pieces in [start, end). Travels to executors."""

    pieces: tuple[Piece, ...]
    start: Offset
    end: Offset


class FollowedDirectories:
    """All logs that the path means, by directory; new ones are taken in as they appear."""

    def __init__(self, scan: TableScan) -> None:
        self._scan = scan
        self._kernels = load("native")
        self._places = Places(self._kernels)
        self._voters: dict[str, frozenset[VoterKey]] = {}
        """By cluster: its voters, until a control record may have changed them."""
        self._warned: set[tuple[str, Offset]] = set()

    # --- how far ------------------------------------------------------------------------------------------------------

    def begins(self) -> Offsets:
        return {log.directory: log.begin_offset for log in self._logs()}

    def ends(self, start: Mapping[str, int]) -> Offsets:
        for look in range(_LOOKS):
            try:
                return self._ends(start)
            except DirectoryError:
                if look + 1 == _LOOKS:
                    raise
        raise AssertionError("the last look returns or raises")

    def close(self) -> None:
        """Do nothing: no file is open between reads."""

    def _logs(self) -> list[FoundLog]:
        return find_logs(self._scan.options.path)

    def _ends(self, start: Mapping[str, int]) -> Offsets:
        logs = self._logs()
        found = dict(start) | {log.directory: start.get(log.directory, log.begin_offset) for log in logs}
        for gone in sorted(start.keys() - {log.directory for log in logs}):
            self._gone(gone, start[gone])
        for log in logs:
            self._check_reaches(log, start.get(log.directory, 0))
        if self._scan.options.committed is CommittedBy.SINGLE:
            return {**found, **{log.directory: max(found[log.directory], _proven(log)) for log in logs}}
        by_cluster = sorted(logs, key=lambda log: (log.cluster_id or "", log.directory))
        for cluster_id, replicas in groupby(by_cluster, key=lambda log: log.cluster_id):
            found |= self._shared(cluster_id, list(replicas), found)
        return found

    def _gone(self, directory: str, offset: Offset) -> None:
        if self._scan.options.fail_on_data_loss:
            hint = "option failOnDataLoss=false goes on without it"
            raise UsageError(f"the log at {directory}, read up to offset {offset}, is gone", hint)
        self._tell(f"the log at {directory} is gone: what followed offset {offset} is left out", directory, -1)

    def _check_reaches(self, log: FoundLog, offset: Offset) -> None:
        """Warn if the log ends below `offset`. A replaced disk may be why: its node then fetches the rest again."""
        if log.segments and not self._places.reaches(sorted(log.segments), offset):
            text = (
                f"{log.directory} ends below offset {offset}, up to which it was read: it goes on there when it is back"
            )
            self._tell(text, log.directory, offset)

    def _tell(self, text: str, directory: str, offset: Offset) -> None:
        """Warn once for each directory and offset."""
        if (directory, offset) not in self._warned:
            self._warned.add((directory, offset))
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _shared(self, cluster_id: str | None, logs: Sequence[FoundLog], start: Offsets) -> Offsets:
        """Return how far each directory of a cluster holds what a majority of its voters does."""
        voters = self._voters_of(cluster_id, logs)
        self._check_majority(cluster_id, logs, voters)
        begin = min(start[log.directory] for log in logs)
        batches = pa.Table.from_batches(
            [batch for log in logs for batch in self._batches(log, begin)],
            _BATCHES,
        )
        if cluster_id is not None and pc.any(batches["is_control"]).as_py():
            self._voters.pop(cluster_id, None)
            voters = self._voters_of(cluster_id, logs)
            self._check_majority(cluster_id, logs, voters)
        same = {"cluster_id": cluster_id, "directory": "", "offset": 0}
        rows = [{**same, "voter_id": each.id, "directory_id": each.directory_id} for each in voters]
        audited = audit_cluster(batches, _directory_rows(rows, logs, batches))
        unsettled = self._unsettled_from(cluster_id, logs, voters, batches, audited)
        return {
            row["directory"]: max(min(self._end(row), unsettled), start[row["directory"]])
            for row in audited.to_pylist()
        }

    def _unsettled_from(
        self,
        cluster_id: str | None,
        logs: Sequence[FoundLog],
        voters: frozenset[VoterKey],
        batches: pa.Table,
        audited: pa.Table,
    ) -> Offset:
        seats = _seats(logs, voters)
        sees_all = voters <= set(seats)
        known_epoch = -1 if sees_all else _known_epoch([log for log, seat in zip(logs, seats, strict=True) if seat])
        found = unsettled_from(batches, audited, sees_all=sees_all, known_epoch=known_epoch)
        if found == 0:
            text = (
                f"cluster {cluster_id}: an election has begun since the last records that a majority shares, and not "
                "all voters can be seen: until its leader's first record is on a majority, nothing more is read"
            )
            self._tell(text, cluster_id or "", 0)
        return _NEVER if found is None else found

    def _end(self, row: Mapping[str, Any]) -> Offset:
        if row["committed_end"] is None:
            return 0
        end: Offset = min(row["committed_end"], row["end_offset"])
        if row["verdict"] in OTHERS and row["offset"] is not None and row["offset"] < row["committed_end"]:
            # A node that comes back cuts its own tail off; one whose disk lies does not.
            directory, offset = row["directory"], row["offset"]
            why = "it has another batch there" if row["verdict"] == ReplicaVerdict.STALE else row["why"]
            self._tell(f"{directory}: from offset {offset} on, {why}: it is read up to there", directory, offset)
            end = min(end, offset)
        return end

    def _batches(self, log: FoundLog, begin: Offset) -> Iterator[pa.RecordBatch]:
        options = parse_options({"path": log.directory, "table": "batches", "mode": "quarantine"}, TABLES)
        pieces = pieces_between(log, self._places, max(begin, log.begin_offset), None, options.split_bytes)
        return TABLES["batches"].read(Task(tuple(pieces)), options, _BATCH_COLUMNS)

    # --- who votes ----------------------------------------------------------------------------------------------------

    def _voters_of(self, cluster_id: str | None, logs: Sequence[FoundLog]) -> frozenset[VoterKey]:
        """Return the voters that the logs name. If they name none and option `committed` says so, all given directories
        are. Empty: not known."""
        if cluster_id is None:
            return frozenset()
        if cluster_id not in self._voters:
            options = parse_options({"path": self._scan.options.path, "table": "voters", "mode": "quarantine"}, TABLES)
            read = TABLES["voters"].read(Task(logs=tuple(logs)), options, VOTER_COLUMNS)
            rows = pa.Table.from_batches(list(read), arrow.pruned(_VOTERS, VOTER_COLUMNS))
            self._voters[cluster_id] = self._committed_voters(logs, rows)
        known = self._voters[cluster_id]
        if not known and self._scan.options.committed is CommittedBy.MAJORITY:
            return frozenset(VoterKey(log.node_id) for log in logs if log.node_id is not None)
        return known

    def _committed_voters(self, logs: Sequence[FoundLog], rows: pa.Table) -> frozenset[VoterKey]:
        """Return the set of voters in force where records are committed; empty: nothing names any."""
        if rows["voter_id"].null_count == rows.num_rows:
            return frozenset()
        read = (batch for log in logs for batch in self._batches(log, log.begin_offset))
        batches = pa.Table.from_batches(read, _BATCHES)
        found = audit(batches, _directory_rows(rows.to_pylist(), logs, batches)).voters
        return frozenset(node for node in found if isinstance(node.id, int))

    def _check_majority(self, cluster_id: str | None, logs: Sequence[FoundLog], voters: frozenset[VoterKey]) -> None:
        where = logs[0].directory if len(logs) == 1 else f"{logs[0].directory} and {len(logs) - 1} more"
        if not voters:
            raise UsageError(f"nothing names the voters of cluster {cluster_id} ({where})", _HINT)
        seats = _seats(logs, voters)
        voting = [log for log, seat in zip(logs, seats, strict=True) if seat is not None]
        for one, other in pairwise(sorted(voting, key=lambda log: (log.node_id or 0, log.directory))):
            if one.node_id == other.node_id:
                both = f"{one.directory} and {other.directory} are both of node {one.node_id} of cluster {cluster_id}"
                raise UsageError(f"{both}, which has one vote", "name one of them")
        given = voters & set(seats)
        if len(given) <= len(voters) // 2:
            raise UsageError(
                f"of the {len(voters)} voters of cluster {cluster_id} {len(given)} can be seen ({where}): what is "
                "committed cannot be told",
                _HINT,
            )

    # --- what is in between -------------------------------------------------------------------------------------------

    def tasks(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Any]:
        logs = {log.directory: log for log in self._logs()}
        found: list[Any] = []
        for directory, last in sorted(end.items()):
            log = logs.get(directory)
            if log is None:
                if start.get(directory, 0) < last:
                    self._gone(directory, start.get(directory, 0))
                continue
            if start.get(directory) == 0:
                self._check_begins(log, last)
            found += self._stretches(log, start.get(directory, 0), last)
        return found

    def _check_begins(self, log: FoundLog, last: Offset) -> None:
        """A log that was empty may begin anywhere, with a snapshot; one that was not has lost something. Which of them
        it was is not in a checkpoint: what a snapshot holds is only warned of. OffsetOutOfRange without one."""
        begin = min(log.begin_offset, last)
        if begin <= 1:  # the first leader's own record may be gone
            return
        if not has_snapshot(log):
            lost(self._scan.options, log.directory, 0, begin, last)
        else:
            self._tell(f"{log.directory} begins at offset {begin}: what was before it is left out", log.directory, 0)

    def _stretches(self, log: FoundLog, first: Offset, last: Offset) -> list[LogStretch]:
        options, begin = self._scan.options, log.begin_offset
        if 0 < first < min(begin, last):
            lost(options, log.directory, first, begin, last)
        first = max(first, begin)
        if first >= last:
            return []
        segments = sorted(log.segments)
        if not self._places.reaches(segments, last):
            self._lacks(log.directory, last)
        goes_on = self._places.next_batch(segments, first)
        if goes_on is not None and goes_on > first:  # in front of the first piece, where no reader can see it
            self._misses(log.directory, first, min(goes_on, last) - 1)
        by_batch = options.table in BY_BATCH
        pieces = pieces_between(log, self._places, first, last, options.split_bytes, by_batch=by_batch)
        return [LogStretch(tuple(task), first, last) for task in packed(pieces, options.split_bytes)]

    def _lacks(self, directory: str, end: Offset) -> None:
        """OffsetOutOfRange or a warning: what is in a micro-batch is never planned again."""
        text = f"{directory} ends below offset {end}, to which it was to be read: was its disk replaced?"
        if self._scan.options.fail_on_data_loss:
            hint = "it goes on when it is back; option failOnDataLoss=false goes on without"
            raise OffsetOutOfRange(f"{text} {hint}", offset=end)
        warnings.warn(f"{text} The rest is left out", RuntimeWarning, stacklevel=2)

    def _misses(self, directory: str, first: Offset, last: Offset) -> None:
        """DirectoryError or a warning: a segment, or part of one, is not there."""
        text = f"offsets {first} to {last} are missing"
        if self._scan.options.fail_on_data_loss:
            raise DirectoryError(text, "option failOnDataLoss=false goes on behind them", directory)
        warnings.warn(f"{directory}: {text}: they are left out", RuntimeWarning, stacklevel=2)

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        scan, options = self._scan, self._scan.options
        if scan.table.name not in BY_BATCH:
            options = within(options, task.start, task.end)
        for piece in task.pieces:
            if not options.fail_on_data_loss and _is_cut_off(piece):
                warnings.warn(
                    f"{piece.path} is shorter by now: the rest of it is left out", RuntimeWarning, stacklevel=2
                )
                piece = piece._replace(is_tail=True)  # ends where it ends
            try:
                yield from scan.table.read(Task((piece,)), options, scan.columns)
            except DirectoryError as error:
                if options.fail_on_data_loss or not _is_gone(piece.path):
                    raise
                warnings.warn(f"{error}: the rest of it is left out", RuntimeWarning, stacklevel=2)


def within(options: ReadOptions, start: Offset, end: Offset) -> ReadOptions:
    """Return the same read, of these records only."""
    wanted = bounds_of(options)
    return options._replace(from_offset=max(wanted.offset_min, start), to_offset=min(wanted.offset_max, end))


_OWN_ID: Final = "own_directory_id"
_VOTERS: Final = pa.schema([*map(TABLES["voters"].schema.field, VOTER_COLUMNS), pa.field(_OWN_ID, pa.string())])


def _directory_rows(rows: Sequence[dict[str, Any]], logs: Sequence[FoundLog], batches: pa.Table) -> pa.Table:
    """Return the rows of voters, and the ids of the directories that have a batch."""
    there = set(batches["directory"].to_pylist())
    own = [{**owner_columns(log), _OWN_ID: log.directory_id} for log in logs if log.directory in there]
    return pa.Table.from_pylist([*rows, *own], _VOTERS)


def _seats(logs: Sequence[FoundLog], voters: frozenset[VoterKey]) -> list[VoterKey | None]:
    """Return the voter as which each directory votes; None: it has no vote."""
    nodes = [None if log.node_id is None else VoterKey(log.node_id, log.directory_id) for log in logs]
    return seats_of(nodes, voters)


def _known_epoch(logs: Sequence[FoundLog]) -> Epoch:
    """Return the latest epoch that any of the nodes has saved; -1: none has."""
    options = parse_options({"path": logs[0].directory, "table": "quorum_state", "mode": "quarantine"}, TABLES)
    read = TABLES["quorum_state"].read(Task(logs=tuple(logs)), options, ("epoch",))
    return max((epoch for batch in read for epoch in batch["epoch"].to_pylist() if epoch is not None), default=-1)


def _proven(log: FoundLog) -> Offset:
    """Return the end of the log's latest snapshot, which proves what is committed; 0: it has none."""
    return max((each.id.offset for each in log.checkpoints), default=0)


def _is_cut_off(piece: Piece) -> bool:
    """Return whether the file is there, but shorter than it was to be read."""
    return not _is_gone(piece.path) and store_of(piece.path).size(piece.path) < piece.end


def _is_gone(path: str) -> bool:
    try:
        store_of(path).size(path)
    except DirectoryError:
        return True
    return False
