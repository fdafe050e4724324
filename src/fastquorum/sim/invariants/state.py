"""Promises about a node's state: S1, S4, S5, S6, S9 (elections), S10 to S13 (high watermarks, commits), and that a
flushed end is flushed."""

from fastquorum.kernels.lane import LeaderSession
from fastquorum.node.replica import Replica
from fastquorum.raft.election import ElectionState
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.invariants.ghost import Ghost, GhostBatch, GhostNode
from fastquorum.sim.report import Violation


def check(ghost: Ghost, node: GhostNode, incarnation: int, replica: Replica) -> list[GhostBatch]:
    """Check a node after an event, or before bytes leave. Return the newly committed batches."""
    log = replica.log
    if log.end_offset != node.end or log.generation != node.generation:
        if node.led_epoch >= 0 and replica.raft.epoch == node.led_epoch and log.generation != node.generation:
            raise Violation("S6", f"the leader of {node.led_epoch} truncates its log", node.node_id)
        ghost.observe(node, log)
    flushed = log.flushed_end
    if flushed > node.end or (flushed > 0 and node.durable_end < flushed):
        raise Violation("S15", f"claims to have flushed {flushed}, durable is {node.durable_end}", node.node_id)
    _check_lead(ghost, node, incarnation, replica)
    if replica.high_watermark != node.high_watermark:
        return _check_high_watermark(ghost, node, replica)
    return []


def check_settled(node: GhostNode, durable: ElectionState | None, replica: Replica) -> None:
    """Check S4 between events, and note the committed offset of its directory for S34."""
    node.marked_committed = replica.log.durable_mark.committed
    epoch = replica.raft.epoch
    if epoch < node.epoch:
        raise Violation("S4", f"epoch falls from {node.epoch} to {epoch}", node.node_id)
    node.epoch = epoch
    durable_epoch = durable.epoch if durable is not None else 0
    if epoch < durable_epoch or epoch < node.last_epoch:
        raise Violation("S4", f"epoch {epoch}, durable {durable_epoch}, of the log {node.last_epoch}", node.node_id)
    if replica.raft.high_watermark > replica.high_watermark:
        raise Violation(
            "S12",
            f"raft knows {replica.raft.high_watermark} committed, the replica {replica.high_watermark}",
            node.node_id,
        )


def _check_lead(ghost: Ghost, node: GhostNode, incarnation: int, replica: Replica) -> None:
    """Check S1, S5, S9 when a lead begins, which is when the lane opens."""
    session = replica.shell.session
    if not isinstance(session, LeaderSession):
        if session is not None:
            node.led_session = None
        return
    epoch = session.epoch
    if node.led_epoch == epoch:
        return
    leader = ghost.leaders.setdefault(epoch, (node.node_id, incarnation))
    if leader[0] != node.node_id:
        raise Violation("S1", f"epoch {epoch} is led by {leader[0]} and by {node.node_id}", node.node_id)
    if leader[1] != incarnation:
        raise Violation("S5", f"leads epoch {epoch} again after a restart", node.node_id)
    if replica.raft.role is not RoleName.LEADER:
        raise Violation("S1", f"the lane leads {epoch}, raft is {replica.raft.role}", node.node_id)
    node.led_epoch = epoch
    node.led_session = session
    # What committed earlier has an earlier epoch: nothing of this one can be committed yet.
    if node.chain_at(ghost.committed_end) != ghost.committed_chains[ghost.committed_end]:
        raise Violation("S9", f"leads {epoch} without the committed log up to {ghost.committed_end}", node.node_id)


def _check_high_watermark(ghost: Ghost, node: GhostNode, replica: Replica) -> list[GhostBatch]:
    reached = replica.high_watermark
    if reached < node.high_watermark:
        raise Violation("S12", f"high watermark falls from {node.high_watermark} to {reached}", node.node_id)
    node.high_watermark = reached
    if reached > node.end:
        raise Violation("S12", f"high watermark {reached} beyond the log's end {node.end}", node.node_id)
    new: list[GhostBatch] = []
    session = node.led_session
    if session is not None and reached > ghost.committed_end:
        _check_commit_rule(ghost, node, session, reached)
        new = ghost.commit(node, reached)
        _check_rival_leaders(ghost, node, session.epoch, new)
    if reached > ghost.committed_end:
        raise Violation("S12", f"high watermark {reached}, committed is {ghost.committed_end}", node.node_id)
    if reached >= 0 and node.chain_at(reached) != ghost.committed_chains.get(reached):
        raise Violation(
            "S10", f"below its high watermark {reached} lies another log than the committed one", node.node_id
        )
    return new


def _check_commit_rule(ghost: Ghost, node: GhostNode, session: LeaderSession, reached: int) -> None:
    """Check S13: durable on a majority, and beyond the epoch's start (never by counting an earlier epoch's entries
    alone)."""
    if reached <= session.epoch_start:
        raise Violation("S13", f"commits {reached}, its epoch starts at {session.epoch_start}", node.node_id)
    count = node.index_of_end(reached)
    if count <= 0 or node.batches[count - 1].epoch != session.epoch:
        raise Violation("S13", f"commits {reached}, which ends with no entry of epoch {session.epoch}", node.node_id)
    holders = [voter for voter in ghost.voters if ghost.nodes[voter].durable_end >= reached]
    chain = node.chain_at(reached)
    agreeing = [voter for voter in holders if ghost.nodes[voter].chain_at(reached) == chain]
    if len(agreeing) < ghost.majority:
        raise Violation("S13", f"commits {reached}, durable only on {agreeing} of {ghost.voters}", node.node_id)
    for voter in agreeing:
        ghost.nodes[voter].pledged = max(ghost.nodes[voter].pledged, reached)


def _check_rival_leaders(ghost: Ghost, node: GhostNode, epoch: int, new: list[GhostBatch]) -> None:
    """Check S9 from the other side: a leader of a later epoch must hold what an earlier one commits now."""
    for other in ghost.nodes.values():
        if other.led_epoch > epoch and new:
            end = new[-1].end
            if other.chain_at(end) != new[-1].chain:
                raise Violation(
                    "S9", f"commits {end} in {epoch}, the leader of {other.led_epoch} lacks it", node.node_id
                )
