"""Do a log's offsets continue, do its epochs never fall, and are its bytes good? From the headers of its batches.

Source: KIP-101, KIP-595; Raft, section 5.3.
"""

from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels import BatchFault
from fastquorum.spark.pipelines.invariants.findings import NOTHING, SCHEMA, Finding, Kind, Whose, table_of
from fastquorum.spark.pipelines.torn import is_crash, looks_torn
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.storage.identity import LogKind

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
CHECKPOINT_COLUMNS: Final = ("cluster_id", "node_id", "directory", "offset", "is_good")
"""What is read of table `checkpoints`."""
STATE_COLUMNS: Final = (
    "cluster_id",
    "node_id",
    "directory",
    "log_kind",
    "begin_offset",
    "durable_offset",
    "last_epoch_start",
    "is_mark_lost",
    "refused",
    "properties_error",
    "not_started",
    "format",
    "error",
)
"""What is read of table `quorum_state`, which has a row for each directory."""
_NOTHING: Final = -1
_NO_GOING_ON: Final = f"corrupt: {BatchFault.OFFSET}"
"""What a reader says of it."""


class _Kept(NamedTuple):
    """What one log had, whatever became of it."""

    snapshot_end: int
    """Of its newest good snapshot, exclusive; 0: there is none."""
    durable_end: int | None
    """Of its durable mark, exclusive; None: there is none."""
    last_epoch_start: int
    """The first offset of the last epoch that its leader-epoch-checkpoint has; 0: there is none."""
    is_mark_lost: bool
    """It had a durable mark once, and none that can be read is there."""
    begin: int
    """Where its files begin."""
    refused: str | None
    """Why a node does not start on the files that are there; None: it does, as far as they go."""
    is_of_users: bool
    """It has user records. Where a log of metadata begins, `facts.base_facts` looks at."""

    @classmethod
    def of(cls, told: pa.Table) -> Self:
        ends = {name: _most(told, name) for name in ("durable_offset", "last_epoch_start", "begin_offset")}
        good = told.filter(pc.fill_null(told["is_good"], False)) if "is_good" in told.schema.names else told
        is_of_users = "log_kind" in told.schema.names and LogKind.USER in told["log_kind"].to_pylist()
        return cls(
            _most(good, "offset") or 0,
            ends["durable_offset"],
            ends["last_epoch_start"] or 0,
            "is_mark_lost" in told.schema.names and True in told["is_mark_lost"].to_pylist(),
            ends["begin_offset"] or 0,
            _refused(told),
            is_of_users,
        )


def _refused(told: pa.Table) -> str | None:
    said = told["refused"].drop_null().to_pylist() if "refused" in told.schema.names else []
    return next(iter(said), None)


def _most(table: pa.Table, name: str) -> int | None:
    found: int | None = pc.max(table[name]).as_py() if name in table.schema.names else None
    return found


def audit_offsets(batches: pa.Table, told: pa.Table) -> pa.Table:
    """Of the batches of one log, with COLUMNS, in any order, and of what else is told of it, with CHECKPOINT_COLUMNS
    and, in rows of their own, STATE_COLUMNS; of SCHEMA.

    A log without a batch is judged by what it had; if nothing says that, a finding says that there was nothing to look
    at."""
    if batches.num_rows + told.num_rows == 0:
        return SCHEMA.empty_table()
    kept = _Kept.of(told)
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
    last_good = int(good[-1]) if len(good) else _NOTHING
    found = [_damaged(ordered, int(at), last_good, kept) for at in np.flatnonzero(is_bad)]
    # What is damaged behind the last good batch is there, and told.
    is_end_damaged = any(
        each.kind is Kind.BIT_FLIP
        for at, each in zip(np.flatnonzero(is_bad).tolist(), found, strict=True)
        if at > last_good
    )
    for at in gaps.tolist():
        says = f"a batch begins at offset {base[at]}, where {last[at - 1] + 1} was to come"
        found.append(_of(ordered, int(good[at]), Kind.MISSING_SEGMENT, says, int(base[at - 1]), int(epochs[at - 1])))
    for at in falls.tolist():
        says = f"a batch of epoch {epochs[at]} follows one of epoch {epochs[at - 1]}"
        found.append(_of(ordered, int(good[at]), Kind.EPOCH_BACKWARDS, says, int(base[at - 1]), int(epochs[at - 1])))
    end_offset = int(last.max()) + 1 if len(good) else kept.begin
    lost = [] if is_end_damaged else _lost(end_offset, kept)
    if lost:  # an end that looks torn is the lesser thing to say of it
        found = [each for each in found if each.kind is not Kind.TORN_END] + lost
    if kept.is_of_users and kept.begin > kept.snapshot_end:
        says = f"the log begins at offset {kept.begin}, and no snapshot says what was before"
        found.append(Finding(Kind.MISSING_SEGMENT, says, None))
    if not found and not batches.num_rows and not kept.snapshot_end:
        found.append(Finding(Kind.UNCHECKED, NOTHING, None))
    found += _of_state(told, end_offset)
    return table_of(found, Whose.of(ordered if ordered.num_rows else told))


