"""No-ops of an idle leader of a metadata log: followers and observers see that it goes on. Sans-IO.

A log that has no records yet gets none: the first one must tell the feature levels, or Kafka's nodes stop. Source:
KIP-835.
"""

from typing import Final

from fastquorum.errors import FastQuorumError, NotLeader, Overloaded
from fastquorum.kernels import Kernels
from fastquorum.node.lane.port import Shell
from fastquorum.node.records.bootstrap_records import is_without_records
from fastquorum.types import Micros, Offset
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record

NO_OP: Final = encode_metadata_record(NoOpRecord(), 0)


class _Nobody:
    """Waits for a no-op: whoever else appends learns what befalls the log."""

    def committed(self, base_offset: Offset) -> None:
        pass

    def failed(self, error: FastQuorumError) -> None:
        pass


class Idleness:
    """A no-op is due when a leader has appended nothing for so long. `interval_us` 0: never."""

    def __init__(self, shell: Shell, interval_us: Micros) -> None:
        self._shell = shell
        self._interval_us = interval_us
        self._looked_us: Micros = 0

    @property
    def deadline_us(self) -> Micros:
        """-1 while none is to come."""
        if not self._interval_us or not self._shell.is_leader:
            return -1
        return max(self._shell.appended_us, self._looked_us) + self._interval_us

    def is_due(self, now_us: Micros) -> bool:
        """If so, the next is due an interval later, even if this one cannot be appended."""
        if not 0 <= self.deadline_us <= now_us:
            return False
        self._looked_us = now_us
        return True


class NoOps:
    """The no-ops of a log that no controller of ours writes."""

    def __init__(self, shell: Shell, kernels: Kernels, interval_us: Micros) -> None:
        self._shell = shell
        self._kernels = kernels
        self._idleness = Idleness(shell, interval_us)

    @property
    def deadline_us(self) -> Micros:
        """-1 while none is to come."""
        return self._idleness.deadline_us

    def on_tick(self, now_us: Micros) -> None:
        """On the replica's thread, without the lock. Raises what stopped the replica."""
        if not self._idleness.is_due(now_us):
            return
        with self._shell.lock:
            if is_without_records(self._kernels, self._shell.log):
                return
        try:
            self._shell.append((NO_OP,), _Nobody(), now_us)
        except (Overloaded, NotLeader):
            return  # so many wait for their commit that this one would show nothing, or the lead is being given up
