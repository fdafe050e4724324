"""Finds the leader by Kafka's Metadata request to any node. Source: the Kafka protocol guide."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.errors import NotReady, PeerProtocolError, UsageError
from fastquorum.types import LISTENER_NAME, Endpoint, Epoch, NodeId
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse

CLIENT_ID: Final = "fastquorum-load"
METADATA_VERSION: Final = 12
READY_S: Final = 30.0
ANSWER_S: Final = 1.0
WATCH_S: Final = 0.1
LOOK_AGAIN_S: Final = 0.02
_NO_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class LoadTarget(NamedTuple):
    """The leader of partition 0, as some node told."""

    node_id: NodeId
    epoch: Epoch
    endpoint: Endpoint


def find_leader(bootstrap: Sequence[Endpoint], topic: str, timeout_s: float) -> LoadTarget:
    """Ask one node after the other, each at least once, until one knows. NotReady; UsageError: there is no such topic,
    and nothing is written into another."""
    deadline = time.monotonic() + timeout_s
    while True:
        reasons = []
        for endpoint in bootstrap:
            try:
                found = _ask(endpoint, topic)
            except (NotSent, NoAnswer) as error:
                reasons.append(str(error))
                continue
            except PeerProtocolError as error:
                raise PeerProtocolError(f"{endpoint.address} answers, but not in Kafka's protocol: {error}") from error
            if found is not None:
                return found
            reasons.append(f"{endpoint.address} knows no leader")
        if time.monotonic() > deadline:
            raise NotReady("; ".join(reasons))
        time.sleep(LOOK_AGAIN_S)


class LeaderWatch:
    """Asks again and again, in a thread of its own, and tells of every new epoch's leader: for a client that keeps that
    to itself. A context manager."""

    def __init__(self, bootstrap: Sequence[Endpoint], topic: str, led_by: Callable[[LoadTarget], None]) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._led_by = led_by
        self._epoch: Epoch = -1
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="leader-watch", daemon=True)

    def __enter__(self) -> Self:
        """Return the leader once there is one. NotReady, UsageError."""
        self._tell(find_leader(self._bootstrap, self._topic, READY_S))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(WATCH_S):
            # Without a leader, or a node that answers, there is nothing to report: the client measures the cost.
            with contextlib.suppress(NotReady, PeerProtocolError, UsageError):
                self._tell(find_leader(self._bootstrap, self._topic, 0.0))

    def _tell(self, found: LoadTarget) -> None:
        if found.epoch > self._epoch:
            self._epoch = found.epoch
            self._led_by(found)


def _ask(endpoint: Endpoint, topic: str) -> LoadTarget | None:
    """What one node says, before one deadline. Raises NotSent, NoAnswer, PeerProtocolError and UsageError."""
    wanted = MetadataRequest.MetadataRequestTopic(name=topic)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    deadline = Deadline(ANSWER_S)
    with contextlib.closing(Connection(endpoint, deadline)) as connection:
        response = connection.request(request, METADATA_VERSION, deadline)
    assert isinstance(response, MetadataResponse)
    for topic_metadata in response.topics:
        if topic_metadata.error_code in _NO_TOPIC:
            where = endpoint.address
            raise UsageError(f"{where} has no topic {topic!r}", "--topic NAME is the log to load")
        for partition in topic_metadata.partitions:
            for node in response.brokers:
                if partition.partition_index == 0 and node.node_id == partition.leader_id:
                    return LoadTarget(
                        node.node_id, partition.leader_epoch, Endpoint(LISTENER_NAME, node.host, node.port)
                    )
    return None
