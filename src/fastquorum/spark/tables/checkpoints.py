"""`checkpoints`: every finished snapshot, with every byte of it checked.

One that is damaged, or cannot be read, fails the read, is a row that is not good, or is left out, as the mode has it.
One that ends at offset N stands for the records below N, so that bounds take in both N itself and what ends there.
Source: KIP-630, KIP-853.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels, load
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import Checkpoint, FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.store_disk import file_of
from fastquorum.spark.tables.table import LogTable, Row, bounds_of, error_rows
from fastquorum.storage.log.checkpoint import scan_checkpoint

FIELDS: Final = (
    pa.field("offset", pa.int64()),
    pa.field("epoch", pa.int32()),
    *arrow.fields(pa.int64(), "size_bytes", "records"),
    pa.field("last_contained_timestamp", arrow.TIMESTAMP),
    pa.field("kraft_version", pa.int16()),
    pa.field("voters", pa.list_(pa.int32())),
    pa.field("is_good", pa.bool_()),
    pa.field("error", pa.string()),
)
_TAKES: Final = frozenset({"fromOffset", "toOffset", "asOfOffset", "diffFrom", "fromEpoch", "toEpoch"})


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    kernels = load("native")
    wanted = bounds_of(options)
    for each in sorted(log.checkpoints):
        is_within = wanted.offset_min <= each.id.offset <= wanted.offset_max
        if is_within and wanted.epoch_min <= each.id.epoch < wanted.epoch_max:
            same = {"offset": each.id.offset, "epoch": each.id.epoch, "size_bytes": each.size_bytes}
            try:
                yield {**same, **_contents(each, kernels)}
            except FastQuorumError as error:
                yield from ({**same, "is_good": False, **row} for row in error_rows(error, options, "the snapshot"))


def _contents(checkpoint: Checkpoint, kernels: Kernels) -> Row:
    """Return what a snapshot holds. CorruptionError, DirectoryError."""
    state, scan = scan_checkpoint(kernels, file_of(checkpoint.path), checkpoint.id.epoch)
    return {
        "records": scan.record_count,
        "last_contained_timestamp": arrow.moment(state.last_contained_ms),
        "kraft_version": state.kraft_version,
        "voters": None if state.voters is None else list(state.voters.ids),
        "is_good": True,
    }


CHECKPOINTS: Final = LogTable("checkpoints", FIELDS, _rows, _TAKES)
