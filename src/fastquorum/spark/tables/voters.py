"""`voters`: who made up the quorum from which offset on; a row for each voter and endpoint of each set.

A set is in force from its own record on (KIP-853). Those of the log are told by the log; what was before it by the
checkpoint that it begins with, and what is behind it by checkpoints that know more. At kraft.version 0 the voters are
those of our `fastquorum.properties`; Kafka keeps them in its configuration, which is not in the directory.

Bounds leave out sets that were not in force at any record within them.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, WireError
from fastquorum.kernels import BatchFault, Kernels, RowReader, load
from fastquorum.kernels.rows import EVERY_ROW, RowFault, RowFilter, Rows, Want, control_row_type
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import Damage, Mode, handle_damage, rows_of
from fastquorum.spark.stored.splits import Piece, checkpoint_piece, log_pieces
from fastquorum.spark.stored.store_disk import disk_of, file_of
from fastquorum.spark.tables.table import BOUNDS, LogTable, Row, RowExtent, bounds_of
from fastquorum.storage import names
from fastquorum.storage.identity import read_identity
from fastquorum.storage.log.checkpoint import check_checkpoint
from fastquorum.storage.log.voter_sets import voter_set
from fastquorum.types import ZERO_UUID, Endpoint, OffsetAndEpoch, VoterSet
from fastquorum.wire import Message
from fastquorum.wire.records.control import ControlRecordType, decode_control_record
from fastquorum.wire.records.control_values import KRaftVersionRecord, VotersRecord
from fastquorum.wire.records.row_layouts import record_layouts

FIELDS: Final = (
    pa.field("offset", pa.int64()),
    pa.field("epoch", pa.int32()),
    pa.field("timestamp", arrow.TIMESTAMP),
    pa.field("source", pa.string()),
    pa.field("kraft_version", pa.int16()),
    pa.field("voter_id", pa.int32()),
    *arrow.fields(pa.string(), "directory_id", "listener", "host"),
    pa.field("port", pa.int32()),
    *arrow.fields(pa.int16(), "kraft_version_min", "kraft_version_max"),
    pa.field("error", pa.string()),
)
_TYPES: Final = frozenset(
    control_row_type(kind) for kind in (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS)
)
_NO_EPOCH: Final = -1
_NO_ENDPOINT: Final = Endpoint("", "", -1)


class _Set(NamedTuple):
    """Voters, from an offset on."""

    offset: int
    epoch: int
    timestamp_ms: int
    source: str
    """The file's name."""
    kraft_version: int | None
    """None: nothing says it."""
    voters: VoterSet

    @property
    def is_static(self) -> bool:
        """Whether the set is the one that the directory was formatted with."""
        return self.epoch == _NO_EPOCH


class _Control(NamedTuple):
    """A control record of the log."""

    offset: int
    epoch: int
    timestamp_ms: int
    source: str
    message: Message


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    kernels = load("native")
    sets: list[_Set] = []
    for found in _sets(log, options.mode, kernels):
        if isinstance(found, Damage):
            yield _damaged(found)
        else:
            sets.append(found)
    sets.sort(key=lambda each: each.offset)
    wanted = bounds_of(options)
    for each, following in pairwise([*sets, None]):
        assert each is not None
        if _is_in(wanted, each, following):
            yield from _voters(each)


def _sets(log: FoundLog, mode: Mode, kernels: Kernels) -> Iterator[_Set | Damage]:
    # As if it held user records: of those that are not control records nothing is looked at.
    reader = kernels.RowReader(record_layouts(), Want.KEYS | Want.VALUES, RowFilter(types=_TYPES), is_metadata=False)
    logged = list(_of_log(log, reader, mode, kernels))
    yield from _static(log, mode)
    version: int | None = None
    for piece, snapshot in _checkpoints(log, reader.next_offset):
        for found in _of_checkpoint(piece, snapshot, mode, kernels):
            if isinstance(found, _Set):
                version = found.kraft_version
            yield found
    for control in logged:
        if isinstance(control, Damage):
            yield control
            continue
        match control.message:
            case KRaftVersionRecord() as record:
                version = record.kraft_version
            case VotersRecord() as record:
                voters = voter_set(record)
                yield _Set(control.offset, control.epoch, control.timestamp_ms, control.source, version, voters)


# --- where sets are found ---------------------------------------------------------------------------------------------


def _static(log: FoundLog, mode: Mode) -> Iterator[_Set | Damage]:
    own = next((each for each in log.files if each.name == names.OWN_PROPERTIES), None)
    if own is None:
        return
    try:
        identity = read_identity(disk_of(log)[0])
    except FastQuorumError as error:
        piece = Piece(log.cluster_id, log.node_id, log.directory, log.kind, own.path, 0, 0, own.size_bytes)
        yield from handle_damage(Damage(piece, 0, -1, b"", str(error)), error, mode)
        return
    if identity.kraft_version == 0 and identity.voters:
        yield _Set(0, _NO_EPOCH, -1, names.OWN_PROPERTIES, 0, identity.voters)


