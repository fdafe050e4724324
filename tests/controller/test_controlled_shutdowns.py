"""KIP-380's ControlledShutdown. Each test names the sentence that it shows."""

from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.controller_heartbeat import BrokerState
from tests.controller.older import OLD, OlderController
from tests.controller.rig import refusal


def test_leaders_move_to_whoever_is_in_sync_and_what_nobody_else_can_lead_is_told() -> None:
    controller = OlderController()
    controller.activate(1, 2)
    controller.topic([1, 2], [1], [2, 1])
    assert controller.shut_down(1) == [("t", 1)]
    assert [controller.partition(number).leader for number in range(3)] == [2, -1, 2]
    assert controller.broker(1).in_controlled_shutdown
    assert not controller.broker(1).fenced
    assert controller.shut_down(1) == []
    assert controller.written == [], "there is nothing more to be moved"


def test_a_shutdown_of_a_former_generation_is_refused_and_moves_nothing() -> None:
    """ "When the controller sees a ControlledShutdownRequest with outdated broker epoch, it will respond back with
    STALE_BROKER_EPOCH error." "This guarantees controller will not attempt to send out control requests to move
    partitions and stop replicas ... if the broker has already been restarted." """
    controller = OlderController()
    former = controller.join(1)
    controller.activate(2)
    controller.wait(100)
    assert controller.join(1, incarnation=2) > former
    controller.say(1, BrokerState.ACTIVE)
    controller.topic([1, 2])
    end = len(controller.records)
    assert refusal(lambda: controller.shut_down(1, former)) is ErrorCode.STALE_BROKER_EPOCH
    assert refusal(lambda: controller.shut_down(1, -1)) is ErrorCode.STALE_BROKER_EPOCH
    assert len(controller.records) == end
    assert controller.partition().leader == 1


def test_it_asks_again_with_its_newer_generation() -> None:
    """ "If the broker just gets disconnected ... and re-connect during controlled shutdown, it will retry to send the
    ControlledShutdownRequest with newer broker epoch to controller." """
    controller = OlderController()
    former = controller.join(1)
    controller.wait(100)
    newer = controller.join(1, incarnation=2)
    controller.say(1, BrokerState.ACTIVE)
    assert refusal(lambda: controller.shut_down(1, former)) is ErrorCode.STALE_BROKER_EPOCH
    assert controller.shut_down(1, newer) == []


def test_who_is_not_there_cannot_go() -> None:
    controller = OlderController()
    controller.join(1)
    end = len(controller.records)
    assert refusal(lambda: controller.shut_down(1)) is ErrorCode.BROKER_NOT_AVAILABLE
    assert refusal(lambda: controller.shut_down(9, 5)) is ErrorCode.BROKER_NOT_AVAILABLE
    assert len(controller.records) == end


def test_a_broker_that_does_not_beat_goes_so() -> None:
    controller = OlderController()
    controller.join(1, protocol=OLD)
    controller.activate(2)
    controller.beat(1)
    controller.topic([1, 2])
    assert controller.shut_down(1) == []
    assert (controller.partition().leader, controller.partition().isr) == (2, (2,))
