"""A client of the controllers: it has one connection to one of them, until that is not the active one."""

from collections.abc import Callable
from typing import Final

from fastquorum.config import SECOND
from fastquorum.sim.environment import SimEnvironment, SimHost
from fastquorum.sim.network import Packet, endpoint_of
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros, NodeId
from fastquorum.wire import Message, decode_response, encode_request, request_header

REQUEST_TIMEOUT_US: Final[Micros] = 2 * SECOND
OnResponse = Callable[[Message | None], None]
"""Takes the answer; None if none came: then the outcome of the request is unknown."""
NO_CONNECTION: Final = -1


class Client(SimHost):
    """Implements `network.Host`."""

    def __init__(self, environment: SimEnvironment, node_id: NodeId, prng: Prng) -> None:
        super().__init__(environment, node_id)
        self._prng = prng
        self._target = 0
        self._number = NO_CONNECTION
        self._is_connected = False
        self._correlation_id = 0
        self._unsent: list[Packet] = []
        self._pending: dict[int, tuple[int, int, OnResponse]] = {}

    def begin(self) -> None:
        """Begin a new life."""
        self.is_running = self.is_powered = True
        self.incarnation += 1
        self._target = self._prng.randrange(self._environment.swarm.voters)

    def die(self, *, power: bool = False) -> None:
        """End this life, as by a kill or a power failure."""
        self.is_running = False
        self.is_powered = not power
        self._forget()
        self._environment.network.process_ended(self, silently=power)

    @property
    def is_waiting(self) -> bool:
        return bool(self._pending)

    def ask(self, message: Message, version: int, on_response: OnResponse) -> None:
        """Send a request. `on_response` is called once, unless this life ends before."""
        self._correlation_id += 1
        number, key = self._correlation_id, type(message).__wire__.api_key
        frame = encode_request(request_header(message, version, number, f"client-{self.node_id}"), message)
        self._pending[number] = (key, version, on_response)
        if self._number == NO_CONNECTION:
            self._number = self._environment.network.connect(self, endpoint_of(self._target + 1))
        packet = Packet(frame, None, message)
        if self._is_connected:
            self._send(packet)
        else:
            self._unsent.append(packet)
        self.later(REQUEST_TIMEOUT_US, lambda: self._give_up(number))

    def look_elsewhere(self) -> None:
        """Turn to another controller: this one is not active."""
        self._hang_up()
        others = self._environment.swarm.voters - 1
        if others:
            self._target = (self._target + 1 + self._prng.randrange(others)) % (others + 1)

    # --- network.Host -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        if number == self._number:
            self._is_connected = True
            unsent, self._unsent = self._unsent, []
            for packet in unsent:
                self._send(packet)

    def disconnected(self, number: int) -> None:
        if number == self._number:
            self.look_elsewhere()

    def arrived(self, number: int, packet: Packet) -> None:
        if number != self._number or not self.is_running:
            return
        pending = self._pending.pop(int.from_bytes(packet.frame[:4], "big"), None)
        if pending is not None:
            key, version, on_response = pending
            on_response(decode_response(packet.frame, key, version)[1])

    # --- inner --------------------------------------------------------------------------------------------------------

    def _send(self, packet: Packet) -> None:
        self._environment.send(self, self._number, packet)

    def _give_up(self, number: int) -> None:
        if number in self._pending:
            self.look_elsewhere()

    def _hang_up(self) -> None:
        number, pending = self._number, self._pending
        self._forget()
        if number != NO_CONNECTION:
            self._environment.network.close(self, number)
        for _, _, on_response in pending.values():
            on_response(None)

    def _forget(self) -> None:
        self._number, self._is_connected = NO_CONNECTION, False
        self._pending, self._unsent = {}, []
