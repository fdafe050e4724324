"""Do a log's offsets continue, do its epochs never fall, and are its bytes good? From the headers of its batches.

Source: KIP-101, KIP-595; Raft, section 5.3.
"""

from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels import BatchFault
from fastquorum.spark.pipelines.audit_replicas import BATCH_COLUMNS
from fastquorum.spark.pipelines.invariants.findings import NOTHING, SCHEMA, FindingKind, LogFinding, LogOwner, table_of
from fastquorum.spark.pipelines.torn import is_crash, looks_torn
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.storage.identity import LogKind

COLUMNS: Final = (*BATCH_COLUMNS, "base_timestamp")
"""Columns that are read from table `batches`, damage set aside in `error`."""
CHECKPOINT_COLUMNS: Final = (*arrow.OWNER, "offset", "is_good")
"""Columns that are read from table `checkpoints`."""
STATE_COLUMNS: Final = (
    *arrow.OWNER,
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
"""Columns that are read from table `quorum_state`, which has a row for each directory."""
_NOTHING: Final = -1
_NO_GOING_ON: Final = f"corrupt: {BatchFault.OFFSET}"
"""Error of a reader for such offsets."""


class _Kept(NamedTuple):
    """What one log once had."""

    snapshot_end: int
    """End of its newest good snapshot, exclusive; 0: it has none."""
    durable_end: int | None
    """Its durable mark, exclusive; None: it has none."""
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
    def of(cls, states: pa.Table) -> Self:
        good = states.filter(pc.fill_null(states["is_good"], False)) if "is_good" in states.schema.names else states
        return cls(
            max(_stated(good, "offset"), default=0),
            max(_stated(states, "durable_offset"), default=None),
            max(_stated(states, "last_epoch_start"), default=0),
            True in _stated(states, "is_mark_lost"),
            max(_stated(states, "begin_offset"), default=0),
            next(iter(_stated(states, "refused")), None),
            LogKind.USER in _stated(states, "log_kind"),
        )


def _stated(states: pa.Table, name: str) -> list[Any]:
    """Return what rows say in a column; nothing, if it is not there."""
    return states[name].drop_null().to_pylist() if name in states.schema.names else []


def audit_offsets(batches: pa.Table, states: pa.Table) -> pa.Table:
    """Audit the batches (COLUMNS) of one log, in any order; return findings (SCHEMA). `states`: rows of
    CHECKPOINT_COLUMNS and of STATE_COLUMNS.

    A log without a batch is judged by what it had; if nothing says that, a finding says that there was nothing to look
    at."""
    if batches.num_rows + states.num_rows == 0:
        return SCHEMA.empty_table()
    kept = _Kept.of(states)
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
        each.kind is FindingKind.BIT_FLIP
        for at, each in zip(np.flatnonzero(is_bad).tolist(), found, strict=True)
        if at > last_good
    )
    for at in gaps.tolist():
        says = f"a batch begins at offset {base[at]}, where {last[at - 1] + 1} was to come"
        found.append(
            _of(ordered, int(good[at]), FindingKind.MISSING_SEGMENT, says, int(base[at - 1]), int(epochs[at - 1]))
        )
    for at in falls.tolist():
        says = f"a batch of epoch {epochs[at]} follows one of epoch {epochs[at - 1]}"
        found.append(
            _of(ordered, int(good[at]), FindingKind.EPOCH_BACKWARDS, says, int(base[at - 1]), int(epochs[at - 1]))
        )
    end_offset = int(last.max()) + 1 if len(good) else kept.begin
    lost = [] if is_end_damaged else _lost(end_offset, kept)
    if lost:  # an end that looks torn is the lesser thing to say of it
        found = [each for each in found if each.kind is not FindingKind.TORN_END] + lost
    if kept.is_of_users and kept.begin > kept.snapshot_end:
        says = f"the log begins at offset {kept.begin}, and no snapshot says what was before"
        found.append(LogFinding(FindingKind.MISSING_SEGMENT, says, None))
    if not found and not batches.num_rows and not kept.snapshot_end:
        found.append(LogFinding(FindingKind.UNCHECKED, NOTHING, None))
    found += _of_state(states, end_offset)
    return table_of(found, LogOwner.of(ordered if ordered.num_rows else states))


