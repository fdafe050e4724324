"""`quorum_state`: epoch and vote of each directory, as Kafka's `quorum-state` has them, or our LMDB file; the id
under which it was formatted; where the log's files begin, up to where our durable mark says that it was synced and
known to be committed, where the last epoch began of those that `leader-epoch-checkpoint` has, and why a node would not
start on the files that are there: on its log (`refused`), and on what is beside that (`not_started`).

A row for each of them that is there. One that cannot be read fails the read, is a row with `error`, or is left out, as
the mode has it; where none is there, or two are, a row says so in every mode.
Nothing is opened for writing, mapped or locked. Source: KIP-595 (quorum state), KIP-853 (directory ids).
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import pyarrow as pa

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, StorageFailed
from fastquorum.kernels import BATCH_HEADER_BYTES, load
from fastquorum.raft.election import ElectionState
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.file_kinds import NO_STATE, FileKind, kind_of
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.lost_properties import are_properties_lost
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.store_disk import disk_of, durable_mark_of, epochs_of, file_of
from fastquorum.spark.stored.stores import Entry, store_of
from fastquorum.spark.tables.table import LogTable, Row, error_rows
from fastquorum.storage import names
from fastquorum.storage.contents import check_kind
from fastquorum.storage.format import check_without_log
from fastquorum.storage.identity import Identity, read_identity
from fastquorum.storage.kafka_state import decode_kafka_state
from fastquorum.storage.log.checkpoint import read_checkpoint
from fastquorum.storage.log.inspection import check_bounds, check_emptied
from fastquorum.storage.log.mark import LogPosition, Mark, was_marked
from fastquorum.storage.log.scanning import EPOCH_MAX, bytes_needed, scan_segment
from fastquorum.storage.replacing import damaged_state
from fastquorum.storage.startup import check_state
from fastquorum.storage.state_value import settled, state_in
from fastquorum.types import NO_NODE, NODE_ID_MAX, ZERO_UUID

FIELDS: Final = (
    *arrow.fields(pa.int32(), "epoch", "leader_id", "voted_id"),
    *arrow.fields(pa.string(), "voted_directory_id", "format", "own_directory_id", "log_kind"),
    *arrow.fields(pa.int64(), "begin_offset", "durable_offset", "durable_segment", "durable_position"),
    *arrow.fields(pa.int64(), "committed_offset", "last_epoch_start"),
    pa.field("is_mark_lost", pa.bool_()),
    *arrow.fields(pa.string(), "refused", "properties_error", "not_started", "error"),
)
_OPENED: Final = frozenset(
    {FileKind.LOCK, FileKind.MARK, FileKind.EPOCHS, FileKind.INDEX, FileKind.TIME_INDEX, FileKind.TEMPORARY}
)
"""Files that a node opens, or takes away, when it starts, whatever is in them."""


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    mark = _mark(log)
    same = {
        "own_directory_id": log.directory_id,
        "log_kind": str(log.kind),
        "begin_offset": log.begin_offset,
        "durable_offset": None if mark is None else mark.at.offset,
        "durable_segment": None if mark is None else mark.at.segment_base,
        "durable_position": None if mark is None else mark.at.position,
        "committed_offset": None if mark is None else mark.committed,
        "last_epoch_start": max((start for _, start in epochs_of(log)), default=None),
        "is_mark_lost": mark is None and _had_mark(log),
        "refused": _refused(log, mark),
        "properties_error": _properties_error(log),
    }
    file_fault = same["properties_error"] or _file_fault(log) or _beginning_fault(log)
    # Before the state, which a node writes first; for what was found already, nobody asks.
    last_epoch = _last_epoch(log, mark) if file_fault is None else 0
    for row in _states(log, options):
        yield {**row, **same, "not_started": file_fault or _state_fault(log, row) or _stale_fault(log, row, last_epoch)}


def _state_fault(log: FoundLog, row: Row) -> str | None:
    """Return why a node would not start with this quorum state, which may be missing if it never had to vote."""
    is_needed = row.get("format") is not None or (log.node_id is not None and not _is_empty(log))
    return row.get("error") if is_needed else None


def _stale_fault(log: FoundLog, row: Row, last_epoch: int) -> str | None:
    """Return why a node would not start with this vote beside a log that ends in that epoch, as `startup` says it."""
    if row.get("epoch") is None:
        return None
    name = names.QUORUM_STATE if row["format"] == "fastquorum" else names.KAFKA_STATE
    try:
        check_state(ElectionState(row["epoch"]), end_offset=0, last_epoch=last_epoch, path=f"{log.directory}/{name}")
    except CorruptionError as error:
        return f"{error.path}: {error.detail}"
    return None


def _last_epoch(log: FoundLog, mark: Mark | None) -> int:
    """Return the epoch of the log's last good batch, or of the snapshot behind which an empty log begins; 0 if there is
    neither, or a node is to replace the log."""
    if mark is not None and mark.is_anew:
        return 0
    for segment in sorted(log.segments, key=lambda each: each.base_offset, reverse=True):
        try:
            file, base = file_of(segment.path), segment.base_offset
            scan = scan_segment(load("native"), file, 0, file.size_bytes, expected_offset=base, epoch_min=0)
        except FastQuorumError:
            return 0
        if scan.batch_count:
            return scan.last_epoch
    return max((each.id.epoch for each in log.checkpoints if each.id.offset == log.begin_offset), default=0)


def _beginning_fault(log: FoundLog) -> str | None:
    """Return why a node of ours could not read who votes at first, which it does whatever its log has by now, or would
    not take the log for one of the kind that its directory was formatted for."""
    if not any(each.path == f"{log.directory}/{names.OWN_PROPERTIES}" for each in log.files):
        return None
    try:
        disk, _ = disk_of(log)
        identity: Identity | None = None
        with suppress(DirectoryError):  # lost properties have a column of their own
            identity = read_identity(disk)
        if identity is not None:
            check_kind(disk, load("native"), identity)
        if disk.exists(names.ZERO_CHECKPOINT):
            read_checkpoint(disk, load("native"), names.ZERO_CHECKPOINT)
    except StorageFailed:
        return None  # what cannot be read here, its own row tells of
    except (CorruptionError, DirectoryError) as error:
        return str(error)
    return None


def _file_fault(log: FoundLog) -> str | None:
    """Return why a node could not open a file of its directory that no other column is of; None: it could."""
    odd = [each.error for each in log.files if kind_of(each.name) in _OPENED]
    unread = [_read_fault(log, name) for name in (names.DURABLE_MARK, names.EPOCH_CHECKPOINT)]
    return next((str(each) for each in (*odd, *unread) if each is not None), None)


def _read_fault(log: FoundLog, name: str) -> DirectoryError | None:
    """Return why a file of the log's directory, which is replaced and never removed, cannot be read."""
    entry = log.entry(name)
    try:
        if entry is not None:
            store_of(entry.path).read(entry.path, 0, 1)
    except DirectoryError as error:
        return error
    return None


