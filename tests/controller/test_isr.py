"""AlterPartition: what a leader proposes is taken, or refused with Kafka's error and no record.

KIP-497, KIP-704, KIP-841 (K51), KIP-903 (K51), KAFKA-14154 (K52); KIP-343 "Initiating ISR Changes"; C3, C6.
"""

from typing import Any

import pytest

from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.partitions import AlterPartitionRequest
from tests.controller.rig import Controller, refusal, uuid


def three(**configs: str) -> Controller:
    """Brokers 1 to 3, and a partition that 1 leads, all in sync."""
    controller = Controller()
    controller.start(1, 2, 3)
    controller.topic([1, 2, 3], configs=configs)
    return controller


def code_of(controller: Controller, new_isr: list[int], **fields: Any) -> ErrorCode:
    """What a proposal is answered with; nothing is written unless it is taken."""
    before = len(controller.records)
    answer = controller.alter(new_isr, **fields)
    ((topic,),) = (answer.topics,)
    ((partition,),) = (topic.partitions,)
    code = ErrorCode(partition.error_code)
    if code not in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
        assert len(controller.records) == before, "it was refused, and something was written"
    return code


@pytest.mark.parametrize("version", [2, 3])
def test_the_isr_shrinks_and_grows_as_the_leader_says(version: int) -> None:
    controller = three()
    answer = controller.alter([1, 3], version=version).topics[0].partitions[0]
    assert (answer.error_code, answer.leader_id, answer.isr, answer.leader_epoch) == (0, 1, [1, 3], 0)
    assert answer.partition_epoch == controller.partition().partition_epoch == 1
    assert controller.partition().isr == (1, 3)
    controller.alter([1, 3, 2], version=version)
    assert (controller.partition().isr, controller.partition().leader_epoch) == ((1, 3, 2), 0)


def test_what_is_so_already_is_answered_without_a_record() -> None:
    controller = three()
    assert code_of(controller, [1, 2, 3]) is ErrorCode.NONE
    assert controller.written == []


def test_below_3_6_a_shrinking_isr_begins_a_leader_epoch() -> None:
    """KAFKA-15021."""
    controller = Controller(level=11)
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.alter([1], version=2)
    assert controller.partition().leader_epoch == 1


@pytest.mark.parametrize(
    ("new_isr", "fields", "code"),
    [
        ([1], {"topic_id": uuid(77)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ([1], {"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([2], {"broker_id": 2}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"recovery": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovery": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovery": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"epochs": {2: 99999}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
@pytest.mark.parametrize("version", [2, 3])
def test_a_proposal_that_cannot_be(new_isr: list[int], fields: dict[str, Any], code: ErrorCode, version: int) -> None:
    if "epochs" in fields and version < 3:
        return
    assert code_of(three(), new_isr, version=version, **dict(fields)) is code


def test_a_proposal_of_an_epoch_that_is_over() -> None:
    controller = three()
    controller.alter([1, 2])
    assert code_of(controller, [1], partition_epoch=0) is ErrorCode.INVALID_UPDATE_VERSION
    controller.beat(1, want_fence=True)
    assert controller.partition().leader_epoch == 1
    assert code_of(controller, [1], broker_id=1, leader_epoch=0, partition_epoch=0) is ErrorCode.FENCED_LEADER_EPOCH


def test_who_is_fenced_leaving_or_another_by_now_does_not_come_in() -> None:
    """K51: KAFKA-13916, KIP-903."""
    controller = three()
    controller.alter([1])
    controller.beat(2, want_fence=True)
    assert code_of(controller, [1, 2]) is ErrorCode.INELIGIBLE_REPLICA
    controller.topic([3, 1], name="u", topic_id=uuid(2))
    controller.beat(3, want_shut_down=True)
    assert controller.broker(3).in_controlled_shutdown
    assert code_of(controller, [1, 3]) is ErrorCode.INELIGIBLE_REPLICA
    stale = controller.broker(2).epoch
    controller.wait(10)
    controller.beat(1)
    controller.start(2, incarnation=2)
    assert code_of(controller, [1, 2], epochs={2: stale}) is ErrorCode.INELIGIBLE_REPLICA
    assert code_of(controller, [1, 2], epochs={2: -1}) is ErrorCode.NONE, "an epoch that was not said is not checked"


def test_a_leader_that_is_another_incarnation_by_now_is_refused_as_a_whole() -> None:
    controller = three()
    assert refusal(lambda: controller.alter([1], broker_epoch=0)) is ErrorCode.STALE_BROKER_EPOCH
    assert refusal(lambda: controller.alter([1], broker_id=9)) is ErrorCode.STALE_BROKER_EPOCH


def test_a_proposal_for_nothing_is_answered_with_nothing() -> None:
    from fastquorum.controller.partitions import isr

    controller = three()
    request = AlterPartitionRequest(broker_id=1, broker_epoch=controller.broker(1).epoch)
    assert controller.decide(isr.alter_partition(controller.state, request, 3)).topics == []


def test_a_leader_that_has_recovered_says_so() -> None:
    """KIP-704: after an unclean election."""
    controller = three(unclean_leader_election_enable="true")
    controller.alter([1])
    controller.beat(1, want_fence=True)
    unclean = controller.partition()
    assert (unclean.leader, unclean.isr, unclean.recovery) == (2, (2,), 1)
    assert code_of(controller, [2, 3], recovery=1) is ErrorCode.INVALID_REQUEST
    assert code_of(controller, [2], recovery=1) is ErrorCode.NONE
    assert code_of(controller, [2, 3]) is ErrorCode.NONE
    assert (controller.partition().recovery, controller.partition().isr) == (0, (2, 3))
