"""A quorum for a program's own tests: n nodes in this process, ready within half a second, gone with the test.

    pytest_plugins = ["fastquorum.testing"]  # in conftest.py

Then `quorum_of(3)` in a test, or `async with async_quorum_of(3) as nodes` in a coroutine; `quorum` and `async_quorum`
are the same without fixtures. Each node has a directory, a port and a thread of its own, as any other has; the
directories are in memory where the system has a place for that, so that syncs cost nothing.
"""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Generic, TypeVar, Unpack

import pytest

import fastquorum
from fastquorum import sync
from fastquorum.api.options import OpenOptions
from fastquorum.api.waiting import within
from fastquorum.closing import end_all, raise_first
from fastquorum.config import MS, SECOND
from fastquorum.errors import ClosedError, NotReady, UsageError
from fastquorum.kernels.lane import Connection
from fastquorum.loopback import HOST, free_ports
from fastquorum.loops import in_own_thread
from fastquorum.node.io.sockets.outgoing import Outgoing, cut_off
from fastquorum.timeouts import wait_s
from fastquorum.types import LISTENER_NAME, Endpoint

READY_S: Final = 30.0
"""How long a leader is waited for: on a machine that is busy with something else it may take so long."""
CUT_S: Final = 30.0
"""How long a node is waited for that is to give up its connections, as it does at once unless it is held up."""
_MEMORY: Final = "/dev/shm"
_CLOSE_S: Final = 0.1
_SOON: Final[OpenOptions] = {
    "fetch_timeout_us": 2 * SECOND,
    "request_timeout_us": SECOND,
    "retry_backoff_us": 5 * MS,
    "election_backoff_us_max": 50 * MS,
    "preallocate_bytes": 64 * 1024,
    "segment_bytes": 16 * 1024 * 1024,
}
_OWN: Final = frozenset(("path", "node_id", "voters", "listen", "advertise", "create"))
"""Options that differ from node to node, name all of them, or are of directories that are there already."""
_FIRST_ELECTION_US: Final = 20 * MS
_ELECTION_US: Final = 150 * MS
"""Node 1 stands first, so that no vote is split."""

_Q = TypeVar("_Q", sync.Quorum, fastquorum.Quorum)


