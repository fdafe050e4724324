"""Three nodes, each on a host of its own: a network namespace behind the switch, an ext4 that can lose power, a clock.

Clients are on a fourth host.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.privileges import missing
from tests.process.chaos.switch import Remote, enter
from tests.process.cluster import Cluster
from tests.process.disks import Disk, powered
from tests.process.processes import NodeProcess
from tests.process.wall_clock import WallClock, wall_clock

NETWORK = "10.99.0."
CLIENTS = f"{NETWORK}100"
PORT = 9093
START_S = 120.0
"""A busy machine starts three nodes, and elections with timeouts of a fraction of a second come to nothing at first."""
SETTINGS: Mapping[str, object] = {
    "metadata.log.segment.bytes": 65536,
    "log.preallocate.bytes": 32768,
    "disk.stall.max.ms": 800,  # an interpreter that is held for long (`nemesis.HELD_S`) is given up
}


class Hosts(Cluster):
    """A cluster over hosts. What a fault of one of them does, and how it ends, is a method; made by `hosts`."""

    def __init__(
        self,
        root: Path,
        network: Remote,
        namespaces: Mapping[int, str],
        clients: str,
        disks: Mapping[int, Disk],
        clock: WallClock,
    ) -> None:
        """`clients`: their network namespace."""
        addresses = {node_id: f"{NETWORK}{node_id}" for node_id in namespaces}
        super().__init__(root, len(namespaces), settings=SETTINGS, kernels={3: "pure"}, hosts=addresses)
        self.ports = dict.fromkeys(self.ids, PORT)
        self.network = network
        self.clock = clock
        self._namespaces = namespaces
        self._clients = clients
        self._disks = disks
        for node_id, disk in disks.items():
            (disk.place / "data").mkdir()
            self.path(node_id).symlink_to(disk.place / "data")

    def spawn(
        self,
        node_id: int,
        *,
        failpoints: str = "",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> NodeProcess:
        """On its host: behind its device, by its clock."""
        return super().spawn(
            node_id,
            failpoints=failpoints,
            prefix=["nsenter", f"--net=/run/netns/{self._namespaces[node_id]}", *prefix],
            environment={**self.clock.environment, **(environment or {})},
            settings=settings,
        )

    def enter_clients(self) -> None:
        """Have the calling thread make its connections on the clients' host."""
        enter(self._clients)

    # --- what happens to a host ---------------------------------------------------------------------------------------

    def freeze(self, node_id: int) -> None:
        self.nodes[node_id].signal(signal.SIGSTOP)

    def thaw(self, node_id: int) -> None:
        self.nodes[node_id].signal(signal.SIGCONT)

    def lose_power(self, node_id: int) -> None:
        """What its disk was not made to keep is gone; afterwards the disk is there again, and the node is down."""
        disk = self._disks[node_id]
        disk.lose_power()
        self.nodes[node_id].kill()
        disk.unmount()
        disk.mount()
        self.note_state(node_id)

    def limit(self, node_id: int, what: int, soft: int) -> None:
        """Set a resource limit of the running process; the hard limit stays, so that it can be lifted again."""
        pid = self.nodes[node_id].pid
        _, hard = resource.prlimit(pid, what)
        resource.prlimit(pid, what, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))

    def lift(self, node_id: int, what: int) -> None:
        pid = self.nodes[node_id].pid
        _, hard = resource.prlimit(pid, what)
        resource.prlimit(pid, what, (hard, hard))

    def descriptors(self, node_id: int) -> int:
        """The lowest number that no descriptor of the node has or is below."""
        return max(int(each) for each in os.listdir(f"/proc/{self.nodes[node_id].pid}/fd")) + 1

    def memory_bytes(self, node_id: int) -> int:
        """The node's address space."""
        pages = int(Path(f"/proc/{self.nodes[node_id].pid}/statm").read_text().split()[0])
        return pages * resource.getpagesize()


@contextmanager
def hosts(root: Path, seed: int) -> Iterator[Hosts]:
    """Started and ready; nothing is left behind. Needs root and namespaces."""
    if os.geteuid() != 0:
        missing("hosts of their own need root")
    root.mkdir(parents=True, exist_ok=True)
    namespaces = {node_id: f"fq-{os.getpid()}-{node_id}" for node_id in (1, 2, 3)}
    clients = f"fq-{os.getpid()}-clients"
    addresses = {namespace: f"{NETWORK}{node_id}" for node_id, namespace in namespaces.items()}
    with ExitStack() as stack:
        try:
            network = stack.enter_context(Remote({**addresses, clients: CLIENTS}, seed))
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            missing(f"network namespaces are not allowed here: {getattr(error, 'stderr', error)}")
        clock = stack.enter_context(wall_clock(root))
        disks = {node_id: stack.enter_context(powered(root, f"disk{node_id}")) for node_id in namespaces}
        quorum = Hosts(root, network, namespaces, clients, disks, clock)
        stack.callback(quorum.close)
        quorum.start(*quorum.ids)
        quorum.ready(timeout_s=START_S)
        yield quorum
