"""A broker's life: it registers, is unfenced when it has read its registration, is fenced when it is silent, goes.

KIP-631; KIP-343 "Controller-Side Heartbeat Timeout"; KIP-380 (broker epochs, K55); K50, K53, K56; C4, C7, C8.
"""

from typing import Any

import pytest

from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest, ControllerRegistrationRequest
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from tests.controller.rig import SESSION_S, Controller, refusal, uuid


def test_a_broker_registers_fenced_and_its_epoch_is_the_offset_of_its_record() -> None:
    controller = Controller()
    offset = len(controller.records)
    assert controller.register(1) == offset
    assert (controller.broker(1).epoch, controller.broker(1).fenced) == (offset, True)


def test_a_broker_is_unfenced_only_when_it_has_read_its_own_registration() -> None:
    controller = Controller()
    epoch = controller.register(1)
    early = controller.beat(1, current_metadata_offset=epoch - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    kept = controller.beat(1, current_metadata_offset=epoch, want_fence=True)
    assert (kept.is_caught_up, kept.is_fenced) == (True, True)
    assert controller.broker(1).fenced
    in_it = controller.beat(1, current_metadata_offset=epoch)
    assert (in_it.is_caught_up, in_it.is_fenced, in_it.should_shut_down) == (True, False, False)
    assert controller.broker(1).is_active


def test_a_broker_that_is_silent_is_fenced_after_its_session() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.wait(SESSION_S - 1)
    controller.beat(2)
    assert controller.fence_expired() == []
    controller.wait(1.001)
    assert controller.fence_expired() == [1]
    assert (controller.broker(1).fenced, controller.broker(2).fenced) == (True, False)
    assert controller.fence_expired() == [], "once"
    assert not controller.beat(1).is_fenced, "it is back"


def test_many_sessions_end_at_once_and_each_is_decided_on_what_follows_from_the_former() -> None:
    """K50: KAFKA-13173."""
    controller = Controller()
    controller.start(1, 2, 3)
    controller.topic([1, 2, 3], [2, 3, 1])
    controller.wait(SESSION_S + 1)
    controller.beat(3)
    assert controller.fence_expired() == [1, 2]
    for number in range(2):
        partition = controller.partition(number)
        assert (partition.leader, partition.isr) == (3, (3,))


def test_the_last_one_in_sync_stays_there_without_leading() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() == [1, 2]
    assert (controller.partition().leader, controller.partition().isr) == (-1, (2,))
    controller.beat(1)
    assert controller.partition().leader == -1, "it was not in sync"
    controller.beat(2)
    assert (controller.partition().leader, controller.partition().isr) == (2, (2,))


def test_after_a_fail_over_a_broker_must_have_read_its_registration_still() -> None:
    """C8: its epoch is the offset of the first record that came with it, which took its former self out of an ISR."""
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.wait(SESSION_S + 1)
    controller.beat(1)
    epoch = controller.register(2, incarnation=2)
    assert controller.records[epoch + 1] == controller.records[-1], "the registration is the second record"
    controller.fail_over()
    assert controller.beat(2, current_metadata_offset=epoch).is_fenced
    assert not controller.beat(2, current_metadata_offset=epoch + 1).is_fenced


def test_after_a_fail_over_whoever_was_alive_has_a_whole_session() -> None:
    """C8: no fencing storm."""
    controller = Controller()
    controller.start(1, 2)
    controller.wait(SESSION_S - 1)
    controller.fail_over()
    controller.wait(SESSION_S - 1)
    assert controller.fence_expired() == []
    controller.wait(1.001)
    assert controller.fence_expired() == [1, 2]


@pytest.mark.parametrize("wish", ["want_fence", "want_shut_down"])
def test_after_a_fail_over_who_was_fenced_at_its_wish_keeps_its_id_for_a_session(wish: str) -> None:
    """It may not have heard that it is fenced, and acts as long as its lease lasts."""
    controller = Controller()
    controller.start(1)
    assert controller.beat(1, **{wish: True}).is_fenced
    controller.fail_over()
    controller.wait(SESSION_S - 1)
    assert refusal(lambda: controller.register(1, incarnation=2)) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert controller.fence_expired() == []
    controller.wait(1.001)
    assert controller.register(1, incarnation=2) > 0


def test_a_successor_that_knows_of_a_clean_end_need_not_wait_for_it() -> None:
    """Kafka's brokers say under which epoch they shut down, and in good order."""
    controller = Controller()
    controller.start(1)
    epoch = controller.broker(1).epoch
    controller.beat(1, want_shut_down=True)
    controller.fail_over()
    unclean = refusal(lambda: controller.register(1, incarnation=2, previous_broker_epoch=epoch - 1))
    assert unclean is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert controller.register(1, incarnation=2, previous_broker_epoch=epoch) > epoch


def test_a_pause_of_the_controller_is_no_part_of_that_session_either() -> None:
    controller = Controller()
    controller.start(1)
    controller.beat(1, want_fence=True)
    controller.fail_over()
    controller.wait(SESSION_S - 1)
    controller.state.heartbeats.paused((SESSION_S - 1) * 1_000_000, controller.now_us)
    controller.wait(SESSION_S - 1)
    assert refusal(lambda: controller.register(1, incarnation=2)) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_heartbeat_counts_from_when_it_arrived() -> None:
    """K53: KAFKA-15019. The controller is behind: the heartbeat waits in its queue, and the session goes on."""
    controller = Controller()
    controller.start(1)
    controller.wait(SESSION_S - 1)
    controller.state.heartbeats.touch(1, controller.broker(1).epoch, controller.now_us)
    controller.wait(SESSION_S - 1)
    assert controller.fence_expired() == []


def test_another_process_cannot_take_the_id_of_one_that_is_alive() -> None:
    controller = Controller()
    controller.start(1)
    assert refusal(lambda: controller.register(1, incarnation=2)) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    controller.wait(SESSION_S + 1)
    before = controller.broker(1).epoch
    assert controller.register(1, incarnation=2) > before


def test_the_same_process_may_register_again_and_stays_what_it_is() -> None:
    """K55: KAFKA-16952. Its epoch does not change, nor is it fenced."""
    controller = Controller()
    controller.start(1)
    epoch = controller.broker(1).epoch
    assert controller.register(1, rack="new") == epoch
    assert (controller.broker(1).epoch, controller.broker(1).fenced, controller.broker(1).rack) == (epoch, False, "new")
    assert not controller.beat(1, current_metadata_offset=0).is_fenced, "it has been in it all the time"


def test_a_new_incarnation_begins_without_what_the_former_one_was_in_sync_with() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.wait(SESSION_S + 1)
    controller.beat(2)
    first = len(controller.records)
    epoch = controller.register(1, incarnation=2)
    assert epoch == first
    assert isinstance(controller.records[-1], RegisterBrokerRecord), "the registration comes last"
    assert (controller.partition().leader, controller.partition().isr) == (2, (2,))
    assert controller.broker(1).fenced


@pytest.mark.parametrize("silent", [False, True])
def test_a_stale_epoch_is_refused_and_writes_nothing(silent: bool) -> None:
    """C6; KIP-380."""
    controller = Controller()
    controller.start(1)
    stale = controller.broker(1).epoch
    controller.wait(SESSION_S + 1)
    controller.register(1, incarnation=2)
    count = len(controller.records)
    assert refusal(lambda: controller.beat(1, epoch=stale)) is ErrorCode.STALE_BROKER_EPOCH
    assert refusal(lambda: controller.beat(1, epoch=stale + 1000)) is ErrorCode.STALE_BROKER_EPOCH
    assert refusal(lambda: controller.beat(9, epoch=1)) is ErrorCode.STALE_BROKER_EPOCH
    assert len(controller.records) == count
    if silent:
        assert controller.broker(1).fenced


def test_a_wish_to_go_of_a_former_incarnation_moves_no_leader() -> None:
    """KIP-380: a controlled shutdown that was sent before the broker was restarted."""
    controller = Controller()
    controller.start(1, 2)
    stale = controller.broker(1).epoch
    controller.wait(SESSION_S + 1)
    controller.beat(2)
    controller.start(1, incarnation=2)
    controller.topic([1, 2])
    count = len(controller.records)
    code = refusal(lambda: controller.beat(1, epoch=stale, want_shut_down=True))
    assert code is ErrorCode.STALE_BROKER_EPOCH
    assert code == 77
    assert len(controller.records) == count
    assert (controller.partition().leader, controller.broker(1).is_active) == (1, True)


def listener(name: str = "PLAINTEXT", **fields: Any) -> BrokerRegistrationRequest.Listener:
    return BrokerRegistrationRequest.Listener(name=name, host="h", port=9092, **fields)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),  # K56: KAFKA-13528
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(7), uuid(7)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [type(uuid(7))(bytes(15) + b"\x01")]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(502)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [listener(security_protocol=4)]}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"listeners": [listener(), listener(name="")]}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_registration_that_cannot_be_is_refused_and_writes_nothing(fields: dict[str, Any], code: ErrorCode) -> None:
    controller = Controller()
    controller.register(2)
    count = len(controller.records)
    assert refusal(lambda: controller.register(1, **fields)) is code
    assert len(controller.records) == count


