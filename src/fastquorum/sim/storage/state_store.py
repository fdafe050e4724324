"""One node's quorum state: durable when `save` returns, one or the other if it does not. Implements
`storage.ports.StateStore`."""

import errno
from collections.abc import Callable

from fastquorum.errors import StateStoreFailed
from fastquorum.raft.election import ElectionState
from fastquorum.sim.hazards import Hazards, ProcessDied
from fastquorum.sim.prng import Prng

SAVE_US = 400
"""Typical time of a synced transaction."""


class SimStateStore:
    """Survives its process."""

    def __init__(self, node_id: int, prng: Prng, saved: Callable[[ElectionState], None]) -> None:
        self._saved = saved
        self.durable: ElectionState | None = None
        self.failing_saves = 0
        self._path = f"node-{node_id}/quorum-state.mdb"
        self._prng = prng
        self._hazards: Hazards | None = None

    def attach(self, hazards: Hazards | None) -> None:
        self._hazards = hazards

    def load(self) -> ElectionState | None:
        return self.durable

    def save(self, state: ElectionState) -> None:
        assert self._hazards is not None, "no process uses this store"
        self._hazards.other_threads()
        try:
            self._hazards.port_call("save state")
        except ProcessDied:
            # In the middle of the transaction: either the old state is found, or the new one.
            if self._prng.randrange(2):
                self._store(state)
            raise
        if self.failing_saves > 0:
            self.failing_saves -= 1
            self._hazards.storage_failed()
            if self._prng.randrange(2):
                self._store(state)
            raise StateStoreFailed(detail="I/O error", operation="commit", path=self._path, errno_code=errno.EIO)
        self._store(state)
        self._hazards.blocked(self._prng.heavy_tail(SAVE_US, 20 * SAVE_US))
        self._hazards.other_threads()

    def _store(self, state: ElectionState) -> None:
        self._saved(state)
        self.durable = state
