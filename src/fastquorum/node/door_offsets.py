"""ListOffsets: earliest, latest, by timestamp, of the largest timestamp; committed records only. Sans-IO.

Source: the Kafka protocol guide; KIP-79, KIP-734.
"""

from typing import TYPE_CHECKING, Final

from fastquorum.storage.reading import TimestampOffset
from fastquorum.types import METADATA_TOPIC_ID
from fastquorum.wire import ErrorCode
from fastquorum.wire.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from fastquorum.node.door import Door

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""What is asked for by a timestamp below zero; what lies below these is not served."""
EPOCH_VERSION_MIN: Final = 4
"""The first version whose answer can carry an epoch."""

Asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


def list_offsets(door: "Door", message: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    for asked in message.topics:
        topic = Topic(name=asked.name)
        response.topics.append(topic)
        for partition in asked.partitions:
            answer = _offset(door, asked.name, partition)
            if version < EPOCH_VERSION_MIN:
                answer.leader_epoch = -1
            topic.partitions.append(answer)
    return response


def _offset(door: "Door", name: str, asked: Asked) -> Answer:
    answer = Answer(partition_index=asked.partition_index)
    answer.error_code = door.partition_error(name, METADATA_TOPIC_ID, asked.partition_index, by_id=False)
    if not answer.error_code:
        answer.error_code = door.reader_error(asked.current_leader_epoch)
    if answer.error_code:
        return answer
    high_watermark, epoch = door.replica.high_watermark, door.replica.raft.epoch
    match asked.timestamp:
        case -1:
            answer.offset, answer.leader_epoch = high_watermark, epoch
        case -2:
            answer.offset, answer.leader_epoch = door.log.start_offset, epoch
        case -3:
            _found(door, answer, door.replica.shell.offset_of_max_timestamp(high_watermark))
        case timestamp_ms if timestamp_ms >= 0:
            _found(door, answer, door.replica.shell.offset_for_timestamp(timestamp_ms))
        case _:
            answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    return answer


def _found(door: "Door", answer: Answer, found: TimestampOffset | None) -> None:
    """No offset at all if nothing that is committed fits."""
    if found is not None and found.offset < door.replica.high_watermark:
        answer.timestamp, answer.offset = found.timestamp_ms, found.offset
        answer.leader_epoch = door.log.epoch_for(found.offset)