@pytest.mark.parametrize(
    "ranges",
    [
        {"metadata.version": (7, 29)},
        {"kraft.version": (0, 0)},
        {"kraft.version": None},
        {"eligible.leader.replicas.version": None},
        {"eligible.leader.replicas.version": (0, 0)},
    ],
)
def test_a_broker_must_support_what_is_finalized(ranges: dict[str, tuple[int, int] | None]) -> None:
    controller = Controller(elr=True)
    request = controller.registration(1)
    for feature in list(request.features):
        if feature.name in ranges:
            given = ranges[feature.name]
            if given is None:
                request.features.remove(feature)
            else:
                feature.min_supported_version, feature.max_supported_version = given
    code = refusal(lambda: brokers.register(controller.state, request, 4, controller.now_us))
    assert code is ErrorCode.UNSUPPORTED_VERSION


def test_below_the_level_of_directories_none_are_kept() -> None:
    controller = Controller(level=16)
    controller.register(1, log_dirs=[])
    assert controller.broker(1).directories == ()


def test_a_broker_is_unregistered() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.unregister(1)
    assert sorted(controller.state.image.brokers) == [2]
    assert (controller.partition().leader, controller.partition().isr) == (2, (2,))
    assert refusal(lambda: controller.unregister(1)) is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refusal(lambda: controller.beat(1, epoch=0)) is ErrorCode.STALE_BROKER_EPOCH


