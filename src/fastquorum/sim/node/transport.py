"""What leaves one simulated node, checked against what it may say: `node.ports.Transport`."""

from fastquorum.kernels import Buffer
from fastquorum.sim.environment import Environment
from fastquorum.sim.invariants import emissions
from fastquorum.sim.network import Packet
from fastquorum.sim.node.threads import ReplicaThread
from fastquorum.sim.node.view import ProcessView, Watcher
from fastquorum.sim.prng import Prng
from fastquorum.types import Endpoint, Micros


class PlainTransport:
    """What real networks add to the port, and the simulated one does not have."""

    def favour(self, connection: int) -> None:
        """Nothing: no connection is put behind another."""

    def needs_drain(self, connection: int) -> bool:
        """Whoever is simulated reads."""
        return False

    def is_crowded(self) -> bool:
        return False

    def last_error(self, endpoint: Endpoint) -> str:
        """The simulated network gives no reasons."""
        return ""

    def try_elsewhere(self, endpoint: Endpoint) -> None:
        """A simulated node has one address."""


class SimTransport(PlainTransport):
    """One life's connections are the network's; here are the requests that came on them and wait for an answer."""

    def __init__(
        self, process: ProcessView, thread: ReplicaThread, environment: Environment, watcher: Watcher, prng: Prng
    ) -> None:
        self._process = process
        self._thread = thread
        self._network = environment.network
        self._scheduler = environment.scheduler
        self._watcher = watcher
        self._prng = prng
        self._asked = emissions.Asked()
        self._sent_us: dict[tuple[int, int], Micros] = {}
        self._is_wake_planned = False

    def begin(self) -> None:
        """A new life."""
        self._asked = emissions.Asked()
        self._sent_us.clear()

    def arrived(self, connection: int, packet: Packet) -> None:
        """A frame came in: if it asks something, an answer may leave."""
        if packet.api is not None:
            self._asked.add(connection, packet)
            self._sent_us[connection, int.from_bytes(packet.frame[4:8], "big")] = packet.sent_us

    def sent_us(self, connection: int, correlation_id: int) -> Micros:
        """When the other side sent a request that has arrived here, in world time."""
        return self._sent_us[connection, correlation_id]

    def connect(self, endpoint: Endpoint) -> int:
        number = self._network.connect(self._process, endpoint)
        self._process.heard.attempts[number] = self._network.node_at(endpoint)
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
            asked = self._asked.find(connection, data)
            closed_epoch = process.lane.closed_epoch
            packet = emissions.response(ghost, durable, data, asked, failed=failed, closed_epoch=closed_epoch)
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
