"""The tables of a running quorum: what is committed of its log, fetched from whoever leads, and read as any log is.

Each task fetches its own range of offsets into a directory of its own, and the tables read that: so they are the same
tables, from the same kernels, in as much memory. What is committed does not change, so it is the same from any leader.
There are no segments in it (`segment` is -1), no file positions, and no node whose it is; `directory` names the quorum.
"""

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa

from fastquorum.client.committed_log import CommittedLog, Extent
from fastquorum.client.endpoints import parse_endpoints
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError, NotReady, OffsetOutOfRange, UsageError
from fastquorum.kernels import load
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import Checkpoint, FoundLog, StoredSegment
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.table import Row, SourceTable, bounds_of
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.types import ZERO_UUID, Offset, OffsetAndEpoch

_LOG: Final = logging.getLogger(__name__)
BY_RECORD: Final = frozenset({"records", "control"})
"""Tables that can be read by ranges of offsets."""
BY_BATCH: Final = frozenset({"batches"})
"""Tables that can be read by ranges; a batch belongs to the range in which it begins."""
_OF_DIRECTORIES: Final = frozenset({"files", "checkpoints", "quorum_state"})
_NO_SEGMENT: Final = -1
SAMPLE_OFFSETS: Final = 20_000
"""Offsets of one task, if their size in bytes is not known."""
_DRAFT: Final = "draft"
_VOTERS: Final = "voters"
_REQUEST: Final = "DescribeQuorum"
"""Source of a voter set that a request returned, in place of a file's name."""


class QuorumRange(NamedTuple):
    """What one task fetches: batches of [start, end), all of it committed. Travels to executors."""

    cluster_id: str
    kind: LogKind
    start: Offset
    end: Offset
    is_first: bool
    """The batch that holds `start`, and begins before, is of this one."""
    is_whole: bool
    """With the snapshot that the log begins with, if it begins with one."""


def open_quorum(options: ReadOptions, cluster_id: str | None = None) -> CommittedLog:
    """Return a client of the quorum's committed log; it does not connect yet. While no leader is found for a while, it
    logs a warning, which Python shows on stderr unless a program configured logging. UsageError if an address is
    invalid."""
    kernels = load("native")
    client = QuorumClient(parse_endpoints("option bootstrap", options.bootstrap), kernels, _LOG.warning)
    return CommittedLog(client, kernels, options.timeout_s, cluster_id)


# --- planning ---------------------------------------------------------------------------------------------------------


def quorum_ranges(table: SourceTable, options: ReadOptions) -> list[QuorumRange]:
    """Plan a batch read of a table: one range for each task.

    Raises:
        NotReady: no leader answers within the option `timeout`.
        UsageError: the table, or an option, means nothing to a quorum.
        OffsetOutOfRange: it ends, or the log begins, elsewhere.
    """
    with open_quorum(options) as log:
        extent = log.extent()
        check_table(table, options, extent.kind)
        start, end = _bounds(options, extent)
        if table.name not in BY_RECORD | BY_BATCH or options.topic is not None:
            # A topic's name is told by records that may be anywhere.
            return [_whole(options, extent)]
        return split(log, options, extent.cluster_id, extent.kind, start, end, starts_within=True)


def _whole(options: ReadOptions, extent: Extent) -> QuorumRange:
    end = extent.end_offset if options.as_of_offset is None else options.as_of_offset
    first = min((each for each in (options.as_of_offset, options.diff_from) if each is not None), default=end)
    if extent.snapshot is not None and first < extent.snapshot.offset:
        begins = extent.snapshot.offset
        raise OffsetOutOfRange(
            f"{options.bootstrap}: what precedes offset {begins} is in a snapshot as a whole, and nothing is known of "
            f"offset {first}",
            offset=first,
            start_offset=begins,
            end_offset=extent.end_offset,
        )
    return QuorumRange(extent.cluster_id, extent.kind, extent.start_offset, end, True, True)


def check_table(table: SourceTable, options: ReadOptions, kind: LogKind) -> None:
    """UsageError, as the table has it for a log of that kind."""
    if table.name in _OF_DIRECTORIES:
        raise UsageError(f"table {table.name!r} is of directories, and a quorum shows none", "name a path")
    named = options._replace(path=options.bootstrap)
    table.tasks([FoundLog(options.bootstrap, options.bootstrap, None, None, kind, (), (), ())], named)


