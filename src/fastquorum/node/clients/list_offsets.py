"""ListOffsets: earliest, latest, by timestamp, of the largest timestamp; committed records only. Sans-IO.

What tiered storage asks for is answered as by a Kafka that has none: nothing lies anywhere else.
Source: the Kafka protocol guide; KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023.
"""

from collections import Counter
from typing import Final

from fastquorum.node.clients.context import ClientContext
from fastquorum.storage.log.reading import TimestampOffset
from fastquorum.types import METADATA_TOPIC_ID
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
VERSION_MIN: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of each special timestamp, which is below zero."""
EPOCH_VERSION_MIN: Final = 4
"""The first version whose answer can carry an epoch."""

RequestedPartition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


def list_offsets(context: ClientContext, message: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    """A partition that is asked for twice is an error, as it is to Kafka: each answer takes a look at the log, and the
    quorum waits for all of them."""
    named = Counter((topic.name, each.partition_index) for topic in message.topics for each in topic.partitions)
    response = ListOffsetsResponse()
    for requested in message.topics:
        topic = Topic(name=requested.name)
        response.topics.append(topic)
        for partition in requested.partitions:
            if named[requested.name, partition.partition_index] > 1:
                answer = Answer(partition_index=partition.partition_index, error_code=ErrorCode.INVALID_REQUEST)
            else:
                answer = _offset(context, requested.name, partition, version)
            if version < EPOCH_VERSION_MIN:
                answer.leader_epoch = -1
            topic.partitions.append(answer)
    return response


def _offset(context: ClientContext, name: str, requested: RequestedPartition, version: int) -> Answer:
    answer = Answer(partition_index=requested.partition_index)
    answer.error_code = context.partition_error(name, METADATA_TOPIC_ID, requested.partition_index, by_id=False)
    if not answer.error_code:
        answer.error_code = context.reader_error(requested.current_leader_epoch)
    if answer.error_code:
        return answer
    high_watermark, epoch = context.replica.high_watermark, context.replica.raft.epoch
    timestamp = requested.timestamp
    if timestamp < 0 and version < VERSION_MIN.get(timestamp, version + 1):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif timestamp == LATEST:
        answer.offset, answer.leader_epoch = high_watermark, epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset, answer.leader_epoch = context.log.start_offset, epoch
    elif timestamp == MAX_TIMESTAMP:
        _found(context, answer, context.replica.reader.offset_of_max_timestamp(high_watermark))
    elif timestamp >= 0:
        _found(context, answer, context.replica.reader.offset_for_timestamp(timestamp))
    return answer


def _found(context: ClientContext, answer: Answer, found: TimestampOffset | None) -> None:
    """No offset at all if nothing that is committed fits."""
    if found is not None and found.offset < context.replica.high_watermark:
        answer.timestamp, answer.offset = found.timestamp_ms, found.offset
        answer.leader_epoch = context.log.epoch_for(found.offset)
