"""Voters by name inside a network and mount namespace: their processes, their name server, what they say."""

import contextlib
import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load
from fastquorum.types import LISTENER_NAME, Endpoint
from tests.process.names.name_server import Entry, NameServer

Steps = dict[str, float]
"""What each step of a case took, in seconds."""
TIMEOUT_S: Final = 5.0
"""Timeout of a client that cannot succeed; a fifth more is still in time."""
COMMIT_S: Final = 30.0
"""A commit that takes longer has failed: well below what a wait for a silent name server costs each time."""
PORT: Final = 19090
DEAF: Final = "127.0.0.66"
"""An address where connections are begun and never made, once `deaf` was called for the port."""
CLOSING: Final = "127.0.0.77"
"""An address where connections are accepted and closed, once `closing` was called for the port."""
COMMAND: Final = (sys.executable, "-m", "fastquorum.cli")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8913, 0x8914, 0x8916, 1


def in_time(took_s: float, limit_s: float) -> float:
    """The time that something took which has a limit of ours. AssertionError if the limit was not kept."""
    assert took_s <= 1.2 * limit_s, f"{took_s:.1f} s, where {limit_s:g} s are the limit"
    return took_s


def all_of(took_s: float, limit_s: float) -> float:
    """The same of what cannot succeed, and may not give up early."""
    assert took_s >= 0.8 * limit_s, f"given up after {took_s:.1f} s of {limit_s:g} s"
    return in_time(took_s, limit_s)


def own_network(root: Path) -> None:
    """Loopback comes up, and names are asked for at 127.0.0.1, by the resolver's own defaults: 5 s, twice."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    bind_file(root / "resolv.conf", "nameserver 127.0.0.1\n", "/etc/resolv.conf")
    bind_file(root / "hosts", "127.0.0.1 localhost\n", "/etc/hosts")


def bind_file(path: Path, text: str, over: str) -> None:
    """Have this text where the system's file is, in this mount namespace."""
    path.write_text(text)
    subprocess.run(["mount", "--bind", str(path), str(Path(over).resolve())], check=True)


