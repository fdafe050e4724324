"""Connections between simulated processes: slow, lossy, partitioned, one-way, half-open.

In TCP mode frames of one connection arrive in order or not at all. In harsh mode they may overtake each other and
arrive twice, which TCP excludes: safety must hold all the same. A lost frame breaks its connection; one or both
sides learn of it, soon or late.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fastquorum.sim.clock import Scheduler
from fastquorum.sim.prng import Prng
from fastquorum.types import LISTENER_NAME, Endpoint, Micros, NodeId
from fastquorum.wire import Message

CONNECT_TIMEOUT_US = 1_000_000


def endpoint_of(node_id: NodeId) -> Endpoint:
    """Return a host's endpoint."""
    return Endpoint(LISTENER_NAME, f"node-{node_id}", 9000 + node_id)


@dataclass(slots=True)
class Packet:
    """One frame under way. `message` is what it says, decoded once for the checks; `api` its (key, version) if it
    is a request."""

    frame: bytes
    api: tuple[int, int] | None = None
    message: Message | None = None
    sent_us: Micros = -1
    """When it was sent, in world time."""


class Host(Protocol):
    """A node as the network sees it: a process that may run or not."""

    node_id: NodeId
    incarnation: int

    @property
    def is_running(self) -> bool: ...
    @property
    def is_powered(self) -> bool:
        """Whether its machine has power; without it not even a refusal comes back."""

    def connected(self, number: int) -> None: ...
    def disconnected(self, number: int) -> None: ...
    def arrived(self, number: int, packet: Packet) -> None: ...


@dataclass(slots=True)
class NetworkFaults:
    """The rates of network faults; the nemesis changes them."""

    delay_us: Micros = 200
    delay_us_max: Micros = 2_000
    loss: int = 0
    """Lost frames per million; each breaks its connection."""
    duplication: int = 0
    reordering: int = 0
    """Reordered frames per million; harsh mode only."""
    half_open: int = 0
    """Breaks per million of which one side does not learn."""


@dataclass(slots=True, eq=False)
class Flight:
    """A packet on its way; None is the end of the connection."""

    packet: Packet | None
    landed: bool = False


@dataclass(slots=True, eq=False)
class Socket:
    """One side of a connection."""

    host: Host
    incarnation: int
    number: int
    is_client: bool
    peer: "Socket | None" = None
    is_open: bool = True
    last_at_us: Micros = 0
    flying: list[Flight] = field(default_factory=list)
    held: list[Packet | None] = field(default_factory=list)
    """Packets that a partition holds back."""