class Nodes(Generic[_Q]):
    """The nodes of one quorum, by id from 1."""

    def __init__(self, size: int, directory: str, options: OpenOptions) -> None:
        if not isinstance(size, int) or size < 1:
            raise UsageError(f"a quorum cannot have {size!r} nodes", "give 1 node or more")
        for name in _OWN & options.keys():
            raise UsageError(
                f"{name} cannot be set for a quorum made for tests", f"leave {name} out: the quorum has its own"
            )
        self.nodes: dict[int, _Q] = {}
        self._is_over = False
        self._directory = directory
        self._options = options
        ports = free_ports(size)
        self._ids = range(1, size + 1)
        self._endpoints = {
            node_id: Endpoint(LISTENER_NAME, HOST, port) for node_id, port in zip(self._ids, ports, strict=True)
        }
        self._voters = ",".join(f"{node_id}@{each.address}" for node_id, each in self._endpoints.items())
        self._side: frozenset[int] = frozenset()

    @property
    def leader(self) -> _Q:
        """The node that leads. UsageError while none does: wait for one by `wait_leader`."""
        for node in self.nodes.values():
            if node.is_leader:
                return node
        raise UsageError("no node of this quorum leads at the moment", "wait for a leader by `wait_leader`")

    @property
    def followers(self) -> list[_Q]:
        """All but the leader."""
        leader = self.leader
        return [node for node in self.nodes.values() if node is not leader]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[_Q]:
        return iter(self.nodes.values())

    def __getitem__(self, node_id: int) -> _Q:
        return self._running(node_id)

    def partition(self, *node_ids: int) -> None:
        """Cut these nodes off from all others: neither side reaches the other once this returns, until `heal`. The
        program reaches both; a leader that is cut off takes itself for the leader until its timeout is over, and
        acknowledges nothing. A former partition is over. UsageError if there is no such node, or no other."""
        for node_id in node_ids:
            self._check_member(node_id)
        if len({*node_ids}) in (0, len(self._ids)):
            raise UsageError("that cuts no node off", "name some of the nodes, and not all")
        self._part(frozenset(node_ids))

    def heal(self) -> None:
        """Have all nodes reach each other again."""
        self._part(frozenset())

    def _newest_leader(self) -> _Q | None:
        """The running node that leads the newest epoch that any of them knows; None while there is none. Raises
        ClosedError, UsageError if no node runs."""
        self._check_not_over()
        nodes = list(self.nodes.values())
        if not nodes:
            raise UsageError("no node of this quorum runs", "start one first")
        newest = max(node.epoch for node in nodes)
        return next((node for node in nodes if node.is_leader and node.epoch == newest), None)

    def _no_leader(self, timeout: float) -> NotReady:
        ids = ", ".join(map(str, self.nodes))
        newest = max((node.epoch for node in list(self.nodes.values())), default=-1)
        return NotReady(f"after {timeout} s, none of the running nodes ({ids}) leads epoch {newest}, their newest")

    def _part(self, side: frozenset[int]) -> None:
        self._check_not_over()
        self._side = side
        cut = {node_id: self._cut(node_id) for node_id in self.nodes}
        for node_id, connections in cut.items():
            if not self._transport(node_id).errors.are_forgotten(connections, CUT_S):
                raise TimeoutError(f"node {node_id} has not given up its connections within {CUT_S} s")

    def _cut(self, node_id: int) -> list[Connection]:
        is_inside = node_id in self._side
        others = (each for other, each in self._endpoints.items() if (other in self._side) is not is_inside)
        return cut_off(self._transport(node_id), others)

    def _transport(self, node_id: int) -> Outgoing:
        transport: Outgoing = self.nodes[node_id]._node._transport
        return transport

    def _running(self, node_id: int) -> _Q:
        """UsageError if it does not run."""
        if node_id not in self.nodes:
            raise UsageError(f"node {node_id!r} of this quorum does not run", f"these do: {[*self.nodes]}")
        return self.nodes[node_id]

    def _taken_out(self, node_id: int) -> _Q:
        """The node, which is to vanish. UsageError if it does not run."""
        node = self._running(node_id)
        del self.nodes[node_id]
        return node

    def _check_member(self, node_id: int) -> None:
        if node_id not in self._ids:
            raise UsageError(f"this quorum has no node {node_id!r}", f"it has 1 to {len(self._ids)}")

    def _check_not_over(self) -> None:
        if self._is_over:
            raise ClosedError("this quorum and its directories were closed with its block or test")

    def _arguments(self, node_id: int) -> tuple[str, OpenOptions]:
        """Path and options to open a node with; again, after it was closed. UsageError if it runs, or is none."""
        self._check_not_over()
        self._check_member(node_id)
        if node_id in self.nodes:
            raise UsageError(f"node {node_id} of this quorum runs already", "stop it first")
        options: OpenOptions = {
            **_SOON,
            "election_timeout_us": _FIRST_ELECTION_US if node_id == 1 else _ELECTION_US,
            "cluster_id": "fastquorum-testing",
            **self._options,
            "node_id": node_id,
            "voters": self._voters,
            "create": True,
        }
        return os.path.join(self._directory, str(node_id)), options


class BlockingNodes(Nodes[sync.Quorum]):
    """For threads. Made by `quorum`."""

    def __init__(self, size: int, directory: str, options: OpenOptions) -> None:
        super().__init__(size, directory, options)
        self._changed = threading.Condition()

    def wait_leader(self, timeout: float | None = READY_S) -> sync.Quorum:
        """Wait until a running node leads, and none of the running nodes knows a newer epoch; return that node, which
        accepts appends. NotReady: not within `timeout` seconds. UsageError: no node runs."""
        timeout = wait_s(timeout)
        with self._changed:
            leader = self._changed.wait_for(self._newest_leader, timeout)
        if leader is None:
            assert timeout is not None
            raise self._no_leader(timeout)
        return leader

    def stop(self, node_id: int) -> None:
        """Have one vanish without a word to the others, as if its process were killed."""
        node = self._taken_out(node_id)
        node._node.abort()
        self._notify()

    def start(self, node_id: int) -> sync.Quorum:
        """Open one that was stopped, with the log it had. It need not be ready yet: wait for that by its
        `wait_ready`."""
        path, options = self._arguments(node_id)
        node = self.nodes[node_id] = sync.open(path, **options)
        node._watch.on_change = self._notify
        self._notify()  # of what changed before
        self._cut(node_id)
        return node

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _start_all(self) -> None:
        with ThreadPoolExecutor(len(self._ids)) as threads:
            list(threads.map(self.start, self._ids))
        for node in self:
            node.wait_ready(READY_S)

    def _close_all(self) -> None:
        self._is_over = True
        self._notify()
        for node in self:
            node._node.request_stop()
        end_all([partial(node.close, timeout=_CLOSE_S) for node in self])


