"""`replay`: does each metadata log fold into an image, record by record, as its node replays it? One row for each log.

The log is folded from its beginning, or from the snapshot that it begins with, so that no later snapshot hides a record
that does not fit; the row names the first of these, in every mode. What a single directory's log holds may not be
committed.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from fastquorum.controller.image.fold import Fold
from fastquorum.errors import ImageFailed
from fastquorum.kernels import Kernels
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.base import base_of
from fastquorum.spark.tables.folding import offline
from fastquorum.spark.tables.table import LogTable, Row
from fastquorum.storage.identity import LogKind
from fastquorum.storage.images import fold_log, fold_snapshot
from fastquorum.storage.offline import OfflineLog

FIELDS: Final = (
    *arrow.fields(pa.int64(), "end_offset", "offset"),
    pa.field("epoch", pa.int32()),
    pa.field("timestamp", arrow.TIMESTAMP),
    pa.field("error", pa.string()),
)
"""`end_offset`: behind the last record, exclusive, if all fit. `offset`: of the first that does not fit, with the epoch
and the latest timestamp of its batch; null with an `error`: what was before the log is not known, or damaged."""


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    if log.kind is not LogKind.METADATA:
        return
    stored, kernels = offline(log)
    base = base_of(log, kernels)
    if base.error is not None:
        yield {"error": base.error}
        return
    fold = Fold(make=kernels.untracked)
    if base.checkpoint is not None:
        try:
            fold = fold_snapshot(stored, kernels, base.checkpoint.id)
        except ImageFailed as error:
            yield {"error": f"{base.checkpoint.path}: {error}"}
            return
    yield _replayed(stored, kernels, fold)


def _replayed(stored: OfflineLog, kernels: Kernels, fold: Fold) -> Row:
    """Replay the rest of the log, and return its row. CorruptionError, DirectoryError."""
    try:
        return {"end_offset": fold_log(stored, kernels, after=fold).next_offset}
    except ImageFailed as error:
        batch = next(stored.batches(error.offset)).info
        place = {"epoch": batch.leader_epoch, "timestamp": arrow.moment(batch.max_timestamp_ms)}
        return {"offset": error.offset, **place, "error": str(error)}


REPLAY: Final = LogTable("replay", FIELDS, _rows)
