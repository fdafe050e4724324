"""A network switch in user space, between network namespaces: it loses, delays, reorders, doubles and slows packets.

Each host is a network namespace whose only way out is a TUN device, and this process holds the other end of all of
them: `python -m tests.process.chaos.switch NAMESPACE=ADDRESS...`. What a link (from, to) does to packets, below TCP, is
told on stdin, a JSON object a line: {"source": ADDRESS, "target": ADDRESS, "loss": 0.3, ...} with the fields of `Link`.
The end of stdin ends it.
"""

import ctypes
import dataclasses
import fcntl
import heapq
import itertools
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

DEVICE = "wire"
MTU_BYTES = 9000
_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x0001 | 0x1000
_CLONE_NEWNET = 0x40000000
_PACKETS_PER_TURN = 64


@dataclass(slots=True)
class Link:
    """What becomes of packets one way. All defaults: they pass."""

    loss: float = 0.0
    """The share that is lost."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Each packet is late by up to so much more, so that packets overtake each other."""
    doubled: float = 0.0
    """The share that arrives twice."""
    bytes_per_s: float = 0.0
    """How much passes; 0: no limit. More than a second's worth is not queued, but lost."""
    free_at_s: float = 0.0
    """When the last packet let through will be through, on the monotonic clock."""


def enter(namespace: str) -> None:
    """Move the calling thread, and it alone, into a network namespace: sockets it makes from now on are there."""
    fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(fd, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {namespace}")
    finally:
        os.close(fd)


def _device(namespace: str) -> int:
    """Open a new TUN device inside the namespace; the descriptor works from outside."""
    made: list[int] = []

    def make() -> None:
        enter(namespace)
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH", DEVICE.encode(), _IFF_TUN_NO_PI))
        made.append(fd)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


def _up(namespace: str, address: str) -> None:
    for words in (
        ["link", "set", "lo", "up"],
        ["address", "add", f"{address}/24", "dev", DEVICE],
        ["link", "set", DEVICE, "mtu", str(MTU_BYTES), "up"],
    ):
        subprocess.run(["ip", "-n", namespace, *words], check=True)


class Switch:
    """Owns the devices; one thread."""

    def __init__(self, hosts: dict[str, str], seed: int) -> None:
        """`hosts`: address by namespace."""
        self._random = random.Random(seed)
        self._links: dict[tuple[bytes, bytes], Link] = {}
        self._device_of: dict[bytes, int] = {}
        self._late: list[tuple[float, int, int, bytes]] = []
        """Due time, a number that keeps the order of equals, device, packet."""
        self._numbers = itertools.count()
        self._selector = selectors.DefaultSelector()
        for namespace, address in hosts.items():
            fd = _device(namespace)
            _up(namespace, address)
            self._device_of[socket.inet_aton(address)] = fd
            self._selector.register(fd, selectors.EVENT_READ)
        os.set_blocking(0, False)
        self._selector.register(0, selectors.EVENT_READ)
        self._commands = b""

    def run(self) -> None:
        """Return at the end of stdin."""
        while True:
            for key, _ in self._selector.select(self._wait_s()):
                if key.fd == 0:
                    if not self._obey():
                        return
                else:
                    self._receive(key.fd)
            self._deliver_late()

    def _wait_s(self) -> float | None:
        return max(self._late[0][0] - time.monotonic(), 0.0) if self._late else None

    def _obey(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            fields = json.loads(line)
            pair = socket.inet_aton(fields.pop("source")), socket.inet_aton(fields.pop("target"))
            self._links[pair] = Link(**fields)
        return bool(data)

    def _receive(self, fd: int) -> None:
        for _ in range(_PACKETS_PER_TURN):
            try:
                packet = os.read(fd, MTU_BYTES + 64)
            except BlockingIOError:
                return
            if packet[0] >> 4 == 4:  # no neighbour discovery of IPv6
                self._pass(packet)

    def _pass(self, packet: bytes) -> None:
        source, target = packet[12:16], packet[16:20]
        device = self._device_of.get(target)
        if device is None:
            return
        link = self._links.get((source, target))
        if link is None:
            self._write(device, packet)
            return
        if self._random.random() < link.loss:
            return
        for _ in range(2 if self._random.random() < link.doubled else 1):
            self._send_late(link, device, packet)

    def _send_late(self, link: Link, device: int, packet: bytes) -> None:
        now = time.monotonic()
        due = now + link.delay_s + link.jitter_s * self._random.random()
        if link.bytes_per_s > 0:
            if link.free_at_s > now + 1:
                return
            link.free_at_s = max(link.free_at_s, now) + len(packet) / link.bytes_per_s
            due += link.free_at_s - now
        heapq.heappush(self._late, (due, next(self._numbers), device, packet))

    def _deliver_late(self) -> None:
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            _, _, device, packet = heapq.heappop(self._late)
            self._write(device, packet)

    def _write(self, device: int, packet: bytes) -> None:
        try:
            os.write(device, packet)
        except OSError:
            return  # the host's queue is full: a packet lost, as on any network


class Remote:
    """The switch in a process of its own, and its namespaces. Use as a context manager."""

    def __init__(self, hosts: dict[str, str], seed: int) -> None:
        """`hosts`: address by namespace; both are made here. Raises CalledProcessError where that is not allowed."""
        self._namespaces = list(hosts)
        self._addresses = list(hosts.values())
        self._made: list[str] = []
        try:
            for namespace in hosts:
                subprocess.run(["ip", "netns", "add", namespace], check=True, capture_output=True, text=True)
                self._made.append(namespace)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, str(seed), *(f"{name}={at}" for name, at in hosts.items())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        except BaseException:
            self._remove()
            raise
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "up\n":
            self.close()
            raise AssertionError("the switch did not come up")

    def set(self, source: str, target: str, link: Link | None = None) -> None:
        """From now on this becomes of packets one way; None: they pass."""
        assert self._process.stdin is not None
        fields = {"source": source, "target": target, **dataclasses.asdict(link or Link())}
        self._process.stdin.write(json.dumps(fields) + "\n")
        self._process.stdin.flush()

    def heal(self) -> None:
        for source, target in itertools.permutations(self._addresses, 2):
            self.set(source, target)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._remove()

    def _remove(self) -> None:
        for namespace in self._made:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


if __name__ == "__main__":
    switch = Switch(dict(each.split("=") for each in sys.argv[2:]), int(sys.argv[1]))
    print("up", flush=True)
    switch.run()