def _of_state(told: pa.Table, end_offset: int) -> list[Finding]:
    """A node does not start where its epoch and vote cannot be read, or are missing beside records; a copy of a log by
    itself may do without them."""
    if "format" not in told.schema.names:
        return []
    lost = told["properties_error"].drop_null().to_pylist() if "properties_error" in told.schema.names else []
    if lost:  # nobody can read the state without them
        return [Finding(Kind.PROPERTIES, lost[0], None)]
    found = []
    for row in told.filter(told["error"].is_valid()).to_pylist():
        if row["format"] is not None:
            found.append(Finding(Kind.QUORUM_STATE, row["error"], None))
        elif row["error"] == NO_STATE and row["node_id"] is not None and end_offset > 0:
            found.append(Finding(Kind.UNCHECKED, NO_STATE, None))
    others = told["not_started"].drop_null().to_pylist() if "not_started" in told.schema.names else []
    if others and not found:
        found.append(Finding(Kind.NOT_STARTED, others[0], None))
    return found


def _lost(end_offset: int, kept: _Kept) -> list[Finding]:
    """Whoever made a snapshot, or fetched one in place of its log, had all that is in it, and what was synced does not
    go by itself: an end below either is no interrupted write."""
    if kept.refused is not None:
        return [Finding(Kind.LOST_RECORDS, kept.refused, end_offset)]
    if kept.snapshot_end > end_offset:
        had = f"its own snapshot is of all below {kept.snapshot_end}"
    elif (kept.durable_end or 0) > end_offset:
        had = f"all below {kept.durable_end} had been synced"
    elif (end_offset == 0 or kept.is_mark_lost) and kept.last_epoch_start > end_offset:
        had = f"its leader-epoch-checkpoint has an epoch that began at offset {kept.last_epoch_start}"
    else:
        return []
    return [Finding(Kind.LOST_RECORDS, f"the log ends at offset {end_offset}, and {had}", end_offset)]


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


def _damaged(ordered: pa.Table, at: int, last_good: int, kept: _Kept) -> Finding:
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
    offset = _expected(ordered, at)
    is_end = at > last_good and at + 1 == ordered.num_rows
    is_torn = is_end and looks_torn(offset, row["base_offset"], row["size_bytes"] or 0)
    if not row["size_bytes"]:
        kind = Kind.MISSING_SEGMENT
    elif is_torn or is_crash(offset, looks_torn=False, durable_end=kept.durable_end, snapshot_end=kept.snapshot_end):
        kind = Kind.TORN_END
    else:
        kind = Kind.BIT_FLIP
    size = f", {row['size_bytes']} bytes" if row["size_bytes"] else ""
    return Finding(kind, f"{row['error']}{size}", None if row["base_offset"] is None else offset)


def _expected(ordered: pa.Table, at: int) -> int:
    """The offset that comes next where a row is."""
    before = ordered.slice(0, at)
    ends = before["last_offset"].filter(before["error"].is_null())
    return int(ordered["segment"][at].as_py() or 0) if len(ends) == 0 else int(pc.max(ends).as_py()) + 1


def _is_behind_gap(ordered: pa.Table, at: int, row: dict[str, Any], before: dict[str, Any]) -> bool:
    """Nothing is wrong with the batch but that it does not follow on the one before. Where what is behind it begins
    before it, the offset itself is damaged, of which no checksum is taken."""
    if _NO_GOING_ON not in row["error"] or (row["base_offset"] or 0) <= before["last_offset"]:
        return False
    behind = ordered.slice(at + 1, 1).to_pylist()
    bases = [each["base_offset"] for each in behind if each["error"] is None]
    return not bases or bases[0] > row["base_offset"]
