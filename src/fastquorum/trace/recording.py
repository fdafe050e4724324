"""Recording on nodes, and what was recorded: merged over nodes, written, and read back."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol, Self

from fastquorum.errors import UsageError
from fastquorum.home import expanded
from fastquorum.kernels.stages import TracedGroup, TraceRead
from fastquorum.trace.chrome import chrome_trace
from fastquorum.types import NodeId

CAPACITY: Final = 4096
"""Batches of a node that a recording keeps, if nothing is said: some 10 MB in Perfetto's format, for three nodes."""


class TraceSource(Protocol):
    """A node, as `node.io.running.RunningNode` is one."""

    def trace_start(self, capacity: int) -> None: ...
    def trace_stop(self) -> None: ...
    def trace_read(self) -> TraceRead: ...


class Traceable(Protocol):
    """A `fastquorum.Quorum` or `fastquorum.sync.Quorum`."""

    @property
    def node_id(self) -> NodeId: ...
    @property
    def trace_source(self) -> TraceSource: ...


class NodeTrace(NamedTuple):
    """What one node recorded."""

    node_id: NodeId
    groups: list[TracedGroup]
    lost: int
    """Batches recorded before these, and overwritten since."""

    def as_json(self) -> dict[str, Any]:
        return {"node_id": self.node_id, "lost": self.lost, "groups": [list(group) for group in self.groups]}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        return cls(fields["node_id"], [TracedGroup(*group) for group in fields["groups"]], fields["lost"])


class Trace:
    """The trace of nodes that share a machine, and so a clock."""

    def __init__(self, nodes: Iterable[NodeTrace]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.node_id)

    def chrome(self) -> dict[str, Any]:
        """Return Chrome's trace format, which Perfetto reads, as JSON values."""
        return chrome_trace({node.node_id: node.groups for node in self.nodes}, {n.node_id: n.lost for n in self.nodes})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file for Perfetto. OSError if it cannot be written."""
        with open(expanded(path), "w", encoding="ascii") as file:
            json.dump(self.chrome(), file, separators=(",", ":"))


class Recording:
    """A recording, under way from `start` until `stop`, or to the end of its block."""

    def __init__(self, quorums: Sequence[Traceable], capacity: int) -> None:
        self.trace: Trace | None = None
        """What was recorded; None while it is under way."""
        self._quorums = quorums
        started: list[Traceable] = []
        try:
            for quorum in quorums:
                quorum.trace_source.trace_start(capacity)
                started.append(quorum)
        except BaseException:
            for quorum in started:
                quorum.trace_source.trace_stop()
            raise

    def stop(self) -> Trace:
        """What was recorded. Again: the same."""
        if self.trace is None:
            nodes = []
            for quorum in self._quorums:
                read = quorum.trace_source.trace_read()
                quorum.trace_source.trace_stop()
                nodes.append(NodeTrace(quorum.node_id, read.groups, read.lost))
            self.trace = Trace(nodes)
        return self.trace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(*quorums: Traceable, capacity: int = CAPACITY) -> Recording:
    """Record the latest `capacity` batches of each of these nodes from now on. `stop` ends it.

    Recording anew on a node that is being recorded begins anew there. Raises UsageError, ClosedError.
    """
    if not quorums:
        raise UsageError("there is no node to record", "name a quorum that was opened in this process")
    return Recording(quorums, capacity)


def record(quorum: Traceable | Sequence[Traceable], seconds: float, *, capacity: int = CAPACITY) -> Trace:
    """Record for so long, blocking this thread meanwhile. In an event loop use `start`, or `quorum.trace`."""
    quorums = (quorum,) if not isinstance(quorum, Sequence) else tuple(quorum)
    with start(*quorums, capacity=capacity) as under_way:
        time.sleep(seconds)
    return under_way.stop()


@contextmanager
def recording(path: str | os.PathLike[str], *quorums: Traceable, capacity: int = CAPACITY) -> Iterator[Recording]:
    """Record what happens in the block, and write it to a file for Perfetto at its end, however it ends.

    A path that cannot be written is an OSError before anything is recorded.
    """
    with open(expanded(path), "w", encoding="ascii"):
        pass
    under_way = start(*quorums, capacity=capacity)
    try:
        yield under_way
    finally:
        under_way.stop().write(path)
