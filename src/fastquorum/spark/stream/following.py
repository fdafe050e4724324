"""What a stream follows: logs that grow, each known by a name and read up to an offset. Without Spark.

Offsets are of the next record that is wanted, by log; they are what a stream's checkpoint holds. A log that is not
named in them yet is read from where it begins.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa

from fastquorum.client.committed_log import CommittedLog
from fastquorum.errors import OffsetOutOfRange, UsageError
from fastquorum.spark.quorum import BY_BATCH, BY_RECORD, check_table, lost, open_quorum, read_range, split
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stored.options import ReadOptions, Starting
from fastquorum.storage.identity import LogKind
from fastquorum.types import Offset

Offsets = dict[str, int]
_IN_PARTS: Final = BY_RECORD | BY_BATCH
_OF_BATCHES: Final = {"asOfOffset": "as_of_offset", "asOfTimestamp": "as_of_timestamp_ms", "diffFrom": "diff_from"}


class FollowedLogs(Protocol):
    """Logs that are followed. Errors as the data source's: what cannot be reached within `timeout` is NotReady."""

    def begins(self) -> Offsets:
        """Return where each log begins now."""

    def ends(self, start: Mapping[str, int]) -> Offsets:
        """Return up to where each log is committed, exclusive; for logs in `start`, at least that."""

    def tasks(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Any]:
        """Return tasks that read what is between these offsets."""

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Read one task, on an executor."""

    def close(self) -> None:
        """Release everything that is held."""


def check_stream(scan: TableScan) -> None:
    """Raise UsageError if a table, or an option, has no meaning for a stream."""
    options = scan.options
    if options.table not in _IN_PARTS:
        known = ", ".join(sorted(_IN_PARTS))
        raise UsageError(
            f"table {options.table!r} cannot be streamed: it is made of a whole log", f"these can: {known}"
        )
    for name, field in _OF_BATCHES.items():
        if getattr(options, field) is not None:
            raise UsageError(f"option {name} means nothing to a stream", "startingOffset says where it begins")
    if options.bootstrap and options.committed is not None:
        raise UsageError("option committed means nothing to a quorum", "its leader knows what is committed")
    if options.topic is not None:
        raise UsageError("option topic means nothing to a stream", "filter by the column data, or read a batch")


def initial(followed: FollowedLogs, options: ReadOptions) -> Offsets:
    """Return where a stream without a checkpoint begins, by `startingOffset`. OffsetOutOfRange: it is not there."""
    begins = followed.begins()
    match options.starting_offset:
        case Starting.EARLIEST:
            return begins
        case Starting.LATEST:
            return followed.ends({})
        case wanted:
            ends = followed.ends({})
            known = [name for name in ends if name in begins]  # another one is taken in by the next look
            return {name: _within(options, name, int(wanted), begins[name], ends[name]) for name in known}


def _within(options: ReadOptions, name: str, wanted: Offset, begin: Offset, end: Offset) -> Offset:
    if wanted > end:
        raise OffsetOutOfRange(
            f"startingOffset {wanted}: log {name} is committed from {begin} to {end}",
            offset=wanted,
            start_offset=begin,
            end_offset=end,
        )
    if 0 < wanted < begin:
        lost(options, f"log {name}", wanted, begin, end)
    return max(wanted, begin)


def limited(start: Mapping[str, int], end: Mapping[str, int], offsets_max: int | None) -> Offsets:
    """Return ends that are at most `offsets_max` offsets on, shared out among logs by what each has; None: no limit. At
    least one offset if there is any."""
    behind = {name: at - start.get(name, 0) for name, at in end.items()}
    total = sum(behind.values())
    if offsets_max is None or total <= offsets_max:
        return dict(sorted(end.items()))
    shares = {name: offsets_max * count // total for name, count in behind.items()}
    left = offsets_max - sum(shares.values())
    for name in sorted(behind, key=lambda each: (-behind[each], each)):
        more = min(left, behind[name] - shares[name])
        shares[name] += more
        left -= more
    return {name: start.get(name, 0) + shares[name] for name in sorted(end)}


class FollowedQuorum:
    """One running quorum, by its cluster's id."""

    def __init__(self, scan: TableScan) -> None:
        self._scan = scan
        self._log: CommittedLog = open_quorum(scan.options)
        self._kind: LogKind | None = None

    def begins(self) -> Offsets:
        extent = self._log.extent()
        return {extent.cluster_id: extent.start_offset}

    def ends(self, start: Mapping[str, int]) -> Offsets:
        extent = self._log.extent(at_least=max(start.values(), default=0))
        others = [name for name in start if name != extent.cluster_id]
        if others:
            at = self._scan.options.bootstrap
            raise UsageError(
                f"the stream has followed cluster {others[0]}, and {at} is of cluster {extent.cluster_id}",
                "another cluster is another stream: give it a checkpointLocation of its own",
            )
        if self._kind is None:
            check_table(self._scan.table, self._scan.options, extent.kind)
            self._kind = extent.kind
        return {extent.cluster_id: extent.end_offset}

    def tasks(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Any]:
        options = self._scan.options
        found: list[Any] = []
        for cluster_id, last in sorted(end.items()):
            first = start.get(cluster_id, 0)
            if first < last:
                extent = self._log.extent(at_least=last)
                if first < extent.start_offset:
                    lost(options, f"{options.bootstrap}: its log", first, extent.start_offset, extent.end_offset)
                    first = extent.start_offset
                found += split(self._log, options, cluster_id, extent.kind, first, last, starts_within=False)
        return found

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        return read_range(task, self._scan.table, self._scan.options, self._scan.columns)

    def close(self) -> None:
        self._log.close()
