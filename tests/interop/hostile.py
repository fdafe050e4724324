"""Crowds of hostile connections of one kind after the other, against the leader of three real nodes.

Each crowd is there for some seconds. Meanwhile a client appends, the leader's memory is looked at, and in the end the
same node must lead the same epoch: whatever a crowd makes a node keep or do has a bound, and the quorum goes first.
"""

import argparse
import os
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum.client.connection import NoAnswer, NotSent
from fastquorum.client.refusals import OutcomeUnknown
from fastquorum.errors import NotReady

from .fuzz.nodes_time import MIB, complaints, resident_bytes
from .hostile_kinds import Kind, kinds, short
from .nodes import Nodes, running

Say = Callable[[str], None]
GROWTH_MIB_MAX: Final = 450
"""More memory of a node than before the first crowd: what may be kept for all (`fastquorum guide limits`), and what
one turn takes."""
RECORD_BYTES: Final = 500_000
DESCRIPTORS: Final = 8_192
LATE: Final = (NotReady, NotSent, NoAnswer, OutcomeUnknown)
CROWD_WAIT_S: Final = 120.0
"""Until a crowd that has left is dealt with, on a busy machine."""


class Crowd:
    """So many connections of one kind to one port."""

    def __init__(self, port: int, kind: Kind, connections: int) -> None:
        self._port = port
        self._kind = kind
        self._sockets = [self._connected() for _ in range(connections)]

    def _connected(self) -> tuple[socket.socket, bytearray]:
        sock = socket.socket()
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.connect(("127.0.0.1", self._port))
        return sock, bytearray(self._kind.begins_with)

    def turn(self) -> None:
        """A little of everything."""
        for number, (sock, unsent) in enumerate(self._sockets):
            try:
                if unsent:
                    del unsent[: sock.send(unsent)]
                elif self._kind.trickles:
                    sock.send(self._kind.trickles)
                elif self._kind.half_closes:
                    sock.shutdown(socket.SHUT_WR)
                if self._kind.reads_bytes and sock.recv(self._kind.reads_bytes) and not unsent:
                    unsent += self._kind.begins_with
            except BlockingIOError:
                continue
            except OSError:
                pass  # it was hung up on
            else:
                if not self._kind.reconnects:
                    continue
            sock.close()
            with suppress(OSError):  # nobody has a port left for it: the next turn
                self._sockets[number] = self._connected()

    def close(self) -> None:
        for sock, _ in self._sockets:
            sock.close()


@contextmanager
def many_descriptors() -> Iterator[None]:
    """For this process, and the nodes that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def hostile_nodes(kernels: str = "native", *, is_controllers: bool = False) -> Iterator[Nodes]:
    """Three nodes whose log is a few MiB long, or three controllers."""
    arguments = ("--kernels", kernels, *(["--controller"] if is_controllers else []))
    log = "metadata" if is_controllers else "user"
    with tempfile.TemporaryDirectory() as scratch, running(Path(scratch), log=log, arguments=arguments) as nodes:
        for _ in range(0 if is_controllers else 8):
            nodes.append(os.urandom(RECORD_BYTES))
        yield nodes


def append(nodes: Nodes, number: int) -> None:
    """What somebody who is not hostile has committed meanwhile in a user log."""
    nodes.append(b"while they are there")


def change(nodes: Nodes, number: int) -> None:
    """The same of controllers."""
    nodes.change(1 + number % 7)


class Load(NamedTuple):
    """How large a crowd is, how long it is there, what a node may grow by, and what is committed meanwhile."""

    connections: int
    seconds: float
    growth_mib_max: float = GROWTH_MIB_MAX
    commit: Callable[[Nodes, int], None] = append


def withstand(nodes: Nodes, name: str, kind: Kind, load: Load) -> dict[str, Any]:
    """One crowd at the leader, or at a follower; what came of it, and `problems`."""
    before = nodes.wait_caught_up()
    leader_id = before.leader_id
    target_id = next(each for each in nodes.ids if (each == leader_id) != kind.at_follower)
    pids = {nodes.pid(each) for each in (leader_id, target_id)}
    at_first = {pid: resident_bytes(pid) for pid in pids}
    grew, worst_s, committed, unanswered = 0, 0.0, 0, 0
    crowd = Crowd(nodes.ports[target_id], kind, load.connections)
    with ExitStack() as stack:
        stack.callback(crowd.close)
        until = time.monotonic() + load.seconds
        while time.monotonic() < until:
            crowd.turn()
            began = time.monotonic()
            try:
                load.commit(nodes, committed)
                committed += 1
            except LATE:  # it waits a moment only, and a thousand others have their turns
                unanswered += 1
            worst_s = max(worst_s, time.monotonic() - began)
            grew = max(grew, *(resident_bytes(pid) - at_first[pid] for pid in pids))
    after = nodes.wait_caught_up(CROWD_WAIT_S)
    problems = []
    if (after.leader_id, after.epoch) != (leader_id, before.epoch):
        problems.append(f"{name}: node {after.leader_id} leads epoch {after.epoch}, no more {leader_id} {before.epoch}")
    if grew > load.growth_mib_max * MIB:
        problems.append(f"{name}: a node grew by {grew // MIB} MiB")
    problems += [f"{name}: node {each} says {line}" for each in nodes.ids for line in complaints(nodes.stderr(each))]
    return {
        "kind": name,
        "committed": committed,
        "unanswered": unanswered,
        "worst_commit_ms": round(1000 * worst_s),
        "grew_mib": grew // MIB,
        "problems": problems,
    }


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--connections", type=int, metavar="N", help="of each kind at once (1000; 100 with --short)")
    parser.add_argument("--seconds", type=float, metavar="S", help="for each kind (8; 0.5 with --short)")
    parser.add_argument("--short", action="store_true", help="of the kinds only those that the tests have")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="kinds whose names contain it")
    parser.add_argument("--growth-mib", type=float, default=GROWTH_MIB_MAX, metavar="MIB", help="at most (450)")
    parser.add_argument("--log", choices=("user", "controllers"), default="user", help="whose nodes they are (user)")
    parser.add_argument("--kernels", choices=("native", "pure"), default="native", help="of the nodes (native)")


def campaign(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """Every kind after the other, at the same nodes."""
    found: list[dict[str, Any]] = []
    is_controllers = options.log == "controllers"
    commit = change if is_controllers else append
    connections = options.connections or (100 if options.short else 1000)
    seconds = options.seconds or (0.5 if options.short else 8.0)
    load = Load(connections, seconds, options.growth_mib, commit)
    names = [each for each in kinds(is_controllers=is_controllers) if not options.short or each in short()]
    with ExitStack() as stack:
        stack.enter_context(many_descriptors())
        nodes = stack.enter_context(hostile_nodes(options.kernels, is_controllers=is_controllers))
        for name in names:
            if options.only and not any(text in name for text in options.only):
                continue
            epoch = nodes.describe().epoch
            kind = kinds(is_controllers=is_controllers, epoch=epoch)[name]
            done = withstand(nodes, name, kind, load)
            say(f"{name}: {done}")
            found.append(done)
    return {
        "connections": connections,
        "kinds": found,
        "problems": [p for each in found for p in each["problems"]],
    }
