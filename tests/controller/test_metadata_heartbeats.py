"""KIP-343's heartbeats, decided by the controller that decides Kafka's. Each test names the sentence that it shows."""

import pytest

from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.state.broker_info import broker_info_feature, broker_info_version, is_legacy
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.controller_heartbeat import BrokerState
from tests.controller.older import NEW, OLD, OlderController
from tests.controller.rig import SESSION_S, refusal

INACTIVE, ACTIVE, STOPPING = BrokerState.INACTIVE, BrokerState.ACTIVE, BrokerState.STOPPING


def three() -> OlderController:
    """Brokers 1 to 3, active, and a partition that 1 leads."""
    controller = OlderController()
    controller.activate(1, 2, 3)
    controller.topic([1, 2, 3])
    return controller


def test_a_broker_is_inactive_until_it_has_said_that_it_wants_to_be_active() -> None:
    """ "When the cluster is first initialized, all nodes will be in the inactive state." """
    controller = OlderController()
    controller.join(1)
    assert controller.broker(1).fenced
    assert controller.say(1, INACTIVE) is INACTIVE
    assert controller.written == []
    assert controller.say(1, ACTIVE) is ACTIVE
    assert controller.broker(1).is_active


def test_the_controller_declares_a_silent_broker_inactive_and_active_when_it_beats_again() -> None:
    """ "The controller will declare a broker inactive if it fails to heartbeat after a certain amount of time.
    Conversely, if a previously inactive broker successfully heartbeats, it can be declared active again." """
    controller = three()
    controller.wait(SESSION_S - 1)
    controller.say(2, ACTIVE)
    controller.say(3, ACTIVE)
    controller.wait(2)
    assert controller.fence_expired() == [1]
    assert (controller.partition().leader, controller.partition().isr) == (2, (2, 3))
    assert controller.say(1, ACTIVE) is ACTIVE
    assert controller.broker(1).is_active


def test_an_incarnation_id_that_is_lower_is_an_old_incarnations_and_counts_for_nothing() -> None:
    """ "If the broker's incarnation ID is lower than what the controller thinks it should be, the controller will
    assume that the broker is an old incarnation, and return an error code." """
    controller = three()
    epoch, end = controller.broker(1).epoch, len(controller.records)
    controller.wait(SESSION_S - 1)
    assert refusal(lambda: controller.say(1, ACTIVE, epoch - 1)) is ErrorCode.STALE_BROKER_EPOCH
    assert refusal(lambda: controller.say(1, STOPPING, -1)) is ErrorCode.STALE_BROKER_EPOCH
    controller.wait(2)
    assert len(controller.records) == end
    assert controller.state.heartbeats.next_expired(controller.now_us) == 1


def test_an_incarnation_id_that_is_higher_is_believed_and_the_lower_one_is_not_any_more() -> None:
    """ "If the broker's incarnation ID is higher, the controller will update the target incarnation ID in memory, and
    treat the broker as valid." Its predecessor's failure comes first."""
    controller = three()
    epoch = controller.broker(1).epoch
    assert controller.say(1, ACTIVE, epoch + 1000) is INACTIVE
    assert (controller.partition().leader, controller.partition().isr) == (2, (2, 3))
    assert controller.say(1, ACTIVE, epoch + 1000) is ACTIVE
    assert refusal(lambda: controller.say(1, ACTIVE, epoch)) is ErrorCode.STALE_BROKER_EPOCH
    assert controller.broker(1).is_active
    assert controller.partition().isr == (2, 3), "nobody has put it there"


def test_what_is_believed_is_only_remembered() -> None:
    """ "...will update the target incarnation ID in memory..." """
    controller = three()
    epoch = controller.broker(1).epoch
    controller.say(1, ACTIVE, epoch + 1000)
    controller.fail_over()
    assert controller.say(1, ACTIVE, epoch) is ACTIVE
    assert controller.say(1, ACTIVE, epoch + 1000) is INACTIVE
    controller.wait(SESSION_S + 1)
    assert controller.join(1, incarnation=2) < epoch + 1000
    assert controller.say(1, ACTIVE) is ACTIVE


def test_a_later_incarnation_of_a_broker_that_was_stopping_is_not() -> None:
    controller = three()
    epoch = controller.broker(1).epoch
    assert controller.say(1, STOPPING) is STOPPING
    assert controller.say(1, ACTIVE, epoch + 1) is INACTIVE
    assert controller.say(1, ACTIVE, epoch + 1) is ACTIVE
    assert controller.broker(1).is_active


def test_who_targets_stopping_is_stopping_and_its_leaders_move() -> None:
    """ "If the broker is targetting "stopping" state, then it will be transitioned into that state." "During
    controlled shutdown, we gradually migrate leaders away from the broker." """
    controller = three()
    assert controller.say(1, STOPPING) is STOPPING
    assert not controller.broker(1).fenced
    assert controller.partition().leader == 2
    assert controller.say(1, STOPPING) is STOPPING, "the others do not know yet"
    controller.say(2, ACTIVE)
    controller.say(3, ACTIVE)
    assert controller.say(1, STOPPING) is INACTIVE
    assert controller.broker(1).fenced


