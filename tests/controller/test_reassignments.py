"""Replicas move to other brokers, and the move can be taken back. KIP-455; K58 (KAFKA-15665); C10."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.controller.image.partition import Partition
from fastquorum.controller.partitions import reassignments
from fastquorum.controller.partitions.reassignments import Moving, towards
from fastquorum.types import NO_NODE, NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
)
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.controller.rig import TOPIC_ID, Controller, directory_of

Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


def five(*assignment: NodeId, elr: bool = False, **configs: str) -> Controller:
    """Five brokers, and a partition on some of them."""
    controller = Controller(elr=elr)
    controller.start(1, 2, 3, 4, 5)
    controller.topic(assignment, configs=configs)
    return controller


def ask(
    controller: Controller, *targets: Sequence[NodeId] | None, name: str = "t", number: int = 0, may_resize: bool = True
) -> list[tuple[int, str | None]]:
    """Each target for one partition, in one request; code and text of each."""
    partitions = [
        Topic.ReassignablePartition(partition_index=number, replicas=None if each is None else list(each))
        for each in targets
    ]
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_resize, topics=[Topic(name=name, partitions=partitions)]
    )
    answer = controller.decide(reassignments.alter_reassignments(controller.state, request))
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert answer.error_code == ErrorCode.NONE
    return [(each.error_code, each.error_message) for each in answer.responses[0].partitions]


def move(controller: Controller, *target: NodeId) -> None:
    assert ask(controller, target) == [(ErrorCode.NONE, None)]


def cancel(controller: Controller) -> None:
    assert ask(controller, None) == [(ErrorCode.NONE, None)]


def moving(controller: Controller) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    partition = controller.partition()
    return partition.replicas, partition.adding, partition.removing


def listed(controller: Controller) -> list[list[int]]:
    decision = reassignments.list_reassignments(controller.state, ListPartitionReassignmentsRequest())
    return [each.replicas for topic in decision.answer.topics for each in topic.partitions]  # type: ignore[attr-defined]


# --- there --------------------------------------------------------------------------------------------------------


def test_a_partition_has_old_and_new_replicas_until_all_the_new_are_in_sync() -> None:
    controller = five(1, 2)
    move(controller, 3, 4)
    assert moving(controller) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert listed(controller) == [[3, 4, 1, 2]]
    controller.alter([1, 2, 3])
    assert moving(controller) == ((3, 4, 1, 2), (3, 4), (1, 2))  # C10
    controller.alter([1, 2, 3, 4])
    assert moving(controller) == ((3, 4), (), ())
    assert controller.partition().isr == (3, 4)
    assert controller.partition().leader == 3
    assert controller.partition().directories == (directory_of(3), directory_of(4))
    assert listed(controller) == []


def test_what_only_goes_is_gone_at_once_when_who_stays_is_in_sync() -> None:
    controller = five(1, 2, 3)
    move(controller, 2, 1)
    assert moving(controller) == ((2, 1), (), ())
    assert controller.partition().isr == (1, 2)
    assert controller.partition().leader_epoch == 1  # who was taken away hears of it


def test_fewer_replicas_wait_for_every_one_that_stays() -> None:
    """K58 (KAFKA-15665): else a partition is left with fewer in sync than it had."""
    controller = five(1, 2, 3)
    controller.alter([1])
    move(controller, 2, 3)
    assert moving(controller) == ((2, 3, 1), (), (1,))
    controller.alter([1, 2])
    assert moving(controller) == ((2, 3, 1), (), (1,))
    controller.alter([1, 2, 3])
    assert moving(controller) == ((2, 3), (), ())


def test_another_order_takes_no_move() -> None:
    controller = five(1, 2)
    move(controller, 2, 1)
    assert moving(controller) == ((2, 1), (), ())
    assert controller.partition().leader == 1


def test_where_it_is_already_nothing_is_written() -> None:
    controller = five(1, 2)
    move(controller, 1, 2)
    assert controller.written == []


def test_a_move_outlives_the_controller() -> None:
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.fail_over()
    controller.beat_all()
    assert listed(controller) == [[3, 4, 1, 2]]
    controller.alter([1, 2, 3, 4])
    assert moving(controller) == ((3, 4), (), ())


# --- elsewhere --------------------------------------------------------------------------------------------------------


def test_a_move_that_is_overridden_lets_go_of_all_that_it_was_adding_once_the_last_is_done() -> None:
    """Until then they are replicas like those there were before, in sync or not."""
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.alter([1, 2, 4])
    move(controller, 5, 2)
    assert moving(controller) == ((5, 2, 1, 3, 4), (5,), (1, 3, 4))
    controller.alter([1, 2, 4, 5])
    assert moving(controller) == ((5, 2), (), ())
    assert controller.partition().isr == (2, 5)


def test_taking_back_a_move_that_overrode_another_leaves_what_was_there_when_it_began() -> None:
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.alter([1, 2, 4])
    move(controller, 5, 2)
    cancel(controller)
    assert moving(controller) == ((2, 1, 3, 4), (), ())
    assert controller.partition().isr == (1, 2, 4)
    assert controller.partition().leader == 1


def test_what_both_moves_add_is_being_added_by_the_first_alone() -> None:
    controller = five(1)
    move(controller, 2)
    move(controller, 2, 3)
    assert moving(controller) == ((2, 3, 1), (3,), (1,))
    cancel(controller)
    assert moving(controller) == ((2, 1), (), ())


def test_a_move_that_only_takes_another_order_of_what_is_added_goes_on_adding_it() -> None:
    controller = five(1)
    move(controller, 2, 3)
    move(controller, 3, 2)
    assert moving(controller) == ((3, 2, 1), (2, 3), (1,))
    cancel(controller)
    assert moving(controller) == ((1,), (), ())


def test_a_move_back_to_where_it_was_is_done_at_once() -> None:
    """Kafka goes on adding there what is to be removed, which nothing ends but taking it back."""
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.alter([1, 2, 3])
    move(controller, 1, 2)
    assert moving(controller) == ((1, 2), (), ())
    assert controller.partition().isr == (1, 2)


def test_to_ask_again_changes_nothing() -> None:
    controller = five(1, 2)
    move(controller, 3, 4)
    move(controller, 3, 4)
    assert controller.written == []


def test_what_was_to_go_may_stay() -> None:
    controller = five(1, 2)
    move(controller, 3, 2)
    move(controller, 3, 1, 2)
    assert moving(controller) == ((3, 1, 2), (3,), ())
    controller.alter([1, 2, 3])
    assert moving(controller) == ((3, 1, 2), (), ())


# --- back -------------------------------------------------------------------------------------------------------------


def test_a_move_that_is_taken_back_leaves_what_was() -> None:
    """C10."""
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.alter([1, 2, 3])
    cancel(controller)
    assert moving(controller) == ((1, 2), (), ())
    assert controller.partition().isr == (1, 2)
    assert controller.partition().leader == 1


def test_a_leader_that_was_added_leads_no_more() -> None:
    controller = five(1, 2)
    move(controller, 3, 4)
    controller.alter([1, 3])
    controller.beat(1, want_fence=True)
    assert controller.partition().leader == 3
    controller.beat(1)
    controller.alter([1, 3])
    cancel(controller)
    assert (controller.partition().leader, controller.partition().isr) == (1, (1,))


@pytest.mark.parametrize(("allowed", "code"), [("false", ErrorCode.INVALID_REPLICA_ASSIGNMENT), ("true", 0)])
def test_taking_back_what_only_the_new_hold_is_an_unclean_election(allowed: str, code: int) -> None:
    controller = five(1, 2, unclean_leader_election_enable=allowed)
    move(controller, 3, 4)
    controller.alter([1, 3])
    controller.beat(1, want_fence=True)
    controller.beat(2, want_fence=True)
    assert controller.partition().isr == (3,)
    controller.beat(1)
    [(got, text)] = ask(controller, None)
    assert got == code
    if code:
        assert text is not None
        assert "would require an unclean leader election" in text
        assert controller.written == []
    else:
        assert moving(controller) == ((1, 2), (), ())
        assert (controller.partition().leader, controller.partition().isr) == (1, (1,))


def test_who_holds_no_replica_any_more_is_not_eligible() -> None:
    controller = five(1, 2, elr=True, min_insync_replicas="2")
    move(controller, 3, 4)
    controller.alter([1, 2, 3])
    controller.alter([1, 3])
    cancel(controller)
    assert controller.partition().isr == (1,)
    assert set(controller.partition().elr) <= {1, 2}


def test_who_is_moved_away_is_not_eligible_either() -> None:
    """Else the partition would have no leader for good, once its last one has come back without its data."""
    controller = five(1, 2, 3, elr=True, min_insync_replicas="3")
    move(controller, 1)
    assert (controller.partition().replicas, controller.partition().elr) == ((1,), ())
    controller.beat(1, want_fence=True)
    controller.wait(20)
    controller.register(1, incarnation=2)
    assert (controller.partition().elr, controller.partition().last_known_elr) == ((), (1,))
    controller.beat(1)
    assert controller.partition().leader == 1


def test_who_was_moved_away_and_is_added_again_has_nothing_and_is_not_elected() -> None:
    """C9. The least ISR goes by the topic's first partition, which keeps three replicas."""
    controller = Controller(elr=True)
    controller.start(1, 2, 3)
    controller.topic((1, 2, 3), (1, 2, 3), configs={"min_insync_replicas": "3"})
    for target in ((1,), (1, 2)):
        assert ask(controller, target, number=1) == [(ErrorCode.NONE, None)]
    controller.beat(1, want_fence=True)
    partition = controller.partition(1)
    assert (partition.replicas, partition.leader, partition.isr, partition.elr) == ((1, 2), NO_NODE, (), (1,))
    controller.beat(1)
    assert controller.partition(1).leader == 1


