"""Elections: requested ones, and those that the controller looks for from time to time.

Preferred: the first replica leads again, if it is in sync. Unclean: any live replica leads a partition without a
leader, though committed records may be lost. Source: KIP-460, KIP-966; Kafka `ReplicationControlManager.electLeaders`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.refusals import Refused, brief
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.index import PartitionKey
from fastquorum.controller.state.partition_change import ElectionKind
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse

PIECE_PARTITIONS: Final = 500
"""Partitions that one piece looks at: some milliseconds, if no leader can be elected."""
_Results = ElectLeadersResponse.ReplicaElectionResult
_Result = _Results.PartitionResult
_ELECTIONS: Final = {0: ElectionKind.PREFERRED, 1: ElectionKind.UNCLEAN}
_TEXTS: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


# --- asked for --------------------------------------------------------------------------------------------------------


def elect_leaders(state: ControllerState, request: ElectLeadersRequest) -> Decision:
    """Decide an ElectLeaders; each partition is answered for itself. For all (null), the answer leaves out partitions
    that need no election, but not their topics.

    Raises:
        Refused: INVALID_REQUEST for another kind of election.
    """
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    elected = dict[PartitionKey, Message]()
    answer = ElectLeadersResponse()
    if request.topic_partitions is None:
        for topic in state.image.topics.sorted():
            results = [
                _elect(state, topic, number, partition, election, elected)
                for number, partition in topic.partitions.items()
            ]
            needed = [each for each in results if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            answer.replica_election_results.append(_Results(topic=topic.name, partition_result=needed))
    else:
        for named in request.topic_partitions:
            answered = _Results(topic=named.topic)
            answer.replica_election_results.append(answered)
            for number in named.partitions:
                answered.partition_result.append(_elect_named(state, named.topic, number, election, elected))
    return Decision(answer, list(elected.values()))


def _elect_named(
    state: ControllerState, name: str, number: int, election: ElectionKind, elected: dict[PartitionKey, Message]
) -> _Result:
    topic = state.image.topics.named(name)
    partition = None if topic is None else topic.partitions.get(number)
    if topic is None or partition is None:
        missing = f"topic as {name}" if topic is None else f"partition as {name}-{number}"
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _Result(partition_id=number, error_code=code, error_message=brief(f"No such {missing}"))
    return _elect(state, topic, number, partition, election, elected)


def _elect(
    state: ControllerState,
    topic: Topic,
    number: int,
    partition: Partition,
    election: ElectionKind,
    elected: dict[PartitionKey, Message],
) -> _Result:
    key = PartitionKey(topic.id, number)
    record = None
    if key in elected or not _lacks(partition, election):
        code = ErrorCode.ELECTION_NOT_NEEDED
    else:
        record = state.change(key, election=election).record()
        nobody = {
            ElectionKind.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ElectionKind.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        }[election]
        code = nobody if record is None else ErrorCode.NONE
    if record is not None:
        elected[key] = record
    return _Result(partition_id=number, error_code=code, error_message=_TEXTS.get(code))


def _lacks(partition: Partition, election: ElectionKind) -> bool:
    if election is ElectionKind.PREFERRED:
        return partition.leader != partition.preferred_leader
    return not partition.has_leader


# --- looked for -------------------------------------------------------------------------------------------------------


class Walk:
    """A walk through all partitions that may need an election, a piece at a time: there may be a million without a
    possible leader."""

    def __init__(
        self, partitions: Iterator[PartitionKey], find: Callable[[ControllerState, PartitionKey], Message | None]
    ) -> None:
        """Take `find`, which returns the election of a partition that needs one and can have it."""
        self._partitions = partitions
        self._find = find
        self.is_over = False

    def elections(self, state: ControllerState) -> list[Message]:
        """Return the elections of the next PIECE_PARTITIONS partitions; at most `leader_imbalance_per_run_max`."""
        records: list[Message] = []
        for _ in range(PIECE_PARTITIONS):
            key = next(self._partitions, None)
            if key is None:
                self.is_over = True
                break
            record = self._find(state, key)
            if record is not None:
                records.append(record)
                if len(records) >= state.settings.leader_imbalance_per_run_max:
                    break
        return records


def balance(state: ControllerState) -> Walk:
    """Begin a walk that elects preferred leaders where they may lead and do not."""
    return Walk(state.index.imbalanced(), _preferred)


def elect_missing(state: ControllerState) -> Walk:
    """Begin a walk that elects leaders for partitions without one; from outside the ISR only in topics that allow it.

    A possible leader was elected when it came, unless not all of those records could be written then.
    """
    return Walk(state.index.leaderless(), _any)


def _preferred(state: ControllerState, key: PartitionKey) -> Message | None:
    partition = state.image.topics.partition(*key)
    assert partition is not None
    first = partition.preferred_leader
    if first not in (partition.isr or partition.elr) or not state.is_active(first):
        return None
    return state.change(key, election=ElectionKind.PREFERRED).record()


def _any(state: ControllerState, key: PartitionKey) -> Message | None:
    return state.change(key).record()
