"""Elections that somebody asks for, and those that the controller looks for itself. KIP-460, KIP-966; C9."""

import pytest

from fastquorum.controller.partitions import elections
from fastquorum.controller.requests import refused
from fastquorum.types import NO_NODE
from fastquorum.wire import decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.topics import RemoveTopicRecord
from tests.controller.rig import TOPIC_ID, Controller, refusal, uuid

PREFERRED, UNCLEAN = 0, 1
Wanted = ElectLeadersRequest.TopicPartitions


def three(**configs: str) -> Controller:
    controller = Controller()
    controller.start(1, 2, 3)
    controller.topic([1, 2], [2, 3], configs=configs)
    return controller


def bounce(controller: Controller, broker_id: int) -> None:
    """It goes, and comes back."""
    controller.beat(broker_id, want_fence=True)
    controller.beat(broker_id)


def elect(
    controller: Controller, kind: int, partitions: dict[str, list[int]] | None
) -> dict[tuple[str, int], tuple[int, str | None]]:
    named = None if partitions is None else [Wanted(topic=name, partitions=each) for name, each in partitions.items()]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named)
    answer = controller.decide(elections.elect_leaders(controller.state, request))
    assert isinstance(answer, ElectLeadersResponse)
    return {
        (topic.topic, each.partition_id): (each.error_code, each.error_message)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def leaders(controller: Controller) -> list[int]:
    return [controller.partition(number).leader for number in range(2)]


# --- asked for --------------------------------------------------------------------------------------------------------


def test_the_first_replica_leads_again() -> None:
    controller = three()
    bounce(controller, 1)
    controller.alter([1, 2])
    assert leaders(controller) == [2, 2]
    assert elect(controller, PREFERRED, {"t": [0]}) == {("t", 0): (ErrorCode.NONE, None)}
    assert leaders(controller) == [1, 2]


def test_the_first_replica_is_not_in_sync() -> None:
    controller = three()
    bounce(controller, 1)
    assert elect(controller, PREFERRED, {"t": [0, 1]}) == {
        ("t", 0): (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
        ("t", 1): (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
    }
    assert controller.written == []


def test_of_all_partitions_those_that_need_none_are_left_out() -> None:
    controller = three()
    controller.topic([3, 1], name="u", topic_id=uuid(2))
    bounce(controller, 1)
    controller.alter([1, 2])
    assert elect(controller, PREFERRED, None) == {("t", 0): (ErrorCode.NONE, None)}


def test_of_all_topics_each_is_told_though_nobody_had_to_be_elected() -> None:
    controller = three()
    controller.topic([3, 1], name="u", topic_id=uuid(2))
    for kind in (PREFERRED, UNCLEAN):
        decision = elections.elect_leaders(
            controller.state, ElectLeadersRequest(election_type=kind, topic_partitions=None)
        )
        assert isinstance(decision.answer, ElectLeadersResponse)
        results = [(each.topic, each.partition_result) for each in decision.answer.replica_election_results]
        assert results == [("t", []), ("u", [])]


def test_anybody_alive_leads_what_nobody_leads() -> None:
    """C9: only because it was asked for."""
    controller = three()
    controller.alter([1])
    controller.beat(1, want_fence=True)
    assert leaders(controller) == [NO_NODE, 2]
    assert elect(controller, UNCLEAN, {"t": [0, 1, 0]})["t", 1][0] == ErrorCode.ELECTION_NOT_NEEDED
    assert leaders(controller) == [2, 2]
    assert controller.partition().recovery == 1


def test_nobody_is_alive() -> None:
    controller = three()
    for broker_id in (1, 2):
        controller.beat(broker_id, want_fence=True)
    assert elect(controller, UNCLEAN, {"t": [0]}) == {
        ("t", 0): (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")
    }


def test_what_is_not_there() -> None:
    controller = three()
    assert elect(controller, PREFERRED, {"t": [5], "u": [0]}) == {
        ("t", 5): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-5"),
        ("u", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as u"),
    }


def test_a_partition_that_is_named_twice_is_elected_for_once() -> None:
    controller = three()
    bounce(controller, 1)
    controller.alter([1, 2])
    before = controller.partition().leader_epoch
    elect(controller, PREFERRED, {"t": [0, 0]})
    assert controller.partition().leader_epoch == before + 1


def test_there_is_no_third_kind() -> None:
    controller = three()
    assert refusal(lambda: elect(controller, 2, None)) is ErrorCode.INVALID_REQUEST


def test_the_oldest_version_has_its_errors_at_each_partition() -> None:
    request = ElectLeadersRequest(topic_partitions=[Wanted(topic="t", partitions=[0, 1])])
    for version in (0, 1, 2):
        answer = refused(request, version, ErrorCode.NOT_CONTROLLER)
        read = decode(ElectLeadersResponse, version, encode(answer, version))
        codes = [each.error_code for topic in read.replica_election_results for each in topic.partition_result]
        assert (read.error_code, codes) == ((0, [41, 41]) if version == 0 else (41, []))


# --- looked for -------------------------------------------------------------------------------------------------------


def test_leads_come_back_to_those_they_are_meant_for() -> None:
    controller = three()
    for broker_id in (1, 2):
        bounce(controller, broker_id)
    controller.alter([2, 3], partition_index=1)
    assert leaders(controller) == [2, 3]
    controller.write(*elections.balance(controller.state).elections(controller.state))
    assert leaders(controller) == [2, 2]  # the first replica of the other is not in sync
    assert elections.balance(controller.state).elections(controller.state) == []


def test_one_look_elects_for_so_many() -> None:
    controller = Controller(leader_imbalance_per_run_max=2)
    controller.start(1, 2)
    controller.topic(*([[1, 2]] * 5))
    bounce(controller, 1)
    for number in range(5):
        controller.alter([1, 2], partition_index=number)
    found, walk = [], elections.balance(controller.state)
    while not walk.is_over:
        records = walk.elections(controller.state)
        found.append(len(records))
        controller.write(*records)
    assert found == [2, 2, 1]
    assert [controller.partition(number).leader for number in range(5)] == [1] * 5


def test_nobody_is_taken_who_is_not_in_sync_unless_the_topic_allows_it() -> None:
    """C9."""
    for allowed, leader in (("false", NO_NODE), ("true", 2)):
        controller = three()
        controller.alter([1])
        controller.beat(1, want_fence=True)
        assert controller.partition().leader == NO_NODE
        # Set for the topic without a word to the controller's elections, as by a controller of before.
        controller.write(
            ConfigRecord(resource_type=2, resource_name="t", name="unclean.leader.election.enable", value=allowed)
        )
        records = elections.elect_missing(controller.state).elections(controller.state)
        if records:
            controller.write(*records)
        assert controller.partition().leader == leader
        assert elections.balance(controller.state).elections(controller.state) == []


def test_many_partitions_that_cannot_be_helped_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do they keep anybody from those behind them."""
    monkeypatch.setattr(elections, "PIECE_PARTITIONS", 2)
    controller = Controller()
    controller.start(1, 2)
    controller.topic(*([[1, 2]] * 5))
    bounce(controller, 1)
    controller.alter([1, 2], partition_index=4)
    walk = elections.balance(controller.state)
    found = [len(walk.elections(controller.state)) for _ in range(2)]
    assert (found, walk.is_over) == ([0, 0], False)
    assert len(walk.elections(controller.state)) == 1
    assert walk.is_over


def test_what_has_a_leader_by_then_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk goes on while others elect, and topics go."""
    monkeypatch.setattr(elections, "PIECE_PARTITIONS", 1)
    controller = three()
    bounce(controller, 1)
    bounce(controller, 2)
    walk = elections.balance(controller.state)
    assert walk.elections(controller.state) == []
    assert not walk.is_over
    controller.write(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert walk.elections(controller.state) == []
    assert walk.is_over