def test_who_another_controller_has_left_eligible_without_a_replica_is_not_when_it_gets_one() -> None:
    """Kafka's does so."""
    controller = Controller(elr=True)
    controller.start(1, 2)
    controller.topic((1,))
    left = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=-1, isr=[], eligible_leader_replicas=[1, 2])
    controller.state.applied(controller.state.prepare([left]))
    controller.records += [left]
    assert ask(controller, (1, 2)) == [(ErrorCode.NONE, None)]
    partition = controller.partition()
    assert (partition.replicas, partition.leader, partition.isr, partition.elr) == ((1, 2), 1, (1,), ())


def test_nothing_to_take_back() -> None:
    controller = five(1, 2)
    assert ask(controller, None) == [
        (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    ]


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ([], "The manual partition assignment includes an empty replica list."),
        ([1, 6], "The manual partition assignment includes broker 6, but no such broker is registered."),
        ([1, 2, 1], "The manual partition assignment includes the broker 1 more than once."),
    ],
)
def test_a_target_that_cannot_be(target: list[int], text: str) -> None:
    controller = five(1, 2)
    assert ask(controller, target) == [(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)]
    assert controller.written == []


def test_a_fenced_broker_may_be_a_target() -> None:
    controller = five(1, 2)
    controller.beat(3, want_fence=True)
    move(controller, 3, 2)
    assert moving(controller) == ((3, 2, 1), (3,), (1,))


