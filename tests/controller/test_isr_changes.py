"""KIP-343's IsrChange, decided as AlterPartition is. Each test names the sentence that it shows."""

import pytest

from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.controller_heartbeat import BrokerState, IsrChangeResponse
from tests.controller.older import OlderController
from tests.controller.rig import refusal, uuid


def three() -> OlderController:
    """Brokers 1 to 3, and two partitions: 1 leads the first, 2 the second."""
    controller = OlderController()
    controller.activate(1, 2, 3)
    controller.topic([1, 2, 3], [2, 1])
    return controller


def codes(answer: IsrChangeResponse) -> list[ErrorCode]:
    assert answer.top_level_error_code == 0
    return [ErrorCode(each.error_code) for each in answer.results]


def test_none_means_that_the_change_is_applied() -> None:
    """ "The partition response will contain an error code of NONE if the ISR change was successfully applied." """
    controller = three()
    assert codes(controller.propose(("t", 0, 0, [1, 3]))) == [ErrorCode.NONE]
    assert controller.partition().isr == (1, 3)
    assert codes(controller.propose(("t", 0, 0, [1, 3, 2]))) == [ErrorCode.NONE]
    assert controller.partition().isr == (1, 3, 2)


def test_results_are_in_the_order_of_the_request() -> None:
    """ "The results will appear in the same order as the requests appeared. Each result contains an error code." """
    controller = three()
    controller.topic([1, 2], name="u", topic_id=uuid(2))
    answer = controller.propose(
        ("u", 0, 0, []), ("t", 1, 0, [2]), ("t", 0, 0, [1, 2]), ("u", 7, 0, [1]), ("t", 0, 0, [1]), ("v", 0, 0, [1])
    )
    assert codes(answer) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert [each.error_message is None for each in answer.results] == [False, False, True, False, False, False]
    assert controller.partition().isr == (1, 2)
    assert len(controller.written) == 1


def test_who_leads_no_more_is_refused() -> None:
    """ "NOT_LEADER_FOR_PARTITION_EXCEPTION if the requester is no longer the leader for the partition." """
    controller = three()
    controller.say(1, BrokerState.INACTIVE)
    controller.say(1, BrokerState.ACTIVE)
    assert controller.partition().leader == 2
    assert codes(controller.propose(("t", 0, 0, [1, 2, 3]))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert codes(controller.propose(("t", 0, 1, [1, 2, 3]))) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert codes(controller.propose(("t", 0, 0, [2, 3]), by=2)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert controller.written == []


@pytest.mark.parametrize("nodes", [[], [2, 3], [1, 1], [1, 4], [1, -1]])
def test_an_isr_that_cannot_be_is_an_invalid_request(nodes: list[NodeId]) -> None:
    """ "INVALID_REQUEST_EXCEPTION if the request was invalid. For example, if the broker attempted to shrink the ISR to
    contain 0 brokers, that would be an invalid request." """
    controller = three()
    assert codes(controller.propose(("t", 0, 0, nodes))) == [ErrorCode.INVALID_REQUEST]
    assert controller.written == []


def test_an_inactive_broker_is_treated_as_an_absent_one() -> None:
    """ "For most purposes, an inactive broker is treated the same as an absent broker." """
    controller = three()
    controller.say(3, BrokerState.INACTIVE)
    assert codes(controller.propose(("t", 0, 0, [1, 2, 3]))) == [ErrorCode.INVALID_REQUEST]
    assert controller.partition().isr == (1, 2)


@pytest.mark.parametrize("off_by", [-1, 1])
def test_another_incarnation_than_the_known_one_changes_nothing(off_by: int) -> None:
    """ "The top level error code will contain an error code of INVALID_INCARNATION_ID if the incarnation ID was
    wrong." """
    controller = three()
    wrong, end = controller.broker(1).epoch + off_by, len(controller.records)
    code = refusal(lambda: controller.propose(("t", 0, 0, [1]), incarnation_id=wrong))
    assert code is ErrorCode.STALE_BROKER_EPOCH
    assert len(controller.records) == end


def test_an_overwritten_registration_may_not_change_the_isr() -> None:
    """ "The new registration overwrote the old one, and we are now prohibited from changing the ISR." """
    controller = three()
    former = controller.broker(1).epoch
    controller.wait(100)
    controller.join(1, incarnation=2)
    code = refusal(lambda: controller.propose(("t", 0, 0, [1]), incarnation_id=former))
    assert code is ErrorCode.STALE_BROKER_EPOCH
    controller.say(2, BrokerState.ACTIVE)
    controller.say(2, BrokerState.ACTIVE, controller.broker(2).epoch + 1)
    code = refusal(lambda: controller.propose(("t", 1, 0, [2]), by=2))
    assert code is ErrorCode.STALE_BROKER_EPOCH, "a later one was heard of"


def test_who_knows_of_a_later_leader_epoch_asks_somebody_who_was_the_controller() -> None:
    """ "The top level error code will be NOT_CONTROLLER if the recipient was not the current controller." """
    controller = three()
    end = len(controller.records)
    code = refusal(lambda: controller.propose(("t", 1, 0, [2, 1]), ("t", 0, 9, [1])))
    assert code is ErrorCode.NOT_CONTROLLER
    assert len(controller.records) == end


def test_a_negative_broker_id_is_an_invalid_request() -> None:
    controller = three()
    code = refusal(lambda: controller.propose(("t", 0, 0, [1]), by=-1, incarnation_id=1))
    assert code is ErrorCode.INVALID_REQUEST
