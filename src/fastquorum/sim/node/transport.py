"""The frames that leave one simulated node, checked against its promises: `node.ports.Transport`."""

from fastquorum.kernels import Buffer
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.invariants import emissions
from fastquorum.sim.network import Packet
from fastquorum.sim.node.threads import ReplicaThread
from fastquorum.sim.node.view import ProcessView, Watcher
from fastquorum.sim.prng import Prng
from fastquorum.types import Endpoint, Micros


class PlainTransport:
    """The parts of the port that only real networks need."""

    def favour(self, connection: int) -> None:
        """Do nothing: no connection is put behind another."""

    def needs_drain(self, connection: int) -> bool:
        """Return False: simulated hosts always read."""
        return False

    def is_crowded(self) -> bool:
        return False

    def last_error(self, endpoint: Endpoint) -> str:
        """Return no reason: the simulated network gives none."""
        return ""

    def try_elsewhere(self, endpoint: Endpoint) -> None:
        """Do nothing: a simulated node has one address."""


class SimTransport(PlainTransport):
    """The transport of one life. The network has the connections; here are the requests on them that wait for an
    answer."""

    def __init__(
        self, process: ProcessView, thread: ReplicaThread, environment: SimEnvironment, watcher: Watcher, prng: Prng
    ) -> None:
        self._process = process
        self._thread = thread
        self._network = environment.network
        self._scheduler = environment.scheduler
        self._watcher = watcher
        self._prng = prng
        self._pending = emissions.PendingRequests()
        self._sent_us: dict[tuple[int, int], Micros] = {}
        self._is_wake_planned = False

    def begin(self) -> None:
        """Begin a new life."""
        self._pending = emissions.PendingRequests()
        self._sent_us.clear()

    def arrived(self, connection: int, packet: Packet) -> None:
        """Note a frame that came in: if it is a request, an answer may leave."""
        if packet.api is not None:
            self._pending.add(connection, packet)
            self._sent_us[connection, int.from_bytes(packet.frame[4:8], "big")] = packet.sent_us

    def sent_us(self, connection: int, correlation_id: int) -> Micros:
        """Return when the other side sent a request that has arrived here, in world time."""
        return self._sent_us[connection, correlation_id]

    def connect(self, endpoint: Endpoint) -> int:
        number = self._network.connect(self._process, endpoint)
        self._process.timer_events.attempts[number] = self._network.node_at(endpoint)
        return number

    def send(self, connection: int, frame: Buffer) -> None:
        process = self._process
        process.port_call("send")
        process.observe()
        data = bytes(frame)
        ghost, durable, failed = process.ghost, process.states.durable, process.has_failed
        if self._network.is_client(process, connection):
            packet = emissions.request(ghost, durable, data, failed=failed)
        else:
            pending = self._pending.find(connection, data)
            closed_epoch = process.lane.closed_epoch
            packet = emissions.response(ghost, durable, data, pending, failed=failed, closed_epoch=closed_epoch)
        self._watcher.sent(process, connection, packet)

    def close(self, connection: int) -> None:
        self._network.close(self._process, connection)

    def wake(self) -> None:
        if self._is_wake_planned:
            return
        self._is_wake_planned = True
        process = self._process
        incarnation = process.incarnation

        def work() -> None:
            self._is_wake_planned = False
            if incarnation == process.incarnation:
                self._thread.post(lambda: process.replica.work(process.now_us))

        self._scheduler.after(self._prng.randrange(50), work)