def _checkpoints(log: FoundLog, end_offset: int) -> list[tuple[Piece, OffsetAndEpoch]]:
    """Return the snapshots that have what the log, which ends there, does not. -1: its end is not known."""
    start_offset = log.begin_offset
    found = [(checkpoint_piece(log, each), each.id) for each in sorted(log.checkpoints)]
    before = [each for each in found if each[1].offset <= start_offset]
    behind = [each for each in found if each[1].offset > max(start_offset, end_offset)]
    if not before and start_offset > 0:
        before = [each for each in found if each not in behind][:1]
    return before + behind


def _of_checkpoint(piece: Piece, snapshot: OffsetAndEpoch, mode: Mode, kernels: Kernels) -> Iterator[_Set | Damage]:
    try:
        state = check_checkpoint(kernels, file_of(piece.path), snapshot.epoch)
    except (CorruptionError, DirectoryError) as error:
        position = error.position if isinstance(error, CorruptionError) else -1
        yield from handle_damage(Damage(piece, position, snapshot.offset, b"", str(error)), error, mode)
        return
    if state.voters is not None:
        source = piece.path.rpartition("/")[2]
        yield _Set(snapshot.offset, snapshot.epoch, state.last_contained_ms, source, state.kraft_version, state.voters)


def _of_log(log: FoundLog, reader: RowReader, mode: Mode, kernels: Kernels) -> Iterator[_Control | Damage]:
    for piece in log_pieces(log):
        for found in rows_of(piece, kernels, reader, mode):
            if isinstance(found, Damage):
                yield found
            else:
                yield from _controls(piece, found, mode)


def _controls(piece: Piece, rows: Rows, mode: Mode) -> Iterator[_Control | Damage]:
    assert rows.keys is not None
    assert rows.values is not None
    source = piece.path.rpartition("/")[2]
    numbers = zip(rows.offsets.tolist(), rows.epochs.tolist(), rows.timestamps_ms.tolist(), strict=True)
    texts = zip(arrow.binaries(rows.keys).to_pylist(), arrow.binaries(rows.values).to_pylist(), strict=True)
    for (offset, epoch, timestamp_ms), (key, value), fault in zip(numbers, texts, rows.faults.tolist(), strict=True):
        try:
            message = decode_control_record(key or b"", value or b"")[1]
            if isinstance(message, VotersRecord):
                voter_set(message)
        except WireError as cause:
            damage = Damage(piece, -1, offset, value or b"", str(cause))
            if fault == RowFault.UNKNOWN_TYPE:
                yield damage  # newer than this: nothing is wrong with it
            else:
                yield from handle_damage(
                    damage, CorruptionError(BatchFault.RECORD, offset=offset, path=piece.path), mode
                )
        else:
            yield _Control(offset, epoch, timestamp_ms, source, message)


# --- rows -------------------------------------------------------------------------------------------------------------


def _is_in(wanted: RowFilter, each: _Set, following: _Set | None) -> bool:
    """Return whether a set was in force at records within the bounds. It outlives the epoch in which it came."""
    end_offset, end_ms = (-1, -1) if following is None else (following.offset, following.timestamp_ms)
    last_epoch = max(each.epoch, wanted.epoch_min) if following is None else following.epoch
    is_in_epochs = each.epoch < wanted.epoch_max and last_epoch >= wanted.epoch_min
    anytime = wanted._replace(epoch_min=EVERY_ROW.epoch_min, epoch_max=EVERY_ROW.epoch_max)
    return is_in_epochs and RowExtent(each.offset, end_offset, each.epoch, each.timestamp_ms, end_ms).is_in(anytime)


def _voters(each: _Set) -> Iterator[Row]:
    for voter in each.voters:
        for endpoint in voter.endpoints or (_NO_ENDPOINT,):
            yield {
                "offset": each.offset,
                "epoch": None if each.is_static else each.epoch,
                "timestamp": arrow.moment(each.timestamp_ms),
                "source": each.source,
                "kraft_version": each.kraft_version,
                "voter_id": voter.key.id,
                "directory_id": str(voter.key.directory_id) if voter.key.directory_id != ZERO_UUID else None,
                "listener": endpoint.name or None,
                "host": endpoint.host or None,
                "port": endpoint.port if endpoint.port >= 0 else None,
                "kraft_version_min": None if each.is_static else voter.kraft_version_min,
                "kraft_version_max": None if each.is_static else voter.kraft_version_max,
            }


def _damaged(damage: Damage) -> Row:
    return {
        "offset": damage.offset if damage.offset >= 0 else None,
        "source": damage.piece.path.rpartition("/")[2],
        "error": damage.error,
    }


VOTERS: Final = LogTable("voters", FIELDS, _rows, BOUNDS)