class AsyncNodes(Nodes[fastquorum.Quorum]):
    """For one event loop. Made by `async_quorum`."""

    def __init__(self, size: int, directory: str, options: OpenOptions) -> None:
        super().__init__(size, directory, options)
        self._changed = asyncio.Event()

    async def wait_leader(self, timeout: float | None = READY_S) -> fastquorum.Quorum:
        """Wait until a running node leads, and none of the running nodes knows a newer epoch; return that node, which
        accepts appends. NotReady: not within `timeout` seconds. UsageError: no node runs."""
        return await within(wait_s(timeout), self._until_led(), self._no_leader)

    async def _until_led(self) -> fastquorum.Quorum:
        while True:
            self._changed.clear()  # before looking: what changes after the look sets it
            leader = self._newest_leader()
            if leader is not None:
                return leader
            await self._changed.wait()

    async def stop(self, node_id: int) -> None:
        """Have one vanish without a word to the others, as if its process were killed."""
        node = self._taken_out(node_id)
        await in_own_thread(node._node.abort)
        self._changed.set()

    async def start(self, node_id: int) -> fastquorum.Quorum:
        """Open one that was stopped, with the log it had. It need not be ready yet: wait for that by its
        `wait_ready`."""
        path, options = self._arguments(node_id)
        node: fastquorum.Quorum = await fastquorum.open(path, **options)
        self.nodes[node_id] = node
        node._bridge.on_change = self._changed.set
        self._changed.set()  # for what changed before
        self._cut(node_id)
        return node

    async def _start_all(self) -> None:
        started = await asyncio.gather(*map(self.start, self._ids), return_exceptions=True)
        for each in started:
            if isinstance(each, BaseException):
                raise each  # now that no other start is under way: `_close_all` finds them all
        for node in self:
            await node.wait_ready(READY_S)

    async def _close_all(self) -> None:
        self._is_over = True
        self._changed.set()
        for node in self:
            node._node.request_stop()
        closed = await asyncio.gather(*(node.close(timeout=_CLOSE_S) for node in self), return_exceptions=True)
        raise_first(each for each in closed if each is not None)


@contextmanager
def quorum(size: int = 3, **options: Unpack[OpenOptions]) -> Iterator[BlockingNodes]:
    """A quorum of so many nodes while the block lasts, with the blocking API. `options` are those of `open`."""
    with _directory() as directory:
        nodes = BlockingNodes(size, directory, options)
        try:
            nodes._start_all()
            yield nodes
        finally:
            nodes._close_all()


@asynccontextmanager
async def async_quorum(size: int = 3, **options: Unpack[OpenOptions]) -> AsyncIterator[AsyncNodes]:
    """Open a quorum like `quorum`, in an event loop, with the asyncio API."""
    with _directory() as directory:
        nodes = AsyncNodes(size, directory, options)
        try:
            await nodes._start_all()
            yield nodes
        finally:
            await nodes._close_all()


def _directory() -> "tempfile.TemporaryDirectory[str]":
    place = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    return tempfile.TemporaryDirectory(prefix="fastquorum-", dir=place)


@pytest.fixture
def quorum_of() -> Iterator[Callable[..., BlockingNodes]]:
    """Gives quorums of the size that it is called with, and the options of `open`; they end with the test."""
    with ExitStack() as stack:

        def make(size: int = 3, **options: Any) -> BlockingNodes:
            return stack.enter_context(quorum(size, **options))

        yield make


@pytest.fixture
def async_quorum_of() -> Callable[..., AbstractAsyncContextManager[AsyncNodes]]:
    """Return `async_quorum`, which the test enters in its own event loop."""
    return async_quorum