def _of_state(states: pa.Table, end_offset: int) -> list[LogFinding]:
    """Find an epoch or vote that cannot be read, or is missing beside records: a node does not start with that. A copy
    of a log by itself may do without them."""
    if "format" not in states.schema.names:
        return []
    lost = _stated(states, "properties_error")
    if lost:  # nobody can read the state without them
        return [LogFinding(FindingKind.PROPERTIES, lost[0], None)]
    found = []
    for row in states.filter(states["error"].is_valid()).to_pylist():
        if row["format"] is not None:
            found.append(LogFinding(FindingKind.QUORUM_STATE, row["error"], None))
        elif row["error"] == NO_STATE and row["node_id"] is not None and end_offset > 0:
            found.append(LogFinding(FindingKind.UNCHECKED, NO_STATE, None))
    others = _stated(states, "not_started")
    if others and not found:
        found.append(LogFinding(FindingKind.NOT_STARTED, others[0], None))
    return found


def _lost(end_offset: int, kept: _Kept) -> list[LogFinding]:
    """Whoever made a snapshot, or fetched one in place of its log, had all that is in it, and what was synced does not
    go by itself: an end below either is no interrupted write."""
    if kept.refused is not None:
        return [LogFinding(FindingKind.LOST_RECORDS, kept.refused, end_offset)]
    if kept.snapshot_end > end_offset:
        had = f"its own snapshot is of all below {kept.snapshot_end}"
    elif (kept.durable_end or 0) > end_offset:
        had = f"all below {kept.durable_end} had been synced"
    elif (end_offset == 0 or kept.is_mark_lost) and kept.last_epoch_start > end_offset:
        had = f"its leader-epoch-checkpoint has an epoch that began at offset {kept.last_epoch_start}"
    else:
        return []
    return [LogFinding(FindingKind.LOST_RECORDS, f"the log ends at offset {end_offset}, and {had}", end_offset)]


def _of(ordered: pa.Table, at: int, kind: FindingKind, says: str, before_offset: int, before_epoch: int) -> LogFinding:
    row = ordered.slice(at, 1).to_pylist()[0]
    before = f"a batch of epoch {before_epoch}"
    return LogFinding(
        kind,
        says,
        row["base_offset"],
        row["epoch"],
        row["base_timestamp"],
        before=before,
        before_offset=before_offset,
    )


def _damaged(ordered: pa.Table, at: int, last_good: int, kept: _Kept) -> LogFinding:
    row = ordered.slice(at, 1).to_pylist()[0]
    before = ordered.slice(at - 1, 1).to_pylist()[0] if at > 0 else None
    if before is not None and before["error"] is None and _is_behind_gap(ordered, at, row, before):
        says = f"a batch begins at offset {row['base_offset']}, where {before['last_offset'] + 1} was to come"
        text = f"{says}: {row['error']}, {row['size_bytes']} bytes"
        return LogFinding(
            FindingKind.MISSING_SEGMENT,
            text,
            row["base_offset"],
            before=f"a batch of epoch {before['epoch']}",
            before_offset=before["base_offset"],
        )
    offset = _expected(ordered, at)
    is_end = at > last_good and at + 1 == ordered.num_rows
    is_torn = is_end and looks_torn(offset, row["base_offset"], row["size_bytes"] or 0)
    if not row["size_bytes"]:
        kind = FindingKind.MISSING_SEGMENT
    elif is_torn or is_crash(offset, looks_torn=False, durable_end=kept.durable_end, snapshot_end=kept.snapshot_end):
        kind = FindingKind.TORN_END
    else:
        kind = FindingKind.BIT_FLIP
    size = f", {row['size_bytes']} bytes" if row["size_bytes"] else ""
    return LogFinding(kind, f"{row['error']}{size}", None if row["base_offset"] is None else offset)


def _expected(ordered: pa.Table, at: int) -> int:
    """Return the offset that was to come where a row is."""
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