def test_who_leads_nothing_is_stopping_as_well_before_it_may_go() -> None:
    controller = OlderController()
    controller.activate(1)
    assert controller.say(1, STOPPING) is STOPPING
    assert not controller.broker(1).fenced
    assert controller.say(1, STOPPING) is INACTIVE


def test_what_nobody_else_can_lead_is_led_by_nobody_before_it_goes() -> None:
    controller = OlderController()
    controller.activate(1)
    controller.topic([1])
    assert controller.say(1, STOPPING) is STOPPING
    assert (controller.partition().leader, controller.partition().isr) == (-1, (1,))
    assert controller.say(1, STOPPING) is INACTIVE


def test_no_record_takes_a_shutdown_back() -> None:
    controller = three()
    controller.say(1, STOPPING)
    assert controller.say(1, ACTIVE) is STOPPING


def test_who_targets_inactive_is_inactive() -> None:
    controller = three()
    assert controller.say(1, INACTIVE) is INACTIVE
    assert controller.broker(1).fenced
    assert controller.partition().leader == 2


@pytest.mark.parametrize("broker_id", [-1, -(2**31)])
def test_a_negative_broker_id_is_an_invalid_request(broker_id: int) -> None:
    """ "The response will contain an error code of INVALID_REQUEST_EXCEPTION if the request ... had an invalid negative
    broker ID." """
    controller = three()
    assert refusal(lambda: controller.say(broker_id, ACTIVE, 1)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("target", [BrokerState.INITIAL, 4, -1])
def test_a_target_that_is_none_is_an_invalid_request(target: int) -> None:
    controller = three()
    end = len(controller.records)
    assert refusal(lambda: controller.say(1, target)) is ErrorCode.INVALID_REQUEST
    assert len(controller.records) == end


def test_a_broker_that_nobody_knows_has_no_incarnation() -> None:
    assert refusal(lambda: three().say(9, ACTIVE, 5)) is ErrorCode.STALE_BROKER_EPOCH


# --- legacy registrations ---------------------------------------------------------------------------------------------


def unfence_legacy(controller: OlderController) -> None:
    """Unfence them as the active controller does after each registration."""
    while records := brokers.unfence_exempt(controller.state):
        controller.write(*records)


def test_the_inter_broker_protocol_says_with_which_version_a_broker_registers() -> None:
    """ "Brokers that want to use the new behavior will signify their readiness by registering themselves ... with a
    version of 5 instead of 4." """
    assert (broker_info_feature(OLD).level_max, broker_info_feature(NEW).level_max) == (4, 5)
    controller = OlderController()
    controller.join(1, protocol=OLD)
    controller.join(2)
    controller.start(3)
    assert [broker_info_version(controller.broker(each)) for each in (1, 2, 3)] == [4, 5, None]
    assert [is_legacy(controller.broker(each)) for each in (1, 2, 3)] == [True, False, False]


def test_a_legacy_broker_is_always_active_though_it_never_beats() -> None:
    """ "Legacy brokers are always considered to be active, even if they don't send heartbeats." """
    controller = OlderController()
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    assert controller.broker(1).is_active
    controller.topic([1])
    controller.wait(100 * SESSION_S)
    assert controller.fence_expired() == []
    controller.fail_over()
    controller.wait(100 * SESSION_S)
    assert controller.fence_expired() == []
    assert controller.partition().leader == 1


def test_a_beat_of_another_dialect_does_not_give_a_legacy_broker_a_session() -> None:
    controller = OlderController()
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    controller.beat(1)
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() == []


def test_a_legacy_broker_that_never_says_what_it_has_read_keeps_nobody_from_going() -> None:
    controller = OlderController()
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    controller.activate(2)
    controller.start(3)
    controller.topic([2, 1], [3, 1])
    assert controller.say(2, STOPPING) is STOPPING
    controller.beat(3)
    assert controller.say(2, STOPPING) is INACTIVE
    assert not controller.beat(3, want_shut_down=True).should_shut_down
    assert controller.beat(3, want_shut_down=True).should_shut_down


def test_a_legacy_broker_that_beats_or_proposes_isrs_contradicts_itself() -> None:
    """ "If the IBP is too low, brokers will not fence themselves or send heartbeat requests." """
    controller = OlderController()
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    assert refusal(lambda: controller.say(1, ACTIVE)) is ErrorCode.INVALID_REQUEST
    assert refusal(lambda: controller.propose(("t", 0, 0, [1]))) is ErrorCode.INVALID_REQUEST


def test_after_the_second_roll_it_has_to_beat() -> None:
    """ "During the second roll, nodes are taken down and restarted with the latest IBP configured." """
    controller = OlderController()
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    controller.join(1, incarnation=2)
    unfence_legacy(controller)
    assert controller.broker(1).fenced
    assert controller.say(1, ACTIVE) is ACTIVE
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() == [1]


def test_where_older_brokers_are_not_heard_a_legacy_registration_is_as_any_other() -> None:
    controller = OlderController(older_brokers=False)
    controller.join(1, protocol=OLD)
    unfence_legacy(controller)
    assert controller.broker(1).fenced
    controller.beat(1)
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() == [1]
