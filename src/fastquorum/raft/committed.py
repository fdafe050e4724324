"""What this replica knows to be committed, and that no leader may have it cut away. Source: KAFKA-12460."""

from fastquorum.errors import ProtocolFatal
from fastquorum.raft import claims
from fastquorum.raft.core import Core
from fastquorum.types import UNKNOWN_OFFSET, NodeId, Offset


def keeps_committed(core: Core, leader_id: NodeId, wish: str, offset: Offset) -> bool:
    """Is nothing committed from `offset` on, where the leader wishes the log to end?

    What is committed is never cut away (KAFKA-12460): rather stop, so that somebody looks. Raises ProtocolFatal; False
    if an unproven leader wishes it, which is told.
    """
    committed = known_committed(core)
    if offset >= committed:
        return True
    what = f"{wish} {offset}, but everything below {committed} is committed"
    if claims.is_unproven(core, leader_id):
        claims.notice_unproven(core, f"asks for what is refused, as {what}")
        return False
    raise ProtocolFatal(
        f"leader {leader_id} of epoch {core.epoch} asks for what is refused, as {what}: keep this directory, and find "
        "out which replica lost its disk"
    )


def known_committed(core: Core) -> Offset:
    """Up to where this replica knows that all is committed, of this life or an earlier one. A snapshot covers nothing
    else."""
    latest = core.log.snapshots.latest
    of_snapshot = UNKNOWN_OFFSET if latest is None else latest.offset
    return max(core.high_watermark, core.log.committed_offset, of_snapshot)
