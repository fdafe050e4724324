"""Promises to callers: S14 (an acknowledged append is durable on a majority), S16 (linearizable reads), S28 (all
or nothing), and that a refusal is one."""

from dataclasses import dataclass, field

from fastquorum.kernels import Kernels
from fastquorum.sim.invariants.ghost import Ghost, GhostBatch
from fastquorum.sim.report import Violation
from fastquorum.types import NodeId, Offset


@dataclass(slots=True)
class TrackedAppend:
    """One append, settled or not. No other append has its values."""

    number: int
    node_id: NodeId
    values: tuple[bytes, ...]
    outcome: str = "pending"
    """acked, failed (it will never be there), unknown."""
    base_offset: Offset = -1


@dataclass(slots=True)
class Ledger:
    """The answers to callers, checked against what was committed."""

    ghost: Ghost
    committed_at: dict[bytes, Offset] = field(default_factory=dict)
    operations: list[TrackedAppend] = field(default_factory=list)
    seen_end: Offset = 0
    """The end of the log that some caller knows of: acknowledged, or read."""
    refused: dict[bytes, int] = field(default_factory=dict)
    acknowledged: int = 0
    barriers: int = 0

    def begin(self, node_id: NodeId, values: tuple[bytes, ...]) -> TrackedAppend:
        operation = TrackedAppend(len(self.operations), node_id, values)
        self.operations.append(operation)
        return operation

    def committed(self, batches: list[GhostBatch], kernels: Kernels, node_id: NodeId) -> None:
        for batch in batches:
            if batch.is_control:
                continue
            for at, value in enumerate(kernels.decode_values(batch.data)):
                assert value is not None
                if value in self.committed_at:
                    raise Violation("S14", f"{value[:24]!r} is committed twice", node_id)
                if value in self.refused:
                    raise Violation("S14", f"{value[:24]!r} was refused, and is committed", node_id)
                self.committed_at[value] = batch.base + at

    def acked(self, operation: TrackedAppend, base_offset: Offset, node_id: NodeId) -> None:
        """Check S14 and S28 for an acknowledged append."""
        if operation.outcome != "pending":
            raise Violation("S14", f"append {operation.number} is settled twice ({operation.outcome}, acked)", node_id)
        end = base_offset + len(operation.values)
        if end > self.ghost.committed_end or not self.ghost.durable_majority(end):
            raise Violation("S14", f"append at {base_offset} acknowledged, not durable on a majority", node_id)
        for at, value in enumerate(operation.values):
            if self.committed_at.get(value) != base_offset + at:
                raise Violation("S14", f"append {operation.number} acknowledged at {base_offset}, not there", node_id)
        operation.outcome, operation.base_offset = "acked", base_offset
        self.seen_end = max(self.seen_end, end)
        self.acknowledged += 1

    def failed(self, operation: TrackedAppend, *, maybe_committed: bool, node_id: NodeId) -> None:
        if operation.outcome != "pending":
            raise Violation("S14", f"append {operation.number} is settled twice ({operation.outcome}, failed)", node_id)
        operation.outcome = "unknown" if maybe_committed else "failed"
        if not maybe_committed:
            for value in operation.values:
                self.refused[value] = operation.number
                if value in self.committed_at:
                    raise Violation("S14", f"append {operation.number} was refused, and is committed", node_id)

    def lost_with(self, node_id: NodeId) -> None:
        """Mark the pending appends of a process that ended as unknown."""
        for operation in self.operations:
            if operation.node_id == node_id and operation.outcome == "pending":
                operation.outcome = "unknown"

    def passed(self, begun_at: Offset, high_watermark: Offset, node_id: NodeId) -> None:
        """Check S16: a read sees everything that was acknowledged before it began."""
        self.barriers += 1
        self.seen_end = max(self.seen_end, high_watermark)
        if high_watermark < begun_at:
            raise Violation("S16", f"a read that began at {begun_at} sees {high_watermark}", node_id)
        if high_watermark > self.ghost.committed_end:
            raise Violation("S16", f"a read sees {high_watermark}, committed is {self.ghost.committed_end}", node_id)

    def check_whole(self) -> None:
        """Check S28 at the end: every append is there as a whole, in one piece, or not at all."""
        for operation in self.operations:
            places = [self.committed_at.get(value, -1) for value in operation.values]
            whole = list(range(places[0], places[0] + len(places)))
            if places != whole and any(place >= 0 for place in places):
                raise Violation("S28", f"append {operation.number} is there in part: {places}", operation.node_id)
            if operation.outcome == "acked" and places[0] != operation.base_offset:
                raise Violation("S14", f"acknowledged append {operation.number} is gone", operation.node_id)
