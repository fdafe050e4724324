"""Fetch for consumers: committed records only, with min_bytes, max_wait and max_bytes honoured. Source: the Kafka
protocol guide; KIP-951."""

from collections import deque
from typing import Final

from fastquorum.config import MS
from fastquorum.kernels.lane import Connection
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.clients.parked_fetches import ParkedFetches
from fastquorum.node.network.requests import Request
from fastquorum.raft.events import Token
from fastquorum.types import UNKNOWN_OFFSET, Micros, Offset
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse

Topic = FetchResponse.FetchableTopicResponse
Partition = FetchResponse.FetchableTopicResponse.PartitionData
RequestedTopic = FetchRequest.FetchTopic
RequestedPartition = FetchRequest.FetchTopic.FetchPartition
LEADER_VERSION_MIN: Final = 12
ENDPOINT_VERSION_MIN: Final = 16
"""The first versions whose answers can name the leader, and where it listens (KIP-951)."""
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""Records read for one answer, but for a batch that alone is larger: the quorum waits while they are read."""
CROWDED_ANSWER_BYTES: Final = 64 * 1024
"""While much is kept for all clients."""
SLICE_FETCHES: Final = 64
SLICE_BYTES: Final = 1024 * 1024
"""Fetches answered in one turn, and records read for them: whatever the quorum has to do comes in between."""


def _each_once(message: FetchRequest) -> list[tuple[RequestedTopic, list[RequestedPartition]]]:
    """Return the requested topics and partitions. If a partition is named more than once, the last one counts, as with
    Kafka; each would be a look into the log, again and again while the Fetch is parked."""
    if len(message.topics) == 1 and len(message.topics[0].partitions) == 1:
        return [(message.topics[0], message.topics[0].partitions)]
    last = {(each.topic, each.topic_id, part.partition): part for each in message.topics for part in each.partitions}
    requested = []
    for topic in message.topics:
        found = (last.pop((topic.topic, topic.topic_id, each.partition), None) for each in topic.partitions)
        if parts := [part for part in found if part is not None]:
            requested.append((topic, parts))
    return requested


class Fetch:
    """One consumer's Fetch, perhaps parked."""

    __slots__ = ("bytes_max", "connection", "deadline_us", "min_bytes", "request", "requested", "token")

    def __init__(self, request: Request, message: FetchRequest, now_us: Micros) -> None:
        self.request = request
        self.token = request.token
        self.connection = request.connection
        self.requested = _each_once(message)
        self.bytes_max = max(min(message.max_bytes, ANSWER_BYTES_MAX), 1)
        self.min_bytes = max(message.min_bytes, 0) if message.topics else 0
        self.deadline_us = now_us + max(message.max_wait_ms, 0) * MS

    def needed_bytes(self, wanted: RequestedPartition) -> int:
        """What there must be of this partition before it is answered: never more than one answer can carry."""
        return min(self.min_bytes, self.bytes_max, max(wanted.partition_max_bytes, 1))