def add_address(address: str, alias: int) -> None:
    """Give the machine an address that is no loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = f"lo:{alias}".encode()
        request = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(sock, _SIOCSIFADDR, request)


class Rig:
    """Voters 1, 2, ..., node N at port PORT + N."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.zone: dict[str, Entry] = {}
        self.names = NameServer(self.zone)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap: dict[int, Endpoint] = {}
        """Where each node that was started listens, as numbers."""
        self._kernels = load("native")
        self._deaf: list[socket.socket] = []

    def format(self, voters: dict[int, str], *nodes: int) -> None:
        """Make the directories of these nodes."""
        listed = ",".join(f"{node_id}@{host}:{PORT + node_id}" for node_id, host in voters.items())
        for node_id in nodes:
            words = ("--data", self.data(node_id), "--node-id", str(node_id), "--cluster-id", "A" * 21 + "Q")
            subprocess.run([*COMMAND, "format", *words, "--voters", listed], check=True, stdout=subprocess.DEVNULL)

    def start(
        self, node_id: int, listen: str | None, *, reached: str | None = None, prefix: Sequence[str] = ()
    ) -> None:
        """Run a node; `listen` is the host it binds, `reached` where it is asked, if that is something else."""
        where = [] if listen is None else ["--listen", f"{listen}:{PORT + node_id}"]
        host = (reached or listen or "127.0.0.1").strip("[]")
        self.bootstrap[node_id] = Endpoint(LISTENER_NAME, host, PORT + node_id)
        with self.log(node_id).open("ab") as log:
            self.processes[node_id] = subprocess.Popen(
                [*prefix, *COMMAND, "run", "--data", self.data(node_id), "--log-format", "json", *where],
                stdout=log,
                stderr=log,
            )

    def kill(self, node_id: int) -> None:
        process = self.processes.pop(node_id)
        process.kill()
        process.wait()
        self.bootstrap.pop(node_id, None)

    def commit(self, within_s: float = COMMIT_S) -> float:
        """Seconds until an append is committed. AssertionError with what the nodes said if it is not in time."""
        began = time.monotonic()
        deadline = Deadline(within_s)
        error: FastQuorumError | None = None
        while not deadline.is_over:
            with QuorumClient(list(self.bootstrap.values()), self._kernels) as client:
                try:
                    client.append([b"x"], deadline)
                    return in_time(time.monotonic() - began, within_s)
                except FastQuorumError as failed:  # its outcome is unknown, or the leader moved
                    error = failed
                in_time(time.monotonic() - began, within_s)
        logs = "".join(self.log(node_id).read_text() for node_id in self.bootstrap)
        raise AssertionError(f"no commit within {within_s:g} s: {error}\n{logs}")

    def leader(self) -> int:
        """The leader of the newest epoch that the nodes named one of."""
        return int(self._last_led()["leader"])

    def epoch(self) -> int:
        """That epoch."""
        return int(self._last_led()["epoch"])

    def wait_led_after(self, epoch: int) -> None:
        """Until the nodes name a leader of a later one."""
        until = time.monotonic() + COMMIT_S
        while self.epoch() <= epoch:
            assert time.monotonic() < until, "".join(self.log(node_id).read_text() for node_id in self.processes)
            time.sleep(0.05)

    def _last_led(self) -> dict[str, Any]:
        led = [each for node_id in self.processes for each in self.reported(node_id, "leadership") if each["leader"]]
        return max(led, key=lambda each: int(each["epoch"]), default={"epoch": -1, "leader": -1})

    def reported(self, node_id: int, event: str) -> list[dict[str, Any]]:
        lines = self.log(node_id).read_text().splitlines()
        return [entry for line in lines if line.startswith("{") and (entry := json.loads(line))["event"] == event]

    def wait_reported(self, node_id: int, event: str) -> dict[str, Any]:
        """The first of these events. AssertionError if it does not come."""
        until = time.monotonic() + COMMIT_S
        while not (found := self.reported(node_id, event)):
            assert time.monotonic() < until, f"node {node_id} does not say {event}:\n{self.log(node_id).read_text()}"
            time.sleep(0.05)
        return found[0]

    @contextmanager
    def sniffer(self, target: str) -> Iterator[subprocess.Popen[str]]:
        """At 127.0.0.1:PORT, once it listens."""
        words = ("wire", "sniff", "--listen", f"127.0.0.1:{PORT}", "--to", target, "--format", "json")
        with subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                assert "is passed on" in process.stderr.readline()
                yield process
            finally:
                process.kill()

    def deaf(self, port: int) -> None:
        """Have connections to DEAF:port begun for ever: whoever listens there has more of them than it wants."""
        server = socket.create_server((DEAF, port), backlog=0)
        self._deaf.append(server)
        for _ in range(4):
            filling = socket.socket()
            filling.setblocking(False)
            filling.connect_ex(server.getsockname())
            self._deaf.append(filling)

    def closing(self, port: int) -> None:
        """Have connections to CLOSING:port accepted and closed, as a port mapping does for which nobody listens."""
        server = socket.create_server((CLOSING, port))

        def serve() -> None:
            while True:
                server.accept()[0].close()

        threading.Thread(target=serve, daemon=True).start()

    def pass_on(self, here: tuple[str, int], there: tuple[str, int]) -> None:
        """A proxy, as a sidecar is one."""
        server = socket.create_server(here)

        def serve() -> None:
            while True:
                client, _ = server.accept()
                with contextlib.suppress(OSError):  # nobody listens there yet: the client hears of it by the close
                    target = socket.create_connection(there)
                    for one, other in ((client, target), (target, client)):
                        threading.Thread(target=_pump, args=(one, other), daemon=True).start()
                    continue
                client.close()

        threading.Thread(target=serve, daemon=True).start()

    def data(self, node_id: int) -> str:
        return str(self.root / f"n{node_id}")

    def log(self, node_id: int) -> Path:
        return self.root / f"log{node_id}"

    def close(self) -> None:
        for node_id in list(self.processes):
            self.kill(node_id)


@contextmanager
def rig(root: Path) -> Iterator[Rig]:
    """In a namespace that was made for it."""
    own_network(root)
    made = Rig(root)
    try:
        yield made
    finally:
        made.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