def _mark(log: FoundLog) -> Mark | None:
    """Our durable mark: up to where the log was synced, and all was known to be committed. None: no good one is there,
    or its node has written it since the log was found."""
    mark = durable_mark_of(log)
    return None if mark is None or _is_later(log, mark.at) else mark


def _refused(log: FoundLog, mark: Mark | None) -> str | None:
    """Return why a node would not start on a log with these files, as `recovery` says it; None: it would, as far as
    that goes, or its node is replacing the log."""
    if mark is not None and mark.is_anew:
        return None
    start = 0 if mark is None else mark.start_offset
    there = [each.name for each in log.files if each.path == f"{log.log_directory}/{each.name}"]
    bases = [each.base_offset for each in log.segments if each.base_offset >= start]
    has_voted = any(each.path == f"{log.directory}/{names.QUORUM_STATE}" for each in log.files)
    try:
        check_bounds(log.log_directory, there, bases, mark, has_voted=has_voted)
        if mark is None and _is_empty(log):
            check_emptied(log.log_directory, had_mark=_had_mark(log))
    except DirectoryError as error:
        return None if bool(bases) != _has_segments(log) else f"{error.detail}: {error.hint}"
    except CorruptionError as error:
        return f"{error.path} is missing, and its durable mark says that it was there"
    return None