class Fetches:
    """Consumers' Fetches. Whether one has enough to read is known by positions: the log is read only to answer.

    Those that can be answered are due. A few of them are answered at a time, so that the quorum does not wait for all
    consumers of a commit, nor for all that ask at once.
    """

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._parked: ParkedFetches[Fetch] = ParkedFetches()
        self._due: deque[Token] = deque()
        """Parked still, and to be looked at."""
        self._held_back: dict[Connection, set[Token]] = {}
        """Parked still, and to be looked at when their clients have read what was answered before."""
        self._counted_end: Offset = UNKNOWN_OFFSET
        """Up to here what is committed counts for all that are parked, which begin in the segment of that offset."""
        self._counted_segment: Offset = UNKNOWN_OFFSET
        self._read_bytes = 0
        """Records read for answers since the last tick, which follows at once when that is enough."""

    @property
    def are_parked(self) -> bool:
        return len(self._parked) > 0

    @property
    def deadline_us(self) -> Micros:
        return 0 if self._due else self._parked.deadline_us

    def on_request(self, request: Request, message: FetchRequest, now_us: Micros) -> None:
        fetch = Fetch(request, message, now_us)
        if fetch.deadline_us > now_us and self._park(fetch):
            return
        if self._read_bytes < SLICE_BYTES:
            self._read_bytes += self._answer(fetch)
        else:
            self._parked.add(fetch, 0)
            self._due.append(fetch.token)

    def on_committed(self, now_us: Micros) -> None:
        if self._parked:
            self._count()
            self._answer_due(now_us)

    def on_tick(self, now_us: Micros) -> None:
        self._read_bytes = 0
        self._due.extend(self._parked.overdue(now_us))
        self._answer_due(now_us)

    def not_leading(self) -> None:
        if not self._due and len(self._parked) > sum(map(len, self._held_back.values())):
            self._due.extend(self._parked.tokens())
        self._answer_due(-1)

    def on_drained(self, connection: Connection) -> None:
        self._due.extend(self._held_back.pop(connection, ()))

    def forget(self, connection: Connection) -> None:
        self._parked.forget(connection)
        self._held_back.pop(connection, None)

    def _must_wait(self, fetch: Fetch) -> bool:
        """For its client to read what was answered before."""
        connections = self._context.replica.connections
        is_next = connections.requests.is_next(fetch.request)
        must_wait = connections.must_wait(fetch.connection, is_next=is_next)
        if must_wait:
            self._held_back.setdefault(fetch.connection, set()).add(fetch.token)
        return must_wait

    def _park(self, fetch: Fetch) -> bool:
        """False if it can be answered now."""
        if not self._missing_bytes(fetch):
            return False
        self._count()
        missing_bytes = self._missing_bytes(fetch)  # again: native threads commit meanwhile, and that is counted now
        if missing_bytes:
            self._parked.add(fetch, missing_bytes)
        return missing_bytes > 0

    def _count(self) -> None:
        """What was committed since the last look."""
        end = self._context.replica.high_watermark
        if end < self._context.log.start_offset:
            return  # nobody leads who knows it
        begin = min(self._counted_end, end) if self._parked else end
        begin = max(begin, self._context.log.start_offset)
        moved = self._context.replica.reader.stretch(begin, end)
        self._due.extend(self._parked.committed(moved.size_bytes))
        if self._parked and moved.last_segment != self._counted_segment:
            self._due.extend(self._parked.tokens())  # of their segment nothing more comes
        self._counted_end, self._counted_segment = end, moved.last_segment

    def _missing_bytes(self, fetch: Fetch) -> int:
        """What it has to wait for; 0 if it can be answered, be it with an error."""
        end_offset = self._context.replica.high_watermark
        missing_bytes = fetch.min_bytes
        for requested, partitions in fetch.requested:
            for wanted in partitions:
                if self._error(fetch, requested, wanted):
                    return 0
                missing_bytes = needed = fetch.needed_bytes(wanted)  # there is one partition that is none
                if needed > 1 and wanted.fetch_offset < end_offset:
                    there = self._context.replica.reader.stretch(wanted.fetch_offset, end_offset)
                    missing_bytes = 0 if there.crosses_segments else max(needed - there.size_bytes, 0)
                elif needed == 1 and wanted.fetch_offset < end_offset:
                    missing_bytes = 0
        return missing_bytes

    def _answer_due(self, now_us: Micros) -> None:
        count = 0
        while self._due and count < SLICE_FETCHES and self._read_bytes < SLICE_BYTES:
            fetch = self._parked.get(self._due.popleft())
            count += 1
            if fetch is None or self._must_wait(fetch):
                continue
            self._parked.take(fetch.token)
            if 0 <= fetch.deadline_us <= now_us or not self._park(fetch):
                self._read_bytes += self._answer(fetch)

    def _answer(self, fetch: Fetch) -> int:
        """With what there is; how many bytes of records."""
        response = FetchResponse()
        size_bytes = 0
        is_crowded = self._context.replica.connections.is_crowded()
        bytes_max = min(fetch.bytes_max, CROWDED_ANSWER_BYTES) if is_crowded else fetch.bytes_max
        for requested, partitions in fetch.requested:
            topic = Topic(topic=requested.topic, topic_id=requested.topic_id)
            response.responses.append(topic)
            for wanted in partitions:
                answer = self._partition(fetch, requested, wanted, bytes_max - size_bytes, response)
                topic.partitions.append(answer)
                size_bytes += len(answer.records or b"")
        fetch.request.reply(response)
        return size_bytes

    def _error(self, fetch: Fetch, requested: RequestedTopic, wanted: RequestedPartition) -> ErrorCode:
        """NONE, or why there is nothing to wait for."""
        context = self._context
        by_id = fetch.request.header.request_api_version >= 13
        error = context.partition_error(requested.topic, requested.topic_id, wanted.partition, by_id)
        if error is ErrorCode.NONE:
            error = context.reader_error(wanted.current_leader_epoch)
        if (
            error is ErrorCode.NONE
            and not context.log.start_offset <= wanted.fetch_offset <= context.replica.high_watermark
        ):
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        return error

    def _partition(
        self, fetch: Fetch, requested: RequestedTopic, wanted: RequestedPartition, budget: int, response: FetchResponse
    ) -> Partition:
        context, replica = self._context, self._context.replica
        version = fetch.request.header.request_api_version
        answer = Partition(partition_index=wanted.partition, high_watermark=-1, aborted_transactions=[], records=b"")
        error = answer.error_code = self._error(fetch, requested, wanted)
        if error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._name_leader(answer, response, version)
        if error not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return answer
        end_offset = replica.high_watermark
        answer.high_watermark = answer.last_stable_offset = end_offset
        answer.log_start_offset = context.log.start_offset
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if wanted.fetch_offset < context.log.start_offset:
                self._name_snapshot(answer, version)
        elif budget > 0:
            answer.records = replica.reader.read(
                wanted.fetch_offset, min(budget, max(wanted.partition_max_bytes, 1)), end_offset
            )
        return answer

    def _name_snapshot(self, answer: Partition, version: int) -> None:
        """What stands in the place of the records before the log's start, for whoever can fetch snapshots (KIP-630)."""
        latest = self._context.log.snapshots.latest
        if version >= LEADER_VERSION_MIN and latest is not None:
            answer.snapshot_id = Partition.SnapshotId(end_offset=latest.offset, epoch=latest.epoch)

    def _name_leader(self, answer: Partition, response: FetchResponse, version: int) -> None:
        leader = self._context.leader()
        if version >= LEADER_VERSION_MIN:
            answer.current_leader = Partition.LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        if version >= ENDPOINT_VERSION_MIN and leader.endpoint is not None and not response.node_endpoints:
            response.node_endpoints.append(
                FetchResponse.NodeEndpoint(node_id=leader.id, host=leader.endpoint.host, port=leader.endpoint.port)
            )