def test_the_number_of_replicas_stays_where_the_caller_says_so() -> None:
    """KIP-860."""
    controller = five(1, 2)
    move(controller, 3, 4)
    assert ask(controller, [5], may_resize=False) == [
        (ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 2 to 1")
    ]
    assert ask(controller, [5, 1], may_resize=False) == [(ErrorCode.NONE, None)]


def test_what_is_not_there() -> None:
    controller = five(1, 2)
    assert ask(controller, [3], name="u") == [(3, "Unable to find a topic named u.")]
    assert ask(controller, [3], number=7) == [(3, "Unable to find partition t:7.")]


def test_a_partition_that_is_named_twice_is_moved_once() -> None:
    controller = five(1, 2)
    first, second = ask(controller, [3, 2], [4, 2])
    assert first == (ErrorCode.NONE, None)
    assert second == (ErrorCode.INVALID_REQUEST, "t:0 is named more than once.")
    assert moving(controller)[1] == (3,)


# --- whatever happens -------------------------------------------------------------------------------------------------

BROKERS = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True)


@given(BROKERS, BROKERS, st.data())
def test_any_moves_end_at_the_last_target_or_at_the_first_replicas(
    first: list[int], last: list[int], data: st.DataObject
) -> None:
    """C10, from any state on the way."""
    controller = five(*first)
    for target in [*data.draw(st.lists(BROKERS, max_size=2)), last]:
        partition = controller.partition()
        lagging = data.draw(st.sets(st.sampled_from(partition.replicas)))
        controller.alter([each for each in partition.replicas if each not in lagging or each == partition.leader])
        move(controller, *target)
        now = controller.partition()
        assert set(now.isr) <= set(now.replicas)
        assert set(now.adding) <= set(target)
        assert not set(now.removing) & set(target)
    while moving(controller)[1:] != ((), ()):
        before = controller.partition()
        controller.alter(sorted(before.replicas))
        assert controller.partition() != before
    assert moving(controller)[0] == tuple(last)


@given(BROKERS, BROKERS)
def test_one_move_taken_back_restores_the_set(first: list[int], target: list[int]) -> None:
    controller = five(*first)
    controller.alter([controller.partition().leader])
    move(controller, *target)
    if controller.partition().is_reassigning:
        cancel(controller)
        assert set(controller.partition().replicas) == set(first)


def test_on_the_way() -> None:
    """What was being added, in sync or not, and a target that takes some of it."""
    lost = (directory_of(1),) * 4
    partition = Partition((3, 4, 1, 2), lost, (1, 4), 1, 0, 0, removing=(1, 2), adding=(3, 4))
    assert towards(partition, (3, 5)) == Moving((3, 5, 1, 2, 4), (5,), (1, 2, 4))
    assert towards(partition, (4, 3)) == Moving((4, 3, 1, 2), (3, 4), (1, 2))
    assert towards(partition, (1, 2)) == Moving((1, 2, 3, 4), (), (3, 4))
    assert partition.leader != NO_NODE