# --- going ------------------------------------------------------------------------------------------------------------


def test_a_broker_that_leads_nothing_may_go_at_once() -> None:
    controller = Controller()
    controller.start(1)
    answer = controller.beat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert controller.broker(1).fenced


def test_a_broker_that_leads_goes_when_its_leaders_have_moved_and_everybody_knows() -> None:
    """001: leaders are moved away first, then the controller lets it go."""
    controller = Controller()
    controller.start(1, 2, 3)
    controller.topic([1, 2], [1, 3])
    controller.beat_all()
    answer = controller.beat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (False, False)
    assert controller.broker(1).in_controlled_shutdown
    assert [controller.partition(number).leader for number in range(2)] == [2, 3]
    assert [controller.partition(number).isr for number in range(2)] == [(2,), (3,)]
    moved = len(controller.records) - 1
    controller.beat(2, current_metadata_offset=moved)
    controller.beat(3, current_metadata_offset=moved - 1)
    assert not controller.beat(1, want_shut_down=True).should_shut_down, "broker 3 has not read who leads"
    controller.beat(3, current_metadata_offset=moved)
    assert controller.beat(1, want_shut_down=True).should_shut_down
    assert controller.broker(1).fenced


def test_a_broker_that_was_leaving_leads_nothing_when_it_is_unfenced_again() -> None:
    """C1: no record takes its controlled shutdown back, so another incarnation of it may lead first."""
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1])
    controller.beat(1, want_shut_down=True)
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() != []
    assert not controller.beat(1).is_fenced
    assert (controller.partition().leader, controller.broker(1).in_controlled_shutdown) == (-1, True)
    controller.beat(1, want_fence=True)
    controller.wait(SESSION_S + 1)
    controller.start(1, incarnation=2)
    assert controller.partition().leader == 1