def _had_mark(log: FoundLog) -> bool:
    """Return whether the log had a durable mark once. A copy may do without the mark and without the vote."""
    is_ours = names.QUORUM_STATE in log.names or log.entry(names.DURABLE_MARK) is not None
    return is_ours and was_marked(log.names.__contains__)


def _properties_error(log: FoundLog) -> str | None:
    """Return why a node would not start without the files that say whose the directory is, and what its log holds;
    None: they are there, or Kafka's node has none."""
    found = {each.name: each for each in log.files if each.path == f"{log.directory}/{each.name}"}
    try:
        if names.META_PROPERTIES not in found and names.OWN_PROPERTIES in found:
            check_without_log(disk_of(log)[0], load("native"))
        meta, own = (
            store_of(entry.path).read(entry.path) if (entry := found.get(name)) is not None else None
            for name in (names.META_PROPERTIES, names.OWN_PROPERTIES)
        )
        if are_properties_lost(log.names, meta, own):
            read_identity(disk_of(log)[0])
    except DirectoryError as error:
        return str(error)
    return None


def _has_segments(log: FoundLog) -> bool:
    """Return whether the log has segments by now."""
    try:
        there = store_of(log.log_directory).entries(log.log_directory)
    except DirectoryError:
        return False
    return any(names.parse_segment(each.name) is not None for each in there)


def _is_empty(log: FoundLog) -> bool:
    """Return whether the log lacks even a first batch by now, as recovery sees it; no, if that cannot be read."""
    if not log.segments:
        return True
    first = min(log.segments, key=lambda each: each.base_offset)
    try:
        file = file_of(first.path)
        end = min(file.size_bytes, bytes_needed(file.read(0, BATCH_HEADER_BYTES)))
        scan = scan_segment(load("native"), file, 0, end, expected_offset=first.base_offset, epoch_min=0)
    except FastQuorumError:
        return False
    return scan.batch_count == 0


def _is_later(log: FoundLog, at: LogPosition) -> bool:
    """Return whether a position is beyond the files as they were found, and is there by now."""
    segment = next((each for each in log.segments if each.base_offset == at.segment_base), None)
    if segment is not None and at.position <= segment.size_bytes:
        return False
    path = f"{log.log_directory}/{names.segment_name(at.segment_base)}"
    try:
        return at.position <= store_of(path).size(path)
    except DirectoryError:
        return False


def _states(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    found = [each for each in log.files if kind_of(each.name) is FileKind.STATE]
    if not found:
        yield {"error": NO_STATE}
    both = {"error": f"there are {' and '.join(each.name for each in found)}"} if len(found) > 1 else {}
    for each in found:
        form = "fastquorum" if each.name == names.QUORUM_STATE else "kafka"
        try:
            yield {"format": form, **both, **_election_columns(read_state(log, each))}
        except FastQuorumError as error:
            yield from ({"format": form, **row} for row in error_rows(error, options, "the state"))


def read_state(log: FoundLog, entry: Entry) -> ElectionState | None:
    """Read a file of the quorum state; None if nothing was ever saved. CorruptionError, DirectoryError."""
    read = partial(store_of(entry.path).read, entry.path)
    if entry.name != names.QUORUM_STATE:
        state = decode_kafka_state(read(), entry.path)
        voted_id = NO_NODE if state.voted_key is None else state.voted_key.id
        if state.epoch > EPOCH_MAX or max(state.leader_id, voted_id) > NODE_ID_MAX:
            raise damaged_state("state_file", entry.path)
        return state
    owner = read_identity(disk_of(log)[0]).owner
    return settled(read, lambda data: state_in(load("native"), owner, data, entry.path))


def _election_columns(state: ElectionState | None) -> Row:
    if state is None:
        return {}
    voted = state.voted_key
    return {
        "epoch": state.epoch,
        "leader_id": state.leader_id if state.leader_id >= 0 else None,
        "voted_id": None if voted is None else voted.id,
        "voted_directory_id": None if voted is None or voted.directory_id == ZERO_UUID else str(voted.directory_id),
    }


QUORUM_STATE: Final = LogTable("quorum_state", FIELDS, _rows)
