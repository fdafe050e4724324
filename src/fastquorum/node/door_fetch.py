"""Fetch for consumers: committed records only, with min_bytes, max_wait and max_bytes honoured. Source: the Kafka
protocol guide; KIP-951."""

from typing import TYPE_CHECKING, Final

from fastquorum.config import MS
from fastquorum.kernels.lane import Connection
from fastquorum.node.inbound import Request
from fastquorum.types import Micros
from fastquorum.wire import ErrorCode
from fastquorum.wire.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from fastquorum.node.door import Door

Topic = FetchResponse.FetchableTopicResponse
Partition = FetchResponse.FetchableTopicResponse.PartitionData
AskedTopic = FetchRequest.FetchTopic
AskedPartition = FetchRequest.FetchTopic.FetchPartition
LEADER_VERSION_MIN: Final = 12
ENDPOINT_VERSION_MIN: Final = 16
"""The first versions whose answers can name the leader, and where it listens (KIP-951)."""
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""Records read for one answer, but for a batch that alone is larger: the quorum waits while they are read."""


def _each_once(message: FetchRequest) -> list[tuple[AskedTopic, list[AskedPartition]]]:
    """What is asked for. Of a partition that is named more than once the last counts, as with Kafka; each would be a
    look into the log, again and again while the Fetch is parked."""
    if len(message.topics) == 1 and len(message.topics[0].partitions) == 1:
        return [(message.topics[0], message.topics[0].partitions)]
    last = {(each.topic, each.topic_id, part.partition): part for each in message.topics for part in each.partitions}
    asked = []
    for topic in message.topics:
        found = (last.pop((topic.topic, topic.topic_id, each.partition), None) for each in topic.partitions)
        if parts := [part for part in found if part is not None]:
            asked.append((topic, parts))
    return asked


class Fetch:
    """One consumer's Fetch, perhaps parked."""

    __slots__ = ("asked", "deadline_us", "message", "request")

    def __init__(self, request: Request, message: FetchRequest, now_us: Micros) -> None:
        self.request = request
        self.message = message
        self.asked = _each_once(message)
        self.deadline_us = now_us + max(message.max_wait_ms, 0) * MS


class Fetches:
    """Consumers' Fetches; parked ones are looked at again whenever the high watermark moves."""

    def __init__(self, door: "Door") -> None:
        self._door = door
        self._parked: list[Fetch] = []

    @property
    def are_parked(self) -> bool:
        return bool(self._parked)

    @property
    def deadline_us(self) -> Micros:
        return min(fetch.deadline_us for fetch in self._parked) if self._parked else -1

    def on_request(self, request: Request, message: FetchRequest, now_us: Micros) -> None:
        fetch = Fetch(request, message, now_us)
        if not self._try(fetch, now_us):
            self._parked.append(fetch)

    def on_committed(self, now_us: Micros) -> None:
        self._retry(now_us)

    def on_tick(self, now_us: Micros) -> None:
        if self._parked and self.deadline_us <= now_us:
            self._retry(now_us)

    def not_leading(self) -> None:
        self._retry(-1)

    def forget(self, connection: Connection) -> None:
        self._parked = [fetch for fetch in self._parked if fetch.request.connection != connection]

    def _retry(self, now_us: Micros) -> None:
        parked, self._parked = self._parked, []
        self._parked += [fetch for fetch in parked if not self._try(fetch, now_us)]

    def _try(self, fetch: Fetch, now_us: Micros) -> bool:
        """Answer if there is an error, enough to read, or no more time; False to wait."""
        response = FetchResponse()
        size, failed = 0, False
        budget = max(min(fetch.message.max_bytes, ANSWER_BYTES_MAX), 1)
        for asked, partitions in fetch.asked:
            topic = Topic(topic=asked.topic, topic_id=asked.topic_id)
            response.responses.append(topic)
            for wanted in partitions:
                answer = self._partition(fetch, asked, wanted, budget - size, response)
                topic.partitions.append(answer)
                size += len(answer.records or b"")
                failed = failed or answer.error_code != 0
        enough = size >= max(fetch.message.min_bytes, 0) or not fetch.message.topics
        if not (failed or enough or fetch.deadline_us <= now_us):
            return False
        self._door.answer(fetch.request, response)
        return True

    def _partition(
        self, fetch: Fetch, asked: AskedTopic, wanted: AskedPartition, budget: int, response: FetchResponse
    ) -> Partition:
        door, replica = self._door, self._door.replica
        answer = Partition(partition_index=wanted.partition, high_watermark=-1, aborted_transactions=[], records=b"")
        by_id = fetch.request.header.request_api_version >= 13
        answer.error_code = door.partition_error(asked.topic, asked.topic_id, wanted.partition, by_id)
        if answer.error_code:
            return answer
        answer.error_code = door.reader_error(wanted.current_leader_epoch)
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._name_leader(answer, response, fetch.request.header.request_api_version)
        if answer.error_code:
            return answer
        end_offset = replica.high_watermark
        answer.high_watermark = answer.last_stable_offset = end_offset
        answer.log_start_offset = door.log.start_offset
        if not door.log.start_offset <= wanted.fetch_offset <= end_offset:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            if wanted.fetch_offset < door.log.start_offset:
                self._name_snapshot(answer, fetch.request.header.request_api_version)
            return answer
        if budget > 0:
            answer.records = replica.reader.read(
                wanted.fetch_offset, min(budget, max(wanted.partition_max_bytes, 1)), end_offset
            )
        return answer

    def _name_snapshot(self, answer: Partition, version: int) -> None:
        """What stands in the place of the records before the log's start, for whoever can fetch snapshots (KIP-630)."""
        latest = self._door.log.snapshots.latest
        if version >= LEADER_VERSION_MIN and latest is not None:
            answer.snapshot_id = Partition.SnapshotId(end_offset=latest.offset, epoch=latest.epoch)

    def _name_leader(self, answer: Partition, response: FetchResponse, version: int) -> None:
        leader = self._door.leader()
        if version >= LEADER_VERSION_MIN:
            answer.current_leader = Partition.LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        if version >= ENDPOINT_VERSION_MIN and leader.endpoint is not None and not response.node_endpoints:
            response.node_endpoints.append(
                FetchResponse.NodeEndpoint(node_id=leader.id, host=leader.endpoint.host, port=leader.endpoint.port)
            )
