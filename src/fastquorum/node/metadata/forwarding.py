"""Requests that only the leader can answer, passed on to it: a client asks whichever node it knows. And those that a
controller has for brokers. Sans-IO.

Kafka's brokers pass on by Envelope. Must not know what is asked.
"""

from collections.abc import Callable

from fastquorum.node.network.inbound import Request
from fastquorum.node.network.links import Purpose
from fastquorum.node.view import ReplicaView, leader_of
from fastquorum.types import NO_NODE, Endpoint, Micros, NodeId
from fastquorum.wire import Message


class Relays:
    """What others were asked: the leader, for clients or by this node's controller, and brokers, by the controller. It
    cannot go round in circles: whoever passes a request on does so to the leader of its newest epoch, who knows of no
    older one."""

    _replica: ReplicaView

    def __init__(self, answer: Callable[[Request, Message | None], None]) -> None:
        """`answer`: answers a client's request."""
        self._answer = answer
        self._asked: dict[int, Callable[[Message | None], None]] = {}

    def bind(self, replica: ReplicaView) -> None:
        """On whose connections others are asked; once, by assembly."""
        self._replica = replica

    @property
    def has_leader(self) -> bool:
        """Somebody else leads, and can be reached."""
        leader = leader_of(self._replica)
        return leader.id not in (NO_NODE, self._replica.raft.key.id) and leader.endpoint is not None

    def ask(
        self,
        request: Request,
        message: Message,
        refusal: Message,
        now_us: Micros,
        fit: Callable[[Message], Message] = lambda answer: answer,
    ) -> None:
        """Have the leader answer `message`, and pass its answer on to whoever sent `request`, made to fit that one's
        version; `refusal` is what that one is told if the leader says nothing."""

        def heard(answer: Message | None) -> None:
            self._answer(request, refusal if answer is None else fit(answer))

        self.send(message, heard, now_us)

    def send(self, message: Message, heard: Callable[[Message | None], None], now_us: Micros) -> None:
        """Have the leader answer; `heard` is told what, or None if it says nothing."""
        leader = leader_of(self._replica)
        if leader.endpoint is None or not self.has_leader:
            heard(None)
            return
        number = self._replica.relay(leader.id, leader.endpoint, message, now_us)
        self._asked[number] = heard

    # --- what the controller tells brokers ----------------------------------------------------------------------------

    def tell(
        self,
        broker_id: NodeId,
        endpoint: Endpoint,
        message: Message,
        heard: Callable[[Message | None], None],
        now_us: Micros,
    ) -> int:
        """Ask a broker, on a connection of its own; `heard` is told later. The number, for `forget`."""
        number = self._replica.relay(broker_id, endpoint, message, now_us, Purpose.CONTROL)
        self._asked[number] = heard
        return number

    def forget(self, number: int) -> None:
        """Nobody wants to hear the answer any more."""
        self._asked.pop(number, None)

    def hang_up(self) -> None:
        """Brokers are told nothing more."""
        self._replica.connections.hang_up_all(Purpose.CONTROL)

    def on_relayed(self, number: int, answer: Message | None) -> None:
        """What the leader said; None if nothing."""
        heard = self._asked.pop(number, None)
        if heard is not None:
            heard(answer)