def _bounds(options: ReadOptions, extent: Extent) -> tuple[Offset, Offset]:
    wanted = options.as_of_offset
    if wanted is not None and wanted > extent.end_offset:
        raise OffsetOutOfRange(
            f"asOfOffset {wanted}: up to offset {extent.end_offset} is committed",
            offset=wanted,
            start_offset=extent.start_offset,
            end_offset=extent.end_offset,
        )
    bounds = bounds_of(options)
    end = min(bounds.offset_max, extent.end_offset)
    start = bounds.offset_min
    if 0 < start < extent.start_offset:
        lost(options, f"{options.bootstrap}: its log", start, extent.start_offset, extent.end_offset)
    return max(start, extent.start_offset), end


def lost(options: ReadOptions, owner: str, wanted: Offset, start_offset: Offset, end_offset: Offset) -> None:
    """Report that wanted offsets were removed: raise OffsetOutOfRange, or warn, as option `failOnDataLoss` says."""
    text = f"{owner} no longer holds offset {wanted}: it begins at {start_offset}"
    if (wanted, start_offset) == (0, 1):
        return  # the first leader's own record, which Kafka serves until it has a snapshot
    if options.fail_on_data_loss:
        raise OffsetOutOfRange(
            f"{text} and ends at {end_offset}; option failOnDataLoss=false goes on there",
            offset=wanted,
            start_offset=start_offset,
            end_offset=end_offset,
        )
    warnings.warn(f"{text}: {start_offset - wanted} offsets are left out", RuntimeWarning, stacklevel=2)


def split(
    log: CommittedLog,
    options: ReadOptions,
    cluster_id: str,
    kind: LogKind,
    start: Offset,
    end: Offset,
    *,
    starts_within: bool,
) -> list[QuorumRange]:
    """[start, end), shared out by the size of the batches at its start."""
    step = end - start
    if step > SAMPLE_OFFSETS:
        data = log.fetch(start, end)
        if isinstance(data, bytes):
            bytes_each = len(data) / max(log.end_of(data) - start, 1)
            step = max(int(options.split_bytes / max(bytes_each, 1e-3)), SAMPLE_OFFSETS)
    return [
        QuorumRange(cluster_id, kind, at, min(at + step, end), at == start and starts_within, False)
        for at in range(start, end, max(step, 1))
    ]


# --- reading ----------------------------------------------------------------------------------------------------------


