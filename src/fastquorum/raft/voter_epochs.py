"""The epochs that the voters were in, as far as this replica has learned since it started.

Whoever leads an epoch, stands in it, is voted for in it or fetches in it has made it durable first (KIP-595 "Quorum
State"): a voter that names a lower one later has lost its election state, and its votes with it.
"""

from typing import Final, NamedTuple

from fastquorum.kernels.lane import NO_CONNECTION, Connection
from fastquorum.types import Epoch, Micros, ReplicaKey

GONE_US_MIN: Final[Micros] = 1_000_000
"""A process that ends, and starts again with another directory, is not heard for longer. What was held up on its way,
while its sender has gone on, is no loss."""
REQUEST_TIMEOUTS: Final = 5
"""A sender keeps a request for as long as its timeout says while it has no connection, and sends it on the one that it
gets at last: so many of the timeouts go by before a lower epoch on a new connection is taken for a loss. Nobody says
what the sender's timeout is: it is taken to be this replica's own."""


class _KnownEpoch(NamedTuple):
    epoch: Epoch
    since_us: Micros
    newest: Connection
    """Connections up to this one were there before."""


class VoterEpochs:
    """The highest epoch of each voter, by its key as the voter set has it: a static voter's is its id alone."""

    def __init__(self, request_timeout_us: Micros) -> None:
        self._held_up_us = max(GONE_US_MIN, request_timeout_us * REQUEST_TIMEOUTS)
        self._known: dict[ReplicaKey, _KnownEpoch] = {}
        self._newest: Connection = NO_CONNECTION
        self._served: Connection = NO_CONNECTION

    def serve(self, connection: Connection) -> None:
        """Begin a request: what is noted from now on came on this connection. The numbers ascend."""
        self._newest = max(self._newest, self._served)
        self._served = connection

    def note(self, voter: ReplicaKey, epoch: Epoch, now_us: Micros) -> None:
        """`voter` is in this epoch, or was."""
        known = self._known.get(voter)
        if known is None or epoch > known.epoch:
            self._known[voter] = _KnownEpoch(epoch, now_us, max(self._newest, self._served))

    def forgotten(self, voter: ReplicaKey, epoch: Epoch, now_us: Micros) -> Epoch | None:
        """The epoch that `voter` was in, if it names a lower one now. What comes on a connection that was there before
        may be old: a network or a receiver that stands still holds it up for any time."""
        known = self._known.get(voter)
        if known is None or epoch >= known.epoch or self._served <= known.newest:
            return None
        return known.epoch if now_us > known.since_us + self._held_up_us else None
