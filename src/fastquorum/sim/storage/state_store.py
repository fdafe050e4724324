"""One node's quorum state: durable when `save` returns; the old or the new one if it does not. Implements
`storage.ports.StateStore`, as a data directory opens it.

A write of a killed process may be in the page cache alone: the next process finds it, but a power failure before that
takes it back.
"""

import errno
from collections.abc import Callable

from fastquorum.errors import StateStoreFailed
from fastquorum.raft.election import ElectionState
from fastquorum.sim.hazards import Hazards, ProcessDied
from fastquorum.sim.prng import Prng

SAVE_US = 400
"""Typical time of a synced transaction, in microseconds."""


class SimStateStore:
    """The quorum state of one node, which survives its process."""

    def __init__(
        self,
        node_id: int,
        prng: Prng,
        saved: Callable[[ElectionState], None],
        found: Callable[[ElectionState], None],
    ) -> None:
        """Take `saved`, called with each durable state, and `found`, called with the state that a killed process has
        left."""
        self._saved = saved
        self._found = found
        self.durable: ElectionState | None = None
        """The state that the next process finds, if the power stays on."""
        self._synced: ElectionState | None = None
        """The state that it finds after a power failure."""
        self.failing_saves = 0
        self._path = f"node-{node_id}/quorum-state.mdb"
        self._prng = prng
        self._hazards: Hazards | None = None

    def attach(self, hazards: Hazards | None) -> None:
        self._hazards = hazards

    def load(self) -> ElectionState | None:
        """Load the state; it is durable from here on, since it is written once more."""
        if self.durable is not None and self.durable is not self._synced:
            self._synced = self.durable
            self._found(self.durable)
        return self.durable

    def lose_power(self) -> None:
        """Lose all that was not synced."""
        self.durable = self._synced

    def save(self, state: ElectionState) -> None:
        assert self._hazards is not None, "no process uses this store"
        self._hazards.other_threads()
        try:
            self._hazards.port_call("save state")
        except ProcessDied:
            # In the middle of the transaction: either the old state is found, or the new one.
            if self._prng.randrange(2):
                self.durable = state
            raise
        if self.failing_saves > 0:
            self.failing_saves -= 1
            self._hazards.storage_failed()
            if self._prng.randrange(2):
                self.durable = state
            raise StateStoreFailed(detail="I/O error", operation="commit", path=self._path, errno_code=errno.EIO)
        self.durable = state
        self._synced = state
        self._saved(state)
        self._hazards.blocked(self._prng.heavy_tail(SAVE_US, 20 * SAVE_US))
        self._hazards.other_threads()
