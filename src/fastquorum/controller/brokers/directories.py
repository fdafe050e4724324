"""AssignReplicasToDirs: a broker reports the log directories of its replicas. Source: KIP-858; Kafka
`ReplicationControlManager.handleAssignReplicasToDirs`.
"""

from fastquorum.controller.brokers.lifecycle import standing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState, without
from fastquorum.controller.state.index import PartitionKey
from fastquorum.controller.state.partition_change import ElectionKind, is_online
from fastquorum.types import Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.partitions import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

_Directory = AssignReplicasToDirsResponse.DirectoryData
_Topic = _Directory.TopicData
_Partition = _Topic.PartitionData


def assign_replicas(state: ControllerState, request: AssignReplicasToDirsRequest) -> Decision:
    """Assign replicas to directories; each is answered for itself. One whose directory is not registered as online is
    out of sync; of a broker that registered before directories were known, none is.

    Raises:
        Refused: STALE_BROKER_EPOCH; UNSUPPORTED_VERSION below the metadata.version that knows directories.
    """
    if not state.level.has_directories:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = standing(state, request.broker_id, request.broker_epoch)
    answer = AssignReplicasToDirsResponse()
    records = dict[PartitionKey, Message | None]()
    for directory in request.directories:
        answered = _Directory(id=directory.id)
        answer.directories.append(answered)
        for topic in directory.topics:
            topic_answer = _Topic(topic_id=topic.topic_id)
            answered.topics.append(topic_answer)
            for each in topic.partitions:
                key = PartitionKey(topic.topic_id, each.partition_index)
                code = _error(state, broker, key) if key not in records else ErrorCode.INVALID_REQUEST
                if code is ErrorCode.NONE:
                    records[key] = _moved(state, broker, key, directory.id)
                topic_answer.partitions.append(_Partition(partition_index=each.partition_index, error_code=code))
    return Decision(answer, [record for record in records.values() if record is not None])


def _error(state: ControllerState, broker: Broker, key: PartitionKey) -> ErrorCode:
    if key.topic_id not in state.image.topics.by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = state.image.topics.partition(*key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _moved(state: ControllerState, broker: Broker, key: PartitionKey, directory: Uuid) -> Message | None:
    if is_online(directory, broker.directories):
        change = state.change(key, election=ElectionKind.ONLINE)
    else:
        change = state.change(key, gone=broker.id)
        change.isr = without(change.isr, broker.id)
    former = change.before.directory_of(broker.id)
    if directory != former and not is_online(former, broker.directories):
        change.unclean_replicas = (broker.id,)  # it was made anew, with nothing of what lies there
    change.directories[broker.id] = directory
    return change.record()
