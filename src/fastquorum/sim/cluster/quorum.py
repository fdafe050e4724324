"""The true kraft.version and voters of the committed log, kept outside the nodes."""

from bisect import bisect_right
from typing import NamedTuple

from fastquorum.kernels import Kernels
from fastquorum.node.records.control_batches import control_records
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.report import Violation
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.storage.log.voter_sets import voter_set
from fastquorum.types import NodeId, Offset, ReplicaKey, VoterSet
from fastquorum.wire.records.control_values import KRaftVersionRecord, VotersRecord


class _Stand(NamedTuple):
    """The quorum's state behind an end of the committed log."""

    end_offset: Offset
    kraft_version: int
    voters: VoterSet


class QuorumHistory:
    """The quorum's committed states."""

    def __init__(self, kernels: Kernels, kraft_version: int, voters: list[ReplicaKey]) -> None:
        """Begin with this version; the voters are always these."""
        self._kernels = kernels
        self._voters = voters
        self._stands = [_Stand(0, kraft_version, VoterSet())]

    @property
    def kraft_version(self) -> int:
        return self._stands[-1].kraft_version

    def committed(self, batch: GhostBatch) -> None:
        """Take the control records of a committed batch."""
        _, kraft_version, voters = self._stands[-1]
        for offset, message in control_records(self._kernels, batch.data):
            if isinstance(message, KRaftVersionRecord):
                if message.kraft_version < kraft_version:
                    raise Violation("S14", f"kraft.version falls from {kraft_version} at {offset}")
                kraft_version = message.kraft_version
            elif isinstance(message, VotersRecord):
                voters = voter_set(message)
                self._check_voters(voters, offset)
        self._stands.append(_Stand(batch.end, kraft_version, voters))

    def _check_voters(self, voters: VoterSet, offset: Offset) -> None:
        """Check that the voters are the same, whatever their endpoints."""
        keys = [voter.key for voter in voters]
        if keys != self._voters:
            raise Violation("S14", f"the voters at {offset} are {keys}, not {self._voters}")

    def was_raised(self, kraft_version: int) -> None:
        """Check that a raised version that is acknowledged is committed."""
        if self.kraft_version < kraft_version:
            raise Violation("S14", f"kraft.version {kraft_version} is acknowledged, and not committed")

    def check_snapshot(self, node_id: NodeId, end_offset: Offset, state: CheckpointState) -> None:
        """Check S24: a snapshot holds the quorum's state of the committed log at its end."""
        number = bisect_right(self._stands, end_offset, key=lambda stand: stand.end_offset) - 1
        _, kraft_version, voters = self._stands[number]
        wanted = (kraft_version, voters if kraft_version and voters else state.voters)
        if (state.kraft_version, state.voters) != wanted:
            found = (state.kraft_version, state.voters)
            raise Violation("S24", f"the snapshot at {end_offset} says {found} of the quorum, not {wanted}", node_id)

    def check_node(self, node_id: NodeId, kraft_version: int, voters: VoterSet) -> None:
        """Check C16: the state of a replica with the whole log is the committed one."""
        _, wanted, committed = self._stands[-1]
        if kraft_version != wanted or (wanted and committed and voters != committed):
            raise Violation("C16", f"kraft.version {kraft_version} of {voters}, not {wanted} of {committed}", node_id)