class Network:
    """All connections of a world."""

    def __init__(self, scheduler: Scheduler, prng: Prng, note: Callable[[int, str], None]) -> None:
        self.faults = NetworkFaults()
        self.lost = self.duplicated = self.broken = 0
        self._scheduler = scheduler
        self._prng = prng
        self._note = note
        self._hosts: dict[tuple[str, int], Host] = {}
        self._sockets: dict[tuple[NodeId, int], Socket] = {}
        self._numbers: dict[NodeId, int] = {}
        self._blocked: dict[tuple[NodeId, NodeId], None] = {}
        self._closed: dict[NodeId, tuple[Micros, bool]] = {}
        """Live hosts that take no connections: until when, and whether they accept them first."""
        self._resetting: dict[tuple[NodeId, NodeId], None] = {}
        """Blocked ways on which a connection is refused at once, as by a proxy or a firewall."""

    def add_host(self, endpoint: Endpoint, host: Host) -> None:
        self._hosts[endpoint.host, endpoint.port] = host

    def node_at(self, endpoint: Endpoint) -> NodeId:
        """Return the host at an endpoint; -1 if there is none."""
        host = self._hosts.get((endpoint.host, endpoint.port))
        return host.node_id if host is not None else -1

    # --- partitions ---------------------------------------------------------------------------------------------------

    def block(self, source: NodeId, target: NodeId) -> None:
        self._blocked[source, target] = None

    def reset(self, a: NodeId, b: NodeId) -> None:
        """Block two hosts both ways with resets: their connections end, and new ones are refused."""
        for source, target in ((a, b), (b, a)):
            self._blocked[source, target] = self._resetting[source, target] = None
        for socket in list(self._sockets.values()):
            if (
                socket.is_client
                and socket.peer is not None
                and {socket.host.node_id, socket.peer.host.node_id} == {a, b}
            ):
                self._break(socket)

    def is_blocked(self, source: NodeId, target: NodeId) -> bool:
        return (source, target) in self._blocked

    def heal(self, keep: int) -> None:
        """Let all links work again. Each connection delivers what was held back with probability `keep`, else it
        breaks."""
        self._blocked.clear()
        self._resetting.clear()
        for socket in list(self._sockets.values()):
            if socket.held:
                held, socket.held = socket.held, []
                if self._prng.chance(keep):
                    for packet in held:
                        self._fly(socket, packet, self._arrival_time(socket))
                else:
                    self._break(socket)

    def release(self, source: NodeId, target: NodeId) -> None:
        """Open one way again; what was held back on it arrives."""
        self._blocked.pop((source, target), None)
        for socket in list(self._sockets.values()):
            peer = socket.peer
            if socket.held and socket.host.node_id == source and peer is not None and peer.host.node_id == target:
                held, socket.held = socket.held, []
                for packet in held:
                    self._fly(socket, packet, self._arrival_time(socket))

    def refuse(self, node_id: NodeId, until_us: Micros, *, accepts: bool) -> None:
        """End the connections of a live host; until then it refuses new ones, or accepts and closes them, as without
        free descriptors or behind a proxy."""
        self._closed[node_id] = until_us, accepts
        for socket in list(self._sockets.values()):
            if socket.is_client and socket.peer is not None and socket.peer.host.node_id == node_id:
                self._break(socket)

    def take_connections(self) -> None:
        """Let every running host take connections again."""
        self._closed.clear()

    # --- what transports do -------------------------------------------------------------------------------------------

    def connect(self, host: Host, endpoint: Endpoint) -> int:
        socket = self._open(host, is_client=True)
        target = self._hosts.get((endpoint.host, endpoint.port))
        delay_us = 2 * self._prng.heavy_tail(self.faults.delay_us, self.faults.delay_us_max)
        self._scheduler.after(delay_us, lambda: self._connect(socket, target))
        return socket.number

    def send(self, host: Host, number: int, packet: Packet) -> None:
        socket = self._sockets.get((host.node_id, number))
        if socket is None or not socket.is_open:
            return
        packet.sent_us = self._scheduler.now_us
        if socket.peer is None:
            return  # half-open: the other side is gone, and nothing will tell
        faults, prng = self.faults, self._prng
        if prng.chance(faults.loss):
            self.lost += 1
            self._break(socket)
            return
        self._fly(socket, packet, self._arrival_time(socket))
        if prng.chance(faults.duplication):
            self.duplicated += 1
            self._fly(
                socket, packet, self._scheduler.now_us + prng.heavy_tail(faults.delay_us, 50 * faults.delay_us_max)
            )

    def is_client(self, host: Host, number: int) -> bool:
        """Return whether this side made the connection: it sends requests, the other side answers."""
        socket = self._sockets.get((host.node_id, number))
        return socket is not None and socket.is_client

    def peer_of(self, host: Host, number: int) -> NodeId:
        socket = self._sockets.get((host.node_id, number))
        return socket.peer.host.node_id if socket is not None and socket.peer is not None else -1

    def close(self, host: Host, number: int) -> None:
        socket = self._sockets.pop((host.node_id, number), None)
        if socket is not None and socket.is_open:
            socket.is_open = False
            self._fly(socket, None, self._arrival_time(socket))

    def process_ended(self, host: Host, *, silently: bool) -> None:
        """End the connections of a process: with a reset by its kernel, or (power loss) without one."""
        for key in [key for key in self._sockets if key[0] == host.node_id]:
            socket = self._sockets.pop(key)
            socket.is_open = False
            if not silently:
                self._fly(socket, None, self._arrival_time(socket))

    def early(self, host: Host, numbers: Sequence[int]) -> tuple[int, Packet] | None:
        """Return a packet that arrives now, before its time, on one of these connections of the host."""
        ready = []
        for number in numbers:
            socket = self._sockets.get((host.node_id, number))
            sender = socket.peer if socket is not None else None
            if sender is None or sender.held or self.is_blocked(sender.host.node_id, host.node_id):
                continue
            if sender.flying and sender.flying[0].packet is not None:
                ready.append((number, sender))
        if not ready:
            return None
        number, sender = self._prng.pick(ready)
        flight = sender.flying.pop(0)
        flight.landed = True
        assert flight.packet is not None
        return number, flight.packet

    # --- inner --------------------------------------------------------------------------------------------------------

    def _open(self, host: Host, *, is_client: bool) -> Socket:
        number = self._numbers.get(host.node_id, 0) + 1
        self._numbers[host.node_id] = number
        socket = Socket(host, host.incarnation, number, is_client)
        self._sockets[host.node_id, number] = socket
        return socket

    def _connect(self, socket: Socket, target: Host | None) -> None:
        if not socket.is_open:
            return
        source = socket.host.node_id
        unreachable = target is None or not target.is_powered
        if target is not None:
            unreachable = (
                unreachable or self.is_blocked(source, target.node_id) or self.is_blocked(target.node_id, source)
            )
        if target is not None and (source, target.node_id) in self._resetting:
            self._drop(socket)
        elif unreachable:
            self._scheduler.after(
                self._prng.between(CONNECT_TIMEOUT_US // 4, CONNECT_TIMEOUT_US), lambda: self._drop(socket)
            )
        elif target is None or not target.is_running or self._refuses(target):
            self._drop(socket)
        else:
            socket.peer = self._open(target, is_client=False)
            socket.peer.peer = socket
            if socket.host.is_running:
                socket.host.connected(socket.number)
            if self._is_closed(target):
                self._break(socket)

    def _refuses(self, target: Host) -> bool:
        return self._is_closed(target) and not self._closed[target.node_id][1]

    def _is_closed(self, target: Host) -> bool:
        return self._closed.get(target.node_id, (-1, False))[0] > self._scheduler.now_us

    def _delay(self, socket: Socket) -> Micros:
        return self._prng.heavy_tail(self.faults.delay_us, self.faults.delay_us_max)

    def _arrival_time(self, socket: Socket) -> Micros:
        at_us = self._scheduler.now_us + self._delay(socket)
        if not self._prng.chance(self.faults.reordering):
            at_us = max(at_us, socket.last_at_us)
        socket.last_at_us = max(at_us, socket.last_at_us)
        return at_us

    def _fly(self, socket: Socket, packet: Packet | None, at_us: Micros) -> None:
        flight = Flight(packet)
        socket.flying.append(flight)
        self._scheduler.at(at_us, lambda: self._land(socket, flight))

    def _land(self, socket: Socket, flight: Flight) -> None:
        if flight.landed:
            return
        flight.landed = True
        socket.flying.remove(flight)
        self._arrive(socket, flight.packet)

    def _arrive(self, socket: Socket, packet: Packet | None) -> None:
        peer = socket.peer
        if peer is None or not peer.is_open:
            if peer is not None and packet is not None and socket.is_open and peer.host.is_powered:
                self._reset(socket)
            return
        if socket.held or self.is_blocked(socket.host.node_id, peer.host.node_id):
            socket.held.append(packet)
        elif packet is None:
            self._drop(peer)
        else:
            peer.host.arrived(peer.number, packet)

    def _reset(self, socket: Socket) -> None:
        """Answer a packet to a lost connection with a reset, if the way back is open."""
        assert socket.peer is not None
        if not self.is_blocked(socket.peer.host.node_id, socket.host.node_id):
            self._scheduler.after(self._delay(socket), lambda: self._drop(socket))

    def _break(self, socket: Socket) -> None:
        """Break a connection. Both sides learn of it, or one, in their time."""
        self.broken += 1
        peer = socket.peer
        silent = self._prng.chance(self.faults.half_open)
        first, second = (socket, peer) if self._prng.randrange(2) else (peer, socket)
        if peer is not None:
            socket.peer = peer.peer = None
        if first is not None:
            self._scheduler.after(self._delay(first), lambda: self._drop(first))
        if second is not None and not silent:
            self._scheduler.after(self._delay(second), lambda: self._drop(second))

    def _drop(self, socket: Socket) -> None:
        """Let one side learn that the connection is gone."""
        if not socket.is_open:
            return
        socket.is_open = False
        self._sockets.pop((socket.host.node_id, socket.number), None)
        if socket.host.is_running and socket.host.incarnation == socket.incarnation:
            socket.host.disconnected(socket.number)
