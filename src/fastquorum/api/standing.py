"""What the asyncio and the blocking API share: where a node stands, and what is said when something does not come in
time."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from fastquorum.errors import AppendTimeout, NotLeader, NotReady, UsageError
from fastquorum.kernels.stages import StageHistogram
from fastquorum.node.io import handles
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.logged import Logged
from fastquorum.node.io.observing import Leadership, Observer
from fastquorum.node.io.running import GRACE_S, RunningNode
from fastquorum.node.network.reachability import unreachable_text
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.observe.starting import start_node
from fastquorum.opening import check_interpreter
from fastquorum.timeouts import wait_s
from fastquorum.trace.recording import CAPACITY, Recording, recording
from fastquorum.types import NO_NODE, Endpoint, Epoch, NodeId, Offset

BARRIER_RETRY_S: Final = 0.002
"""A leader in the middle of a decision refuses a barrier; this much later it has decided."""


class QuorumHandle(handles.Guarded):
    """One node of a quorum, as far as both APIs say the same of it."""

    def __init__(self, node: RunningNode) -> None:
        super().__init__()
        self._node = node

    def _is_unclosed(self) -> bool:
        return self._node.is_running

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return (
            f"<{kind} of the process that forked this one>" if self._is_in_child else f"<{kind} of {self._node.name}>"
        )

    @property
    def node_id(self) -> NodeId:
        return self._node.identity.node_id

    @property
    def leader(self) -> NodeId:
        """The leader's id as far as this node knows; -1 while no leader is known."""
        return self._node.leadership.leader_id

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return self._node.is_leader

    @property
    def epoch(self) -> Epoch:
        return self._node.leadership.epoch

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of what is committed, as far as this node knows; -1 unknown. It never falls."""
        return self._node.high_watermark

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of this node's log. Beyond the high watermark nothing is promised: a follower may have to cut
        off there what another leader never had; but for that it never falls."""
        return self._node.log.end_offset

    @property
    def role(self) -> str:
        """unattached, prospective, candidate, leader, follower, resigned or observer."""
        return self._node.role

    @property
    def endpoint(self) -> Endpoint:
        """Where this node tells others to reach it; as text, HOST:PORT."""
        return self._node.advertised

    def stage_histograms(self) -> dict[str, StageHistogram]:
        """How long commits took on this node since it was opened, stage by stage: see `fastquorum.kernels.stages`."""
        return self._node.stage_histograms()

    def trace(self, path: str | os.PathLike[str], *, capacity: int = CAPACITY) -> AbstractContextManager[Recording]:
        """Record when the latest `capacity` batches passed which stage while the block lasts, into a file for Perfetto.

        For several nodes of a process in one file see `fastquorum.trace.recording`. Raises OSError if the file cannot
        be written, ClosedError.
        """
        return recording(path, self, capacity=capacity)

    @property
    def trace_source(self) -> RunningNode:
        """What `fastquorum.trace` records on."""
        return self._node

    @property
    def metrics_endpoint(self) -> Endpoint | None:
        """Where /metrics, /healthz and /readyz are served; None if they are not (`metrics` of `open`)."""
        return self._node.metrics_endpoint

    def _raise_if_failed(self) -> None:
        if self._node.error is not None:
            raise self._node.error

    def _barrier_timeout(self, timeout: float) -> NotReady:
        alone = unreachable_text(self._node.unreachable, now_us())
        return self._why(f"no majority answered the read barrier within {timeout} s{f'; {alone}' if alone else ''}")

    def _not_ready(self, timeout: float) -> NotReady:
        who = (
            "no leader is known"
            if self.leader == NO_NODE
            else f"node {self.leader} has committed nothing in its epoch yet"
        )
        error = self._node.not_leader()
        why = f"; {error.hindrance}" if isinstance(error, NotLeader) and error.hindrance else ""
        return self._why(f"after {timeout} s, {who} (epoch {self.epoch}){why}")

    def _transfer_timeout(self, timeout: float) -> NotReady:
        return self._why(f"nobody was elected within {timeout} s")

    def _why(self, what: str) -> NotReady:
        """With why leadership changed last, if it is known."""
        last = self._node.last_change
        return NotReady(what + (f"; leadership last changed for: {last.reason}" if last is not None else ""))


class Transfer:
    """Leadership on its way from this leader to another voter. Raises NotLeader, UsageError."""

    def __init__(self, node: RunningNode, node_id: NodeId) -> None:
        node.check_open()
        if isinstance(node_id, bool) or not isinstance(node_id, int):
            raise UsageError(f"{node_id!r} is not a node id", "give a voter's, a whole number")
        before = node.leadership
        if not before.is_self or not node.is_leader:
            raise node.not_leader()
        self._node = node
        self._node_id = node_id
        self._before = before
        self.is_needless = node_id == node.identity.node_id
        if not self.is_needless:
            node.resign(node_id, before.epoch)

    def is_over(self) -> bool:
        """Was anybody elected?"""
        now = self._node.leadership
        return self.is_needless or (now.epoch > self._before.epoch and now.leader_id != NO_NODE)

    def result(self) -> Leadership:
        """The new leadership. NotReady: somebody else was elected."""
        after = self._node.leadership
        if not self.is_needless and after.leader_id != self._node_id:
            self._node.check_open()
            raise NotReady(f"node {after.leader_id} was elected instead of node {self._node_id}")
        return self._before if self.is_needless else after


def start_logged(settings: NodeSettings, observer: Observer) -> RunningNode:
    """Start a node like `observe.starting.start_node`, and log its events to `logging.getLogger("fastquorum")`."""
    check_interpreter()
    handles.end_left()
    logged = Logged(observer, settings.node_id)
    node = start_node(settings, logged)
    logged.started(node.advertised, node.identity.cluster_id, node.identity.node_id)
    return node


def stop_grace_s(timeout: float | None) -> float:
    """How long a close waits for another leader. UsageError if that is no time."""
    grace_s = wait_s(timeout)
    if timeout is None or grace_s is None:
        return GRACE_S
    if timeout < 0:
        raise UsageError(f"a timeout of {timeout} s is not a time to wait", "give 0 or more seconds, or None")
    return grace_s


def append_timeout(timeout: float) -> AppendTimeout:
    return AppendTimeout(timeout, True)


Failure = Callable[[float], Exception]
"""Says that something did not come within so many seconds."""