def read_range(
    task: QuorumRange, table: SourceTable, options: ReadOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a range, on the executor that has its task.

    Raises:
        NotReady: no leader serves it within the option `timeout`.
        OffsetOutOfRange: it was removed meanwhile, and `failOnDataLoss` is not false.
        FastQuorumError: as the table has it.
    """
    if not task.is_whole and table.name in BY_RECORD:
        bounds = bounds_of(options)
        options = options._replace(
            from_offset=max(bounds.offset_min, task.start), to_offset=min(bounds.offset_max, task.end)
        )
    with tempfile.TemporaryDirectory(prefix="fastquorum-") as root:
        try:
            has_rows = False
            found = _fetched(task, table, options, root)
            for each in (part for log in found for part in table.tasks([log], options)):
                for batch in table.read(each, options, columns):
                    has_rows = has_rows or batch.num_rows > 0
                    yield _named(batch, options)
            if table.name == _VOTERS and not has_rows:
                yield arrow.batch_of(arrow.pruned(table.schema, columns), _configured(task, options))
        except FastQuorumError as error:
            raise _about(error, root, options.bootstrap) from error


def _configured(task: QuorumRange, options: ReadOptions) -> list[Row]:
    """Return rows of voters that no record names: each node's configuration does, and the leader reports them."""
    with open_quorum(options, task.cluster_id) as log:
        response = log.voters()
    listeners = {node.node_id: node.listeners for node in response.nodes}
    same: Row = {"cluster_id": task.cluster_id, "directory": options.bootstrap, "offset": 0, "source": _REQUEST}
    rows: list[Row] = []
    for voter in response.topics[0].partitions[0].current_voters:
        known = str(voter.replica_directory_id) if voter.replica_directory_id != ZERO_UUID else None
        row = {**same, "voter_id": voter.replica_id, "directory_id": known}
        for each in listeners.get(voter.replica_id, []):
            rows.append({**row, "listener": each.name, "host": each.host, "port": each.port})
        if not listeners.get(voter.replica_id):
            rows.append(row)
    return rows


def _fetched(task: QuorumRange, table: SourceTable, options: ReadOptions, root: str) -> list[FoundLog]:
    """Fetch the range into a directory of its own, as a log; behind removed offsets another log begins."""
    directory = os.path.join(root, names.LOG_DIRECTORY)
    os.mkdir(directory)
    drops_first = table.name in BY_BATCH and not task.is_first
    with open_quorum(options, task.cluster_id) as log:
        checkpoints = _snapshot(log, directory) if task.is_whole and task.start > 0 else ()
        segments = _copied(log, task, options, directory, drops_first=drops_first)
    whole = FoundLog(root, directory, task.cluster_id, None, task.kind, segments, checkpoints, ())
    if task.is_whole or not segments:
        return [whole]  # of a whole log nothing may be missing in between
    return [whole._replace(segments=(each,)) for each in segments]


def _snapshot(log: CommittedLog, directory: str) -> tuple[Checkpoint, ...]:
    if log.extent().snapshot is None:
        return ()
    path = os.path.join(directory, _DRAFT)
    with open(path, "w+b") as file:
        snapshot: OffsetAndEpoch = log.copy_snapshot(file)
        size_bytes = file.tell()
    named = os.path.join(directory, names.checkpoint_name(snapshot))
    os.rename(path, named)
    return (Checkpoint(snapshot, named, size_bytes),)


def _copied(
    log: CommittedLog, task: QuorumRange, options: ReadOptions, directory: str, *, drops_first: bool
) -> tuple[StoredSegment, ...]:
    """Copy the batches of the range into segments; wherever offsets were removed, a new segment begins."""
    found: list[StoredSegment] = []
    path, at = os.path.join(directory, _DRAFT), task.start
    while at < task.end:
        with open(path, "w+b") as file:
            base_offset, at = _copy(log, task, at, file, drops_first=drops_first)
            size_bytes = file.tell()
        if size_bytes:
            named = os.path.join(directory, names.segment_name(base_offset))
            os.rename(path, named)
            found.append(StoredSegment(base_offset, named, size_bytes))
        if at < task.end:
            begins = log.extent().start_offset
            if begins <= at:  # what was read is never read again
                raise NotReady(f"offset {at} was reported as gone, and is there: the log begins at {begins}")
            lost(options, f"{options.bootstrap}: its log", at, begins, task.end)
            at = begins
    return tuple(found)


def _copy(
    log: CommittedLog, task: QuorumRange, at: Offset, file: BinaryIO, *, drops_first: bool
) -> tuple[Offset, Offset]:
    """Copy batches from `at` on into a file. Return where the first one begins, and the offset behind the last one.
    That is below the range's end if what follows was removed."""
    first = -1
    while at < task.end:
        data = log.fetch(at, task.end)
        if isinstance(data, OffsetAndEpoch):
            break
        at = log.end_of(data)
        if drops_first:
            drops_first = False
            data = data[log.position_of(data, task.start) :]
        if data and first < 0:
            first = int.from_bytes(data[:8], "big")
        file.write(data)
    return first, at


def _named(batch: pa.RecordBatch, options: ReadOptions) -> pa.RecordBatch:
    """Return rows that name the quorum as their directory, and no segment or file position."""
    same = {"directory": options.bootstrap, "segment": _NO_SEGMENT, "position": None}
    columns = [
        arrow.same(same[field.name], field.type, batch.num_rows) if field.name in same else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _about(error: FastQuorumError, root: str, bootstrap: str) -> FastQuorumError:
    """Return the error with the quorum's name in place of the temporary directory."""
    fields = {
        name: value.replace(root, bootstrap) if isinstance(value, str) else value
        for name, value in error.as_fields().items()
    }
    return type(error)(**fields)