def test_a_broker_whose_leaders_cannot_move_stays_until_they_can() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1])
    controller.beat(1, want_shut_down=True)
    assert controller.partition().isr == (1,)
    assert controller.partition().leader == -1, "nobody leads it; nor may who is leaving"
    controller.beat(2, current_metadata_offset=len(controller.records))
    assert controller.beat(1, want_shut_down=True).should_shut_down


def test_a_new_leader_asks_again_and_the_broker_goes_all_the_same() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.beat(1, want_shut_down=True)
    controller.fail_over()
    assert controller.beat(1, want_shut_down=True).should_shut_down
    assert controller.broker(1).fenced


def test_a_broker_may_ask_to_be_fenced_or_to_go_at_once() -> None:
    controller = Controller()
    controller.start(1, 2)
    assert controller.beat(1, want_fence=True).is_fenced
    assert controller.broker(1).fenced
    assert controller.beat(2, want_fence=True, want_shut_down=True).should_shut_down
    again = controller.beat(2, want_fence=True, want_shut_down=True)
    assert again.should_shut_down
    assert controller.written == [], "fenced already"


# --- directories ------------------------------------------------------------------------------------------------------


def test_a_failed_directory_takes_its_replicas_out_of_sync() -> None:
    """KIP-858."""
    controller = Controller()
    controller.register(1, log_dirs=[uuid(501), uuid(601)])
    controller.beat(1)
    controller.start(2)
    controller.topic([1, 2], [2, 1])
    controller.beat(1, offline_log_dirs=[uuid(501)])
    assert controller.broker(1).directories == (uuid(601),)
    assert [controller.partition(number).isr for number in range(2)] == [(2,), (2,)]
    controller.beat(1, offline_log_dirs=[uuid(501)])
    assert controller.written == [], "that is known"


def test_cordoned_directories_are_noted_when_they_change() -> None:
    """KIP-1066."""
    controller = Controller()
    controller.start(1)
    controller.beat(1, cordoned_log_dirs=[])
    assert controller.broker(1).cordoned_directories == ()
    assert [type(each) for each in controller.written] == [BrokerRegistrationChangeRecord]
    controller.beat(1, cordoned_log_dirs=[])
    assert controller.written == []
    old = Controller(level=29)
    old.start(1)
    old.beat(1, cordoned_log_dirs=[])
    assert old.written == []


def test_more_directories_than_a_broker_has_are_refused() -> None:
    """Each is looked for among all of them, by every controller, for as long as the registration is there."""
    many = [uuid(1_000 + number) for number in range(brokers.DIRECTORIES_MAX + 1)]
    controller = Controller()
    assert refusal(lambda: controller.register(1, log_dirs=many)) is ErrorCode.INVALID_REGISTRATION
    controller.register(1, log_dirs=many[:-1])
    assert refusal(lambda: controller.beat(1, cordoned_log_dirs=many)) is ErrorCode.INVALID_REQUEST
    controller.beat(1, cordoned_log_dirs=many[:-1])
    assert not controller.broker(1).has_uncordoned_directories
    assert refusal(lambda: controller.register(2, log_dirs=many[-2:])) is ErrorCode.INVALID_REGISTRATION


def test_nobody_registers_as_the_one_that_stands_for_no_leader() -> None:
    """C1: what it led would be led by nobody."""
    controller = Controller()
    assert refusal(lambda: controller.register(-1)) is ErrorCode.INVALID_REGISTRATION
    assert dict(controller.state.image.brokers) == {}


def test_a_controller_with_a_listener_that_no_kafka_could_read_is_refused() -> None:
    controller = Controller()
    spoken = ControllerRegistrationRequest.Listener(name="CONTROLLER", host="h", port=9093, security_protocol=-1)
    request = ControllerRegistrationRequest(controller_id=3, incarnation_id=uuid(3), listeners=[spoken])
    refused = refusal(lambda: brokers.register_controller(controller.state, request))
    assert refused is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_controller_registers() -> None:
    controller = Controller()
    request = ControllerRegistrationRequest(controller_id=3, incarnation_id=uuid(3))
    controller.decide(brokers.register_controller(controller.state, request))
    assert controller.state.image.controllers[3].incarnation_id == uuid(3)
    old = Controller(level=14)
    assert refusal(lambda: brokers.register_controller(old.state, request)) is ErrorCode.UNSUPPORTED_VERSION
