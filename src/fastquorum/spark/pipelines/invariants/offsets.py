"""Do a log's offsets continue, do its epochs never fall, and are its bytes good? From the headers of its batches.

Source: KIP-101, KIP-595; Raft, section 5.3.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels import BatchFault
from fastquorum.spark.pipelines.invariants.findings import SCHEMA, Finding, Kind, Whose, table_of

COLUMNS: Final = (
    "cluster_id",
    "node_id",
    "directory",
    "segment",
    "position",
    "size_bytes",
    "base_offset",
    "last_offset",
    "epoch",
    "base_timestamp",
    "error",
)
"""What is read of table `batches`, damage set aside in `error`."""
CHECKPOINT_COLUMNS: Final = ("directory", "offset", "is_good")
"""What is read of table `checkpoints`."""
_NOTHING: Final = -1
_NO_GOING_ON: Final = f"corrupt: {BatchFault.OFFSET}"
"""What a reader says of it."""


def audit_offsets(batches: pa.Table, checkpoints: pa.Table) -> pa.Table:
    """Of the batches of one log, with COLUMNS, in any order, and of its snapshots, with CHECKPOINT_COLUMNS; of SCHEMA.

    A log without a batch is not judged: one that was replaced by a snapshot has none at first."""
    if batches.num_rows == 0:
        return SCHEMA.empty_table()
    ordered = batches.sort_by([("segment", "ascending"), ("position", "ascending"), ("base_offset", "ascending")])
    is_bad = np.asarray(ordered["error"].is_valid())
    good = np.flatnonzero(~is_bad)
    base, last, epochs = (
        np.asarray(ordered[name].fill_null(_NOTHING), np.int64)[good]
        for name in ("base_offset", "last_offset", "epoch")
    )
    is_next = np.diff(good) == 1
    gaps = np.flatnonzero(is_next & (base[1:] != last[:-1] + 1)) + 1
    falls = np.flatnonzero(epochs[1:] < epochs[:-1]) + 1
    found = [_damaged(ordered, int(at), int(good[-1]) if len(good) else _NOTHING) for at in np.flatnonzero(is_bad)]
    # What is damaged behind the last good batch is there, and told.
    is_end_damaged = any(
        each.kind is Kind.BIT_FLIP
        for at, each in zip(np.flatnonzero(is_bad).tolist(), found, strict=True)
        if len(good) and at > good[-1]
    )
    for at in gaps.tolist():
        says = f"a batch begins at offset {base[at]}, where {last[at - 1] + 1} was to come"
        found.append(_of(ordered, int(good[at]), Kind.MISSING_SEGMENT, says, int(base[at - 1]), int(epochs[at - 1])))
    for at in falls.tolist():
        says = f"a batch of epoch {epochs[at]} follows one of epoch {epochs[at - 1]}"
        found.append(_of(ordered, int(good[at]), Kind.EPOCH_BACKWARDS, says, int(base[at - 1]), int(epochs[at - 1])))
    if len(good) and not is_end_damaged:
        found += _lost(int(last.max()) + 1, checkpoints)
    return table_of(found, Whose.of(ordered))


def _lost(end_offset: int, checkpoints: pa.Table) -> list[Finding]:
    """Whoever made a snapshot, or fetched one in place of its log, had all that is in it: an end below it is no
    interrupted write."""
    newest = pc.max(checkpoints["offset"].filter(pc.fill_null(checkpoints["is_good"], False))).as_py()
    if newest is None or newest <= end_offset:
        return []
    says = f"the log ends at offset {end_offset}, and its own snapshot is of all below {newest}"
    return [Finding(Kind.LOST_RECORDS, says, end_offset)]


def _of(ordered: pa.Table, at: int, kind: Kind, says: str, before_offset: int, before_epoch: int) -> Finding:
    row = ordered.slice(at, 1).to_pylist()[0]
    before = f"a batch of epoch {before_epoch}"
    return Finding(
        kind,
        says,
        row["base_offset"],
        row["epoch"],
        row["base_timestamp"],
        before=before,
        before_offset=before_offset,
    )


def _damaged(ordered: pa.Table, at: int, last_good: int) -> Finding:
    row = ordered.slice(at, 1).to_pylist()[0]
    before = ordered.slice(at - 1, 1).to_pylist()[0] if at > 0 else None
    if before is not None and before["error"] is None and _is_behind_gap(ordered, at, row, before):
        says = f"a batch begins at offset {row['base_offset']}, where {before['last_offset'] + 1} was to come"
        said = f"{says}: {row['error']}, {row['size_bytes']} bytes"
        return Finding(
            Kind.MISSING_SEGMENT,
            said,
            row["base_offset"],
            before=f"a batch of epoch {before['epoch']}",
            before_offset=before["base_offset"],
        )
    is_end = at > last_good and at + 1 == ordered.num_rows
    if not row["size_bytes"]:
        kind = Kind.MISSING_SEGMENT
    elif is_end and BatchFault.TRUNCATED in row["error"]:
        kind = Kind.TORN_END
    else:
        kind = Kind.BIT_FLIP
    return Finding(kind, f"{row['error']}, {row['size_bytes'] or 0} bytes", row["base_offset"])


def _is_behind_gap(ordered: pa.Table, at: int, row: dict[str, Any], before: dict[str, Any]) -> bool:
    """Nothing is wrong with the batch but that it does not follow on the one before. Where what is behind it begins
    before it, the offset itself is damaged, of which no checksum is taken."""
    if _NO_GOING_ON not in row["error"] or (row["base_offset"] or 0) <= before["last_offset"]:
        return False
    behind = ordered.slice(at + 1, 1).to_pylist()
    bases = [each["base_offset"] for each in behind if each["error"] is None]
    return not bases or bases[0] > row["base_offset"]
