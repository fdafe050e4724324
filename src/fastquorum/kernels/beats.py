"""Heartbeats of brokers that go on as they are: answered where they arrive, as the controller would answer them.

The controller decides about a broker first, and then keeps here what its next heartbeat says if it wants nothing new,
and the answer to that. Before it decides anything else about the broker, that is forgotten. Any other heartbeat, and
every one while somebody else leads, or may lead, is the controller's. Must not know what a heartbeat's wishes mean.
Source: KIP-631."""

from typing import Final, NamedTuple, Protocol

from fastquorum.kernels.batches import Buffer
from fastquorum.types import Micros, NodeId, Offset

HEARTBEAT_KEY: Final = 63
"""BrokerHeartbeat's API key."""
FIXED_BYTES: Final = 20
"""The fixed start of the request's body: broker id, broker epoch and metadata offset. The broker's wishes follow."""
ANSWER_BYTES_MIN: Final = 4
"""Its correlation id."""
ANSWER_BYTES_MAX: Final = 64


class SteadyBeat(NamedTuple):
    """What a broker's heartbeat says as long as it wants nothing new."""

    broker_id: NodeId
    broker_epoch: int
    version: int
    wishes: bytes
    """The body behind its first FIXED_BYTES, to the last byte."""
    metadata_offset_min: Offset
    """It must have read up to here."""
    answer: bytes
    """The response frame, without its length; the correlation id, its first four bytes, is filled in."""


class AnsweredBeat(NamedTuple):
    """A broker's latest heartbeat that was answered here."""

    broker_id: NodeId
    broker_epoch: int
    contact_us: Micros
    metadata_offset: Offset


class SteadyBeats(Protocol):
    """The steady heartbeats of one node's brokers. Thread-safe: frames are answered on whatever thread they arrive."""

    def __init__(self) -> None: ...

    def begin(self, leader_epoch: int) -> None:
        """A lead begins: nothing is known of any broker."""

    def keep(self, beat: SteadyBeat) -> None:
        """From now on such heartbeats are answered here. UsageError for an answer of an impossible size."""

    def forget(self, broker_id: NodeId) -> None:
        """Its heartbeats are the controller's again, until the next `keep`."""

    def forget_all(self) -> None: ...

    def answer(self, frame: Buffer, leader_epoch: int, now_us: Micros) -> bytes | None:
        """The answer to a request, if it is a kept broker's heartbeat and the lead of that epoch is the one that began
        here; then the broker was heard now. Else None, and nothing has changed."""

    def take_answered(self) -> list[AnsweredBeat]:
        """Return the latest heartbeat of each broker that was answered here since the last call, in no order; also of
        brokers that were forgotten since."""
