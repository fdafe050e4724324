"""Requests that only the leader can answer, forwarded to it: a client asks whichever node it knows. And those that a
controller has for brokers. Sans-IO.

Kafka's brokers forward by Envelope. Must not know what is asked.
"""

from collections.abc import Callable

from fastquorum.node.network.inbox import OnResponse
from fastquorum.node.network.links import Purpose
from fastquorum.node.network.requests import Request
from fastquorum.node.view import ReplicaView, leader_of
from fastquorum.types import NO_NODE, Endpoint, Micros, NodeId
from fastquorum.wire import Message


class Forwarding:
    """Requests of one replica to the leader, for clients or for this node's controller, and of its controller to
    brokers. They cannot go round in circles: whoever forwards a request does so to the leader of its newest epoch, who
    knows of no older one."""

    def __init__(self, replica: ReplicaView, timeout_us: Micros) -> None:
        """`replica`: on whose connections others are asked. A response of the leader is waited for `timeout_us`."""
        self._replica = replica
        self._timeout_us = timeout_us
        self._to_leader: dict[int, tuple[Micros, OnResponse]] = {}
        """By number, until when each is waited for, and by whom; the oldest first."""

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is due; -1 never."""
        return next((deadline_us for deadline_us, _ in self._to_leader.values()), -1)

    def on_tick(self, now_us: Micros) -> None:
        """Give up what the leader has not answered in time."""
        while self._to_leader and self.deadline_us <= now_us:
            number = next(iter(self._to_leader))
            self.forget(number)
            _, on_response = self._to_leader.pop(number)
            on_response(None)

    @property
    def has_leader(self) -> bool:
        """Somebody else leads, and can be reached."""
        leader = leader_of(self._replica)
        return leader.id not in (NO_NODE, self._replica.raft.key.id) and leader.endpoint is not None

    def forward(
        self,
        request: Request,
        message: Message,
        refusal: Message,
        now_us: Micros,
        fit: Callable[[Message], Message] = lambda response: response,
    ) -> None:
        """Have the leader answer `message`, and reply with its response to `request`, made to fit that one's version;
        with `refusal` if the leader says nothing."""

        def on_response(response: Message | None) -> None:
            request.reply(refusal if response is None else fit(response))

        self.send_to_leader(message, on_response, now_us)

    def send_to_leader(self, message: Message, on_response: OnResponse, now_us: Micros) -> None:
        """Ask the leader. `on_response` is called with None where nobody can be asked (then at once), or nothing is
        answered."""
        leader = leader_of(self._replica)
        if leader.endpoint is None or not self.has_leader:
            on_response(None)
            return

        def answered(response: Message | None) -> None:
            del self._to_leader[number]
            on_response(response)

        connections = self._replica.connections
        number = connections.send_request(leader.id, leader.endpoint, message, answered, now_us, Purpose.FORWARD)
        self._to_leader[number] = now_us + self._timeout_us, on_response

    # --- the controller's requests to brokers -------------------------------------------------------------------------

    def send_to_broker(
        self, broker_id: NodeId, endpoint: Endpoint, message: Message, on_response: OnResponse, now_us: Micros
    ) -> int:
        """Ask a broker, on a connection of its own; `on_response` is called later. The number, for `forget`."""
        return self._replica.connections.send_request(
            broker_id, endpoint, message, on_response, now_us, Purpose.CONTROL
        )

    def forget(self, number: int) -> None:
        """Nobody wants the response any more."""
        self._replica.connections.expect_no_more(number)

    def hang_up(self) -> None:
        """Brokers are asked nothing more."""
        self._replica.connections.hang_up_all(Purpose.CONTROL)
