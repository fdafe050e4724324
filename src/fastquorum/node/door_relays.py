"""Requests that only the leader can answer, passed on to it: a client asks whichever node it knows. Sans-IO.

Kafka's brokers do the same by Envelope. Must not know what is asked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fastquorum.node.inbound import Request
from fastquorum.types import NO_NODE, Micros
from fastquorum.wire import Message

if TYPE_CHECKING:
    from fastquorum.node.door import Door


class _Asked(NamedTuple):
    request: Request
    refusal: Message
    """What the client is told if the leader says nothing."""
    fit: Callable[[Message], Message]


class Relays:
    """What the leader was asked for clients. It cannot go round in circles: whoever passes a request on does so to the
    leader of its newest epoch, who knows of no older one."""

    def __init__(self, door: "Door") -> None:
        self._door = door
        self._asked: dict[int, _Asked] = {}

    @property
    def has_leader(self) -> bool:
        """Somebody else leads, and can be reached."""
        door = self._door
        leader = door.leader()
        return leader.id not in (NO_NODE, door.replica.raft.key.id) and leader.endpoint is not None

    def ask(
        self,
        request: Request,
        message: Message,
        refusal: Message,
        now_us: Micros,
        fit: Callable[[Message], Message] = lambda answer: answer,
    ) -> None:
        """Have the leader answer `message`, and pass its answer on to whoever sent `request`, made to fit that one's
        version."""
        leader = self._door.leader()
        if leader.endpoint is None or not self.has_leader:
            self._door.answer(request, refusal)
            return
        number = self._door.replica.relay(leader.id, leader.endpoint, message, now_us)
        self._asked[number] = _Asked(request, refusal, fit)

    def on_relayed(self, number: int, answer: Message | None) -> None:
        """What the leader said; None if nothing."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            self._door.answer(asked.request, asked.refusal if answer is None else asked.fit(answer))
