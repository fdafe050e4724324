"""`snapshots`: every finished snapshot of metadata, compared with what its log comes to at its offset.

A row for each that is the same, holds a record that no node can load, or cannot be compared, as what precedes it is
gone; of one that differs a row for each thing that does, DIFFERENCES_MAX at most; and so in every mode. Of one that is
damaged, or cannot be read, or whose log is damaged, the mode decides. The log is folded from its beginning, or from the
snapshot that it begins with, never from those that are judged. What a single directory's log holds may not be
committed. Of snapshots that no image is made of, those of user records and that of offset 0, which holds the voters
alone, there are only rows for the damaged ones: a node does not start beside one. Source: KIP-630, KIP-853.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import Difference, differences
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, ImageFailed
from fastquorum.kernels import Kernels
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.base import base_of
from fastquorum.spark.tables.folding import offline
from fastquorum.spark.tables.table import LogTable, Row, error_rows
from fastquorum.storage.identity import LogKind
from fastquorum.storage.images import fold_log, fold_snapshot
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import OffsetAndEpoch

FIELDS: Final = (
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("epoch", pa.int32(), nullable=False),
    pa.field("timestamp", arrow.TIMESTAMP),
    pa.field("verdict", pa.string(), nullable=False),
    *arrow.fields(pa.string(), "kind", "name", "in_log", "in_snapshot", "error"),
)
"""`verdict`: same, differs, damaged, not-replayable, unchecked. `kind` and `name`: of the thing that differs, as `image
diff` has them; `in_log` and `in_snapshot`: what it is, as JSON; null: it is not there. `timestamp`: of the last record
before it."""
DIFFERENCES_MAX: Final = 1000
"""Most differences of one snapshot that become rows."""


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    ids = [each.id for each in sorted(log.checkpoints)]
    if not ids:
        return
    of_images = [each for each in ids if each.offset > 0 and log.kind is LogKind.METADATA]
    stored, kernels = offline(log)
    for snapshot in ids:
        if snapshot not in of_images:
            try:
                stored.checkpoint_state(snapshot)
            except FastQuorumError as error:
                yield from _damaged(snapshot, error, options)
    if of_images:
        yield from _judged(log, of_images, stored, kernels, options)


def _damaged(snapshot: OffsetAndEpoch, error: FastQuorumError, options: ReadOptions) -> Iterator[Row]:
    same = {"offset": snapshot.offset, "epoch": snapshot.epoch, "verdict": "damaged"}
    yield from ({**same, **each} for each in error_rows(error, options, "the snapshot"))


def _judged(
    log: FoundLog, snapshots: Sequence[OffsetAndEpoch], stored: OfflineLog, kernels: Kernels, options: ReadOptions
) -> Iterator[Row]:
    """Judge the snapshots of which images can be made."""
    base = base_of(log, kernels)
    known_from, why = base.known_from, base.error
    damage: FastQuorumError | None = DirectoryError(why, path=min(log.segments).path) if why else None
    fold = Fold(make=kernels.untracked)
    if base.checkpoint is not None:
        try:
            fold = fold_snapshot(stored, kernels, base.checkpoint.id)
        except ImageFailed as error:
            why = str(error)
    for snapshot in snapshots:
        row: dict[str, Any] = {"offset": snapshot.offset, "epoch": snapshot.epoch}
        try:
            held = fold_snapshot(stored, kernels, snapshot)
        except (CorruptionError, DirectoryError) as error:
            yield from _damaged(snapshot, error, options)
            continue
        except FastQuorumError as error:
            verdict = "not-replayable" if isinstance(error, ImageFailed) else "unchecked"
            yield {**row, "verdict": verdict, "error": str(error)}
            continue
        if why is None and known_from is not None and snapshot.offset >= known_from:
            try:
                fold = fold_log(stored, kernels, snapshot.offset, after=fold)
            except (CorruptionError, DirectoryError) as error:
                why, damage = str(error), error
            except FastQuorumError as error:
                why = str(error)
        reason = why or ("what precedes it is gone" if snapshot.offset < (known_from or 0) else None)
        if reason is not None:
            yield from _unchecked({**row, "error": reason}, damage, options)
            continue
        row["timestamp"] = arrow.moment(fold.place.timestamp_ms)
        yield from ({**row, **each} for each in _compared(fold, held.image, snapshot))


def _unchecked(row: Row, damage: FastQuorumError | None, options: ReadOptions) -> Iterator[Row]:
    """Yield the row of a snapshot without anything to compare it with. `damage`: that of its log."""
    left_out = f"the snapshot at offset {row['offset']}"
    for _ in [None] if damage is None else error_rows(damage, options, left_out):
        yield {**row, "verdict": "unchecked"}


def _compared(fold: Fold, image: Image, snapshot: OffsetAndEpoch) -> Iterator[Row]:
    found: list[Row] = []
    if fold.place.epoch != snapshot.epoch:
        found.append(_difference("epoch", "", fold.place.epoch, snapshot.epoch))
    if fold.image != image:
        found += map(_row, itertools.islice(differences(fold.image, image), DIFFERENCES_MAX))
    yield from ({"verdict": "differs", **each} for each in found)
    if not found:
        yield {"verdict": "same"}


def _row(each: Difference) -> Row:
    sides: tuple[Any, ...] = (each.before, each.after)
    if None not in sides:
        sides = tuple({name: pair[nth] for name, pair in each.changes.items()} for nth in (0, 1))
    return _difference(each.kind, each.name, *sides)


def _difference(kind: str, name: str, in_log: Any, in_snapshot: Any) -> Row:
    sides = (None if side is None else json.dumps(side, ensure_ascii=False) for side in (in_log, in_snapshot))
    return dict(zip(("kind", "name", "in_log", "in_snapshot"), (kind, name, *sides), strict=True))


SNAPSHOTS: Final = LogTable("snapshots", FIELDS, _rows)
