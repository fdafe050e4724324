"""A small blocking client of a quorum's client APIs: Kafka's Metadata, Produce, Fetch and DescribeQuorum.

It follows the leader and has a deadline on everything. What it never does is send a record twice on its own: whether an
append that was not answered has happened is for `barrier` and a look at the log to say. One thread at a time.
Source: the Kafka protocol guide; KIP-595 (DescribeQuorum), KIP-951 (a follower names the leader).
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.client.describing import count_contacts, describe_request, why_leaderless
from fastquorum.client.fetched import Committed, decoded
from fastquorum.client.refusals import OutcomeUnknown, refusal
from fastquorum.errors import (
    NotReady,
    OffsetOutOfRange,
    PeerProtocolError,
    RecordTooLarge,
    UsageError,
)
from fastquorum.kernels import BATCH_BYTES_MAX, Kernels, Record
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.sockets.resolving import try_elsewhere
from fastquorum.types import LISTENER_NAME, Endpoint, Epoch, NodeId, Offset
from fastquorum.wire import ApiKey, ErrorCode, Message
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

M = TypeVar("M", bound=Message)
T = TypeVar("T")

API_VERSIONS_VERSION: Final = 0
METADATA_VERSION: Final = 12
PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
DESCRIBE_QUORUM_VERSION: Final = 2
DESCRIBE_CLUSTER_VERSION: Final = 1
CONTROLLERS: Final = 2
"""The endpoint type that asks for controllers (KIP-919)."""
LOOK_AGAIN_S: Final = 0.02
"""Between two looks for a leader."""
CONNECT_S: Final = 2.0
SILENCE_S: Final = 3.0
"""A leader silent for longer is looked for again, elsewhere: it may hang, and others may have elected another."""
SAY_SO_S: Final = 1.0
"""A user that waits for longer is told the reason."""
FETCH_BYTES: Final = 4 * 1024 * 1024


class FoundLeader(NamedTuple):
    """The leader, as some node reported it."""

    id: NodeId
    epoch: Epoch
    endpoint: Endpoint
    topic: str
    cluster_id: str


class FoundController(NamedTuple):
    """The active controller, as DescribeCluster reports it."""

    endpoint: Endpoint
    cluster_id: str


class QuorumClient(Guarded):
    """Appends to and reads from a quorum, found through any of its nodes. In a forked child it is closed: two processes
    that share a connection would take each other's answers for theirs."""

    _CHILD_HINT = "make a client in the process that uses it"

    def __init__(
        self, bootstrap: Sequence[Endpoint], kernels: Kernels, on_wait: Callable[[str], None] = lambda _: None
    ) -> None:
        """`on_wait` is told, once a search, why the leader is not found yet."""
        super().__init__()
        self._on_wait = on_wait
        self._bootstrap = list(bootstrap)
        self.kernels: Final = kernels
        self._connections: dict[Endpoint, Connection] = {}
        self._leader: FoundLeader | None = None
        self._controller: FoundController | None = None
        self._takes_appends = False
        """The leader has said so."""
        self._explained: dict[Endpoint, tuple[str, float]] = {}
        """What nodes said of there being no leader, and when they were asked."""
        self._turn = 0

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def __enter__(self) -> "QuorumClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- finding the leader -------------------------------------------------------------------------------------------

    def leader(self, deadline: Deadline) -> FoundLeader:
        """The leader as clients see it, asked for until somebody knows one. NotReady."""
        if self._leader is None:
            self._leader = self._search(self._ask_leader, deadline)
        return self._leader

    def controller(self, deadline: Deadline) -> FoundController:
        """The leader as Kafka's tools find it, at our nodes and at Kafka's controllers alike. NotReady."""
        if self._controller is None:
            self._controller = self._search(self._ask_controller, deadline)
        return self._controller

    def _search(self, ask: Callable[[Endpoint, Deadline], T | None], deadline: Deadline) -> T:
        """Ask one bootstrap server after the other."""
        began_s = time.monotonic()
        reasons: dict[Endpoint, str] = {}
        while True:
            for left in range(len(self._bootstrap), 0, -1):
                endpoint = self._bootstrap[self._turn % len(self._bootstrap)]
                try:
                    # However long one keeps silent, all are asked in time.
                    found = ask(endpoint, deadline.sooner(min(CONNECT_S, deadline.left_s / left)))
                    if found is not None:
                        return found
                    reasons[endpoint] = self._without_leader(endpoint, deadline)
                except (NotSent, NoAnswer) as error:
                    if deadline.left_s > 0 or endpoint not in reasons:  # cut short, it tells less than the last one
                        reasons[endpoint] = str(error)
                self._turn += 1
            if deadline.left_s <= LOOK_AGAIN_S:
                raise NotReady("; ".join(reasons.values()))
            if time.monotonic() - began_s > SAY_SO_S:
                began_s = math.inf
                self._on_wait(f"no leader yet ({'; '.join(reasons.values())}); trying for {deadline.left_s:.0f} s more")
            time.sleep(LOOK_AGAIN_S)

    def _without_leader(self, endpoint: Endpoint, deadline: Deadline) -> str:
        """What a node that knows no leader says of it; asked now and then."""
        now_s = time.monotonic()
        explanation, at_s = self._explained.get(endpoint, ("", -math.inf))
        if now_s - at_s >= SAY_SO_S:
            explanation, soon = "", deadline.sooner(1.0)
            with contextlib.suppress(NotSent, NoAnswer, PeerProtocolError):
                explanation = why_leaderless(
                    self.ask(endpoint, describe_request(), DESCRIBE_QUORUM_VERSION, DescribeQuorumResponse, soon)
                )
            self._explained[endpoint] = explanation, now_s
        if try_elsewhere(endpoint.host) and endpoint in self._connections:  # one name may be several nodes
            self._connections.pop(endpoint).close()
        return f"{endpoint.address} knows no leader" + (f" ({explanation})" if explanation else "")

    def forget_leader(self) -> None:
        """Look for it again: it failed us."""
        for found in (self._leader, self._controller):
            failed = self._connections.pop(found.endpoint, None) if found is not None else None
            if failed is not None:
                failed.close()
        self._leader = self._controller = None
        self._takes_appends = False
        self._turn += 1

    def _ask_leader(self, endpoint: Endpoint, deadline: Deadline) -> FoundLeader | None:
        response = self.ask(endpoint, MetadataRequest(topics=None), METADATA_VERSION, MetadataResponse, deadline)
        for topic in response.topics:
            for partition in topic.partitions:
                for node in response.brokers:
                    if node.node_id == partition.leader_id and topic.name is not None:
                        found = Endpoint(LISTENER_NAME, node.host, node.port)
                        return FoundLeader(
                            node.node_id, partition.leader_epoch, found, topic.name, response.cluster_id or ""
                        )
        return None

    def _ask_controller(self, endpoint: Endpoint, deadline: Deadline) -> FoundController | None:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        response = self.ask(endpoint, request, DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse, deadline)
        if response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise UsageError(f"{endpoint.address} is a broker", "name controllers: they decide")
        for node in response.brokers:
            if node.broker_id == response.controller_id:
                return FoundController(Endpoint(LISTENER_NAME, node.host, node.port), response.cluster_id)
        return None

    def ask(
        self,
        endpoint: Endpoint,
        request: Message,
        version: int,
        response_type: type[M],
        deadline: Deadline,
        silence_s: float = SILENCE_S,
    ) -> M:
        """One node's answer; `silence_s` is how long it may say nothing. NotSent, NoAnswer, PeerProtocolError."""
        connection = self._connections.pop(endpoint, None) or Connection(endpoint, deadline.sooner(CONNECT_S))
        response = connection.request(request, version, deadline, silence_s)
        self._connections[endpoint] = connection  # not kept where the request failed: it is closed then
        assert isinstance(response, response_type)
        return response

    def serves(self, endpoint: Endpoint, request_type: type[Message], version: int, deadline: Deadline) -> bool:
        """Whether a node takes such requests, and answers: asked before what must not be asked twice. NotSent."""
        try:
            served = self.ask(endpoint, ApiVersionsRequest(), API_VERSIONS_VERSION, ApiVersionsResponse, deadline)
        except NoAnswer as error:
            raise NotSent(error.endpoint, error.reason) from error
        key = ApiKey(request_type.__wire__.api_key)
        return any(each.api_key == key and each.min_version <= version <= each.max_version for each in served.api_keys)

    # --- appends ------------------------------------------------------------------------------------------------------

    def append(self, values: Sequence[bytes], deadline: Deadline, *, commit_timeout_s: float | None = None) -> Offset:
        """Append the values as one batch, all or none; the first one's offset, once a majority's disks have them.

        Args:
            commit_timeout_s: how long the leader tries to commit it; then it says that it does not know.
        Raises: as `append_batch`.
        """
        timestamp_ms = time.time_ns() // 1_000_000
        batch = self.kernels.encode_values(values, base_offset=0, leader_epoch=0, timestamp_ms=timestamp_ms)
        return self.append_batch(batch, deadline, commit_timeout_s=commit_timeout_s)

    def append_batch(
        self,
        batch: bytes,
        deadline: Deadline,
        *,
        commit_timeout_s: float | None = None,
        silence_s: float = math.inf,
    ) -> Offset:
        """Append an encoded batch, as `append`; `silence_s` is how long the leader may say nothing.

        Raises:
            OutcomeUnknown: it was sent, and may or may not be committed.
            RetriableError: it was not appended: NotReady, NotSent, Overloaded.
            UsageError: it never will be: RecordTooLarge, a controller's log, or a record that this log does not take;
                OutOfOrderSequence, ProducerFenced: not as what its producer says it is.
        """
        if len(batch) > BATCH_BYTES_MAX:
            raise RecordTooLarge(size_bytes=len(batch), limit_bytes=BATCH_BYTES_MAX)
        leader = self.leader(deadline)
        data = ProduceRequest.TopicProduceData
        timeout_s = deadline.left_s if commit_timeout_s is None else min(commit_timeout_s, deadline.left_s)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=int(timeout_s * 1000),
            topic_data=[data(name=leader.topic, partition_data=[data.PartitionProduceData(index=0, records=batch)])],
        )
        try:
            self._check_takes_appends(leader, deadline)
            response = self.ask(leader.endpoint, request, PRODUCE_VERSION, ProduceResponse, deadline, silence_s)
        except NotSent:
            self.forget_leader()
            raise
        except NoAnswer as error:
            self.forget_leader()
            raise OutcomeUnknown(str(error), error.is_sealed) from error
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE:
            return answer.base_offset
        refused = refusal(answer, len(batch))
        if isinstance(refused, OutcomeUnknown | NotReady):
            self.forget_leader()
        raise refused

    def _check_takes_appends(self, leader: FoundLeader, deadline: Deadline) -> None:
        """Once a leader: a controller hangs up on appends, and nothing must be sent to a node that hangs. NotSent."""
        if self._takes_appends:
            return
        if not self.serves(leader.endpoint, ProduceRequest, PRODUCE_VERSION, deadline):
            raise UsageError(
                f"node {leader.id} takes no appends: the log is the controller's, and nobody else writes it",
                "`fastquorum topic` and `fastquorum broker` ask it for changes",
            )
        self._takes_appends = True

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self, offset: Offset, deadline: Deadline, *, wait_s: float = 0.0) -> Committed:
        """Committed records from `offset` on, as many as one answer carries; waits up to `wait_s` for the first.

        Raises OffsetOutOfRange, NotReady, CorruptionError.
        """
        while True:
            leader = self.leader(deadline)
            try:
                answer = self._fetch(leader, offset, deadline, wait_s)
            except (NotSent, NoAnswer) as error:
                self.forget_leader()
                if deadline.is_over:
                    raise NotReady(str(error)) from error
                continue
            match answer.error_code:
                case ErrorCode.NONE:
                    return decoded(self.kernels, answer, offset)
                case ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise OffsetOutOfRange(
                        offset=offset, start_offset=answer.log_start_offset, end_offset=answer.high_watermark
                    )
            self.forget_leader()
            if deadline.left_s <= LOOK_AGAIN_S:
                raise NotReady(error_name(answer.error_code))
            time.sleep(LOOK_AGAIN_S)

    def read_all(self, offset: Offset, end_offset: Offset, deadline: Deadline) -> Iterator[tuple[Epoch, Record]]:
        """Every committed record in [offset, end_offset)."""
        while offset < end_offset:
            found = self.read(offset, deadline)
            for epoch, record in found.records:
                if record.offset < end_offset:
                    yield epoch, record
            if found.next_offset == offset:
                raise NotReady(f"offset {offset} is not committed, the high watermark is {found.high_watermark}")
            offset = found.next_offset

    def _fetch(
        self, leader: FoundLeader, offset: Offset, deadline: Deadline, wait_s: float
    ) -> FetchResponse.FetchableTopicResponse.PartitionData:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=int(min(wait_s, deadline.left_s) * 1000),
            min_bytes=1 if wait_s else 0,
            max_bytes=FETCH_BYTES,
            topics=[topic(topic=leader.topic, partitions=[partition])],
        )
        response = self.ask(leader.endpoint, request, FETCH_VERSION, FetchResponse, deadline, wait_s + SILENCE_S)
        return response.responses[0].partitions[0]

    # --- the quorum ---------------------------------------------------------------------------------------------------

    def describe(self, deadline: Deadline) -> DescribeQuorumResponse:
        """The quorum as its leader sees it. NotReady."""
        request = describe_request()
        while True:
            endpoint = self.controller(deadline).endpoint
            try:
                response = self.ask(endpoint, request, DESCRIBE_QUORUM_VERSION, DescribeQuorumResponse, deadline)
            except (NotSent, NoAnswer) as error:
                reason = str(error)
            else:
                if response.error_code or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
                    raise PeerProtocolError(f"DescribeQuorum: {error_name(response.error_code)}")
                code = response.topics[0].partitions[0].error_code
                if code == ErrorCode.NONE:
                    return response
                reason = error_name(code)
            self.forget_leader()
            if deadline.left_s <= LOOK_AGAIN_S:
                raise NotReady(reason)
            time.sleep(LOOK_AGAIN_S)

    def barrier(self, deadline: Deadline) -> Offset:
        """An offset that tells the past from what never was: any append that had been answered, or whose connection its
        node had closed, when this was called, is committed below it, or never will be.

        The leader's log end of then must be committed, and the leader must still have led then: shown by a majority
        that has fetched from it in answer to something it sent later. A follower's next Fetch may have been under way
        already, so the second one counts. Ages, not clocks, are compared. Raises NotReady.
        """
        while True:
            first = self.describe(deadline).topics[0].partitions[0]
            began = time.monotonic()
            log_end = next(row.log_end_offset for row in first.current_voters if row.replica_id == first.leader_id)
            seen = {row.replica_id: (0, began) for row in first.current_voters}
            while True:
                requested_s = time.monotonic()
                now = self.describe(deadline).topics[0].partitions[0]
                if (now.leader_id, now.leader_epoch) != (first.leader_id, first.leader_epoch):
                    break
                count_contacts(now, requested_s, seen)
                confirmed = sum(count >= 2 or node == now.leader_id for node, (count, _) in seen.items())
                if confirmed > len(seen) // 2 and now.high_watermark >= log_end:
                    return now.high_watermark
                if deadline.left_s <= LOOK_AGAIN_S:
                    raise NotReady(f"node {now.leader_id} has no majority behind it")
                time.sleep(LOOK_AGAIN_S)
