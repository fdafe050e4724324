"""Looks at every node of a quorum at once: what it answers as a quorum's node, and what it serves as metrics.

Each node is asked on a thread of its own, with a deadline: those that are down, or hang, do not delay the others.
"""

import http.client
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Self

from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent, connect
from fastquorum.client.describing import Voters, describe_request
from fastquorum.client.quorum import CONTROLLERS, DESCRIBE_CLUSTER_VERSION, DESCRIBE_QUORUM_VERSION
from fastquorum.errors import PeerProtocolError
from fastquorum.observe.exposition import Samples, parse
from fastquorum.types import LISTENER_NAME, NO_NODE, Endpoint, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

THREADS_MAX: Final = 32
PAGE_BYTES_MAX: Final = 16 * 1024 * 1024


class NodeAnswer(NamedTuple):
    """A node's answer as a node; or why there is none."""

    endpoint: Endpoint
    cluster: DescribeClusterResponse | None
    reason: str


class MetricsPage(NamedTuple):
    """A node's metrics; or why there are none."""

    endpoint: Endpoint
    samples: Samples | None
    reason: str

    @property
    def node_id(self) -> NodeId | None:
        """The id of the node whose metrics these are; None if they do not say."""
        found = self.samples.all("fastquorum_info") if self.samples is not None else []
        return int(found[0].labels["node_id"]) if found else None


class QuorumLook(NamedTuple):
    """The state of the quorum at one moment."""

    at_s: float
    """Seconds of the monotonic clock."""
    took_at: float
    """Seconds since 1970."""
    answers: tuple[NodeAnswer, ...]
    """One for each known endpoint, in the order of discovery."""
    quorum: Voters | None
    """The voters as the leader sees them; None if no leader is found."""
    no_quorum: str
    """Why `quorum` is None."""
    nodes: dict[NodeId, Endpoint]
    """Endpoints of all nodes that any node knows."""
    pages: tuple[MetricsPage, ...]

    @property
    def cluster_id(self) -> str:
        return next((each.cluster.cluster_id for each in self.answers if each.cluster is not None), "")


class Looker:
    """Keeps its connections, and what it learned of the nodes, from one look to the next."""

    def __init__(
        self, bootstrap: Sequence[Endpoint], metrics: Sequence[Endpoint], metrics_port: int | None, timeout_s: float
    ) -> None:
        """`metrics_port`: look for metrics at that port of each node's host."""
        self._bootstrap = tuple(bootstrap)
        self._metrics = tuple(metrics)
        self._metrics_port = metrics_port
        self._timeout_s = timeout_s
        self._nodes: dict[NodeId, Endpoint] = {}
        self._connections: dict[Endpoint, Connection] = {}
        self._threads = ThreadPoolExecutor(THREADS_MAX, "fastquorum-top")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in self._connections.values():
            connection.close()

    def look(self) -> QuorumLook:
        pages = {each: self._threads.submit(self._page, each) for each in self._metrics_endpoints()}
        known = tuple(dict.fromkeys((*self._nodes.values(), *self._bootstrap)))
        answers = tuple(self._threads.map(self._describe_cluster, known))
        self._learn(answers)
        # Those that were only just heard of.
        new = [each for each in self._nodes.values() if each not in known]
        answers += tuple(self._threads.map(self._describe_cluster, new))
        quorum, no_quorum = self._describe_quorum(answers)
        for each in self._metrics_endpoints():
            if each not in pages:
                pages[each] = self._threads.submit(self._page, each)
        found = tuple(each.result() for each in pages.values())
        return QuorumLook(time.monotonic(), time.time(), answers, quorum, no_quorum, dict(self._nodes), found)

    def _learn(self, answers: Sequence[NodeAnswer]) -> None:
        for each in answers:
            for node in each.cluster.brokers if each.cluster is not None else ():
                self._nodes[node.broker_id] = Endpoint(LISTENER_NAME, node.host, node.port)

    def _metrics_endpoints(self) -> tuple[Endpoint, ...]:
        if self._metrics_port is None:
            return self._metrics
        hosts = dict.fromkeys(each.host for each in self._nodes.values())
        return tuple(Endpoint("", host, self._metrics_port) for host in hosts)

    # --- each on a thread of its own ----------------------------------------------------------------------------------

    def _describe_cluster(self, endpoint: Endpoint) -> NodeAnswer:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        try:
            response = self._ask(endpoint, request, DESCRIBE_CLUSTER_VERSION)
        except (NotSent, NoAnswer) as error:
            return NodeAnswer(endpoint, None, error.reason)
        except PeerProtocolError as error:
            return NodeAnswer(endpoint, None, str(error))
        assert isinstance(response, DescribeClusterResponse)
        if response.error_code:
            return NodeAnswer(endpoint, None, error_name(response.error_code))
        return NodeAnswer(endpoint, response, "")

    def _describe_quorum(self, answers: Sequence[NodeAnswer]) -> tuple[Voters | None, str]:
        """Ask the node that most nodes take for the leader."""
        named = [each.cluster.controller_id for each in answers if each.cluster is not None]
        leaders = sorted({each for each in named if each != NO_NODE}, key=named.count, reverse=True)
        reason = "no node knows a leader" if named else "no node answers"
        for leader in leaders:
            endpoint = self._nodes.get(leader)
            if endpoint is None:
                continue
            try:
                response = self._ask(endpoint, describe_request(), DESCRIBE_QUORUM_VERSION)
            except (NotSent, NoAnswer, PeerProtocolError) as error:
                reason = f"node {leader} was the last one known to lead, and {error}"
                continue
            assert isinstance(response, DescribeQuorumResponse)
            code = response.error_code or response.topics[0].partitions[0].error_code
            if code == ErrorCode.NONE:
                return response.topics[0].partitions[0], ""
            reason = f"node {leader} answers {error_name(code)}"
        return None, reason

    def _ask(self, endpoint: Endpoint, request: Message, version: int) -> Message:
        deadline = Deadline(self._timeout_s)
        connection = self._connections.pop(endpoint, None) or Connection(endpoint, deadline)
        response = connection.request(request, version, deadline)
        self._connections[endpoint] = connection  # not kept where the request failed: it is closed then
        return response

    def _page(self, endpoint: Endpoint) -> MetricsPage:
        connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        deadline = Deadline(self._timeout_s)
        try:
            connection.sock = _DeadlineSocket(connect(endpoint, deadline), deadline)
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            text = response.read(PAGE_BYTES_MAX).decode("utf-8")
            if response.status != http.client.OK:
                return MetricsPage(endpoint, None, f"{endpoint.address}: HTTP {response.status}")
            return MetricsPage(endpoint, parse(text), "")
        except NotSent as error:
            return MetricsPage(endpoint, None, str(error))
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or repr(error)
            return MetricsPage(endpoint, None, f"{endpoint.address}: {reason}")
        finally:
            connection.close()


class _DeadlineSocket(socket.socket):
    """A socket with one deadline for all reads together; a plain timeout starts again with each read."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        super().__init__(fileno=connected.detach())
        self._deadline = deadline
        self.settimeout(max(deadline.left_s, 0.001))

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0, flags: int = 0, /) -> int:  # type: ignore[override]
        """Receive. TimeoutError once the deadline is over."""
        self.settimeout(max(self._deadline.left_s, 0.001))
        return super().recv_into(buffer, nbytes, flags)
