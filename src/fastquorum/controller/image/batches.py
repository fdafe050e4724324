"""Folds batches of a metadata log into an image.

Runs of partition records are read natively, many at once; the other records one by one.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final

from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.partition import Partition
from fastquorum.errors import ImageFailed, WireError
from fastquorum.kernels import BatchInfo, Kernels
from fastquorum.types import Offset
from fastquorum.wire.codec.codec import codec_of
from fastquorum.wire.records.metadata import decode_metadata_record


class BatchFolder:
    """Adds batches to folds; their images share equal ids. Used by one thread at a time."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels: Final = kernels
        self._codec: Final = codec_of(kernels)
        self._partitions: Final = kernels.PartitionRows(Partition)

    def take(self, data: bytes, fold: Fold) -> None:
        """Add the records of whole, checked batches from the fold's place on. ImageFailed names the record that does
        not fit."""
        kernels = self._kernels
        for info in kernels.batch_headers(data, verify_crc=False):
            if info.is_control:
                fold.skip(info.last_offset + 1, info.leader_epoch, info.max_timestamp_ms)
                continue
            values = kernels.decode_values(data, info.position, verify_crc=False)
            offsets: Sequence[Offset] = range(info.base_offset, info.last_offset + 1)
            if len(values) != len(offsets):  # as no controller writes them
                offsets = [each.offset for each in kernels.decode_records(data, info.position, verify_crc=False)]
            at, count = bisect_left(offsets, fold.next_offset), len(values)
            while at < count:
                at = self._taken(values, offsets, at, info, fold)

    def _taken(self, values: list[Any], offsets: Sequence[Offset], at: int, info: BatchInfo, fold: Fold) -> int:
        """Add records from `at` on, at least one; return the index behind them."""
        run = self._partitions.read(values, at)
        if run is not None:
            fold.add_run(offsets[at], run, offsets[run.end - 1] + 1, info.leader_epoch, info.max_timestamp_ms)
            return run.end
        try:
            message, _ = decode_metadata_record(values[at] or b"", self._codec)
        except WireError as error:
            raise ImageFailed(f"it is not a metadata record: {error}", "record", offsets[at]) from error
        fold.add(offsets[at], message, info.leader_epoch, info.max_timestamp_ms)
        return at + 1
