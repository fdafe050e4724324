"""A broker's life beside its controllers, as its core has it: KIP-343, KIP-631, Kafka's BrokerLifecycleManager."""

import pytest

from fastquorum.broker.states import TABLE, State, StateCause, next_state
from fastquorum.errors import ClosedError, ConfigError, ImageFailed, RegistrationRefused
from fastquorum.lease import LeasePromise
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode
from tests.broker.rig import BEAT, CLUSTER_ID, LEASE, MS, SECOND, Life, MemberConfig, online
from tests.quality.diagrams import mermaid

# --- registering ------------------------------------------------------------------------------------------------------


def test_it_registers_with_all_that_it_is() -> None:
    registration = Life().start().registration
    assert (registration.broker_id, registration.cluster_id, registration.rack) == (7, CLUSTER_ID, "r1")
    assert (registration.incarnation_id, registration.log_dirs) == (Uuid(b"i" * 16), [Uuid(b"d" * 16)])
    assert [(each.name, each.host, each.port) for each in registration.listeners] == [("PLAINTEXT", "b7", 9092)]
    assert "metadata.version" in [each.name for each in registration.features]
    assert registration.previous_broker_epoch == -1


def test_registered_it_beats_at_once_and_is_fenced() -> None:
    life = Life().start().register(40)
    assert (life.state, life.core.epoch, life.is_active) == (State.FENCED, 40, False)
    assert (life.heartbeat.broker_epoch, life.heartbeat.current_metadata_offset) == (40, -1)
    assert not life.heartbeat.want_fence
    assert not life.heartbeat.want_shut_down


def test_it_beats_at_once_when_it_has_read_its_registration_and_may_act_when_it_has_read_its_unfencing() -> None:
    life = Life().start().register(40).beat(fenced=True)
    assert life.pending is None
    life.read(fenced=True, next_offset=41)
    assert life.heartbeat.current_metadata_offset == 40
    life.beat()
    assert not life.is_active, "unfenced, and what it knows of its partitions is from before"
    life.read(fenced=False, fresh=False)
    assert not life.is_active
    life.read(fenced=False)
    assert life.is_active
    assert life.states == [State.REGISTERING, State.FENCED, State.ONLINE]


def test_a_registration_that_is_not_answered_is_made_again_by_the_same_incarnation() -> None:
    life = Life().start()
    first = life.registration
    life.wait(2 * SECOND + 50 * MS)
    assert life.registration is not first
    assert life.registration == first


def test_it_waits_longer_each_time_and_never_longer_than_a_heartbeat_interval() -> None:
    life = Life().start()
    waits = []
    for _ in range(9):
        life.lose()
        waits.append(life.core.deadline_us - life.now)
        life.wait(waits[-1])
    assert waits == [each * 50 * MS for each in (1, 2, 4, 8, 16, 32)] + [BEAT] * 3


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_may_pass_is_waited_for(code: ErrorCode) -> None:
    life = Life().start().refuse(code)
    assert (life.state, life.pending) == (State.REGISTERING, None)
    assert life.core.reason
    life.wait(50 * MS).register(41)
    assert life.core.epoch == 41


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
def test_what_never_passes_ends_it_with_kafkas_name_of_it(code: ErrorCode) -> None:
    life = Life().start().refuse(code)
    assert life.state is State.GONE
    assert isinstance(life.core.error, RegistrationRefused)
    assert (life.core.error.broker_id, life.core.error.error) == (7, code.name)
    assert life.core.deadline_us == -1


def test_an_epoch_never_falls() -> None:
    life = online(epoch=40).wait(BEAT).refuse(ErrorCode.STALE_BROKER_EPOCH).wait(50 * MS).register(39)
    assert (life.state, life.core.epoch) == (State.REGISTERING, 40)


# --- the lease --------------------------------------------------------------------------------------------------------


def test_it_beats_at_an_interval_counted_from_sending() -> None:
    life = online()
    sent = life.now
    for _ in range(3):
        life.wait(BEAT)
        assert life.pending is not None
        sent += BEAT
        life.sleep(300 * MS).beat()
        assert life.core.deadline_us == sent + BEAT
        life.now = sent  # the next wait begins there


def test_it_may_act_for_so_long_after_it_sent_what_was_acknowledged_and_no_longer() -> None:
    life = online().wait(BEAT)
    sent = life.now
    life.sleep(900 * MS).beat()
    assert life.core.is_active(sent + LEASE - 1)
    assert not life.core.is_active(sent + LEASE)


def test_out_of_contact_it_fences_itself_and_goes_on_asking() -> None:
    life = online().wait(LEASE)
    assert (life.state, life.is_active) == (State.FENCED, False)
    assert life.states[-1] is State.FENCED
    assert life.pending is not None


def test_it_has_given_up_before_any_controller_lets_somebody_else_in() -> None:
    config = MemberConfig()
    promise = LeasePromise.of(config.session_timeout_us)
    assert promise.holds
    assert config.lease_us == promise.lease_us
    assert config.lease_us + promise.confirmed_us < config.session_timeout_us


def test_a_program_that_was_stopped_knows_before_anything_else_is_done() -> None:
    life = online().wait(BEAT).sleep(LEASE)
    assert life.state is State.ONLINE, "nobody has turned the wheel yet"
    assert not life.is_active


def test_an_answer_that_waited_while_it_was_stopped_does_not_let_it_act() -> None:
    life = online().wait(BEAT).sleep(LEASE)
    life.beat()
    assert (life.state, life.is_active) == (State.FENCED, False)
    life.read()
    assert not life.is_active


def test_back_in_contact_it_acts_under_the_same_epoch_once_it_has_read_what_happened() -> None:
    life = online(epoch=40).wait(LEASE + 3 * SECOND)
    life.beat()
    assert not life.is_active
    life.read(epoch=40)
    assert (life.state, life.is_active, life.core.epoch) == (State.ONLINE, True, 40)


def test_news_of_the_past_do_not_count_as_having_read_what_happened() -> None:
    life = online().wait(LEASE + 3 * SECOND).beat().read(fresh=False)
    assert not life.is_active


def test_an_answer_to_what_was_given_up_is_none() -> None:
    life = online().wait(BEAT)
    late = life.take()
    life.wait(2 * SECOND + 50 * MS)
    assert life.pending is not None
    before = life.core.lease_until_us
    life.pending, again = late, life.pending
    life.beat()
    assert life.core.lease_until_us == before
    life.pending = again
    life.beat()
    assert life.core.lease_until_us > before


def test_the_brokers_timeout_may_be_the_longer_one_as_kip_343_has_it() -> None:
    life = online(MemberConfig(session_timeout_us=8 * SECOND, heartbeat_timeout_us=12 * SECOND))
    assert life.core.is_active(life.now + 12 * SECOND - 1)
    assert not life.core.is_active(life.now + 12 * SECOND)


@pytest.mark.parametrize("lease_us", [6 * SECOND + 1, 7 * SECOND, 8 * SECOND])
def test_a_lease_that_the_session_does_not_cover_is_refused(lease_us: int) -> None:
    with pytest.raises(ConfigError, match=r"could act beside its successor.* give at most 6000000 us"):
        MemberConfig(session_timeout_us=8 * SECOND, heartbeat_timeout_us=lease_us)


@pytest.mark.parametrize("lease_us", [3 * SECOND, 6 * SECOND, 8 * SECOND + 1])
def test_a_shorter_one_keeps_the_promise_and_one_above_the_session_makes_none(lease_us: int) -> None:
    assert MemberConfig(session_timeout_us=8 * SECOND, heartbeat_timeout_us=lease_us).lease_us == lease_us


def test_it_cannot_beat_more_rarely_than_it_must() -> None:
    with pytest.raises(ConfigError, match="fenced between two heartbeats"):
        MemberConfig(session_timeout_us=2 * SECOND)


def test_read_too_late_what_was_granted_long_ago_is_to_be_granted_again() -> None:
    life = Life().start().register().read(fenced=True).beat()
    if life.pending is not None:
        life.beat()
    life.sleep(LEASE).read()
    assert State.ONLINE not in life.states
    life.beat().read()
    assert life.is_active


# --- fenced by others -------------------------------------------------------------------------------------------------


def test_fenced_by_an_answer_it_acts_no_more_until_it_is_unfenced() -> None:
    life = online().wait(BEAT).beat(fenced=True)
    assert (life.state, life.is_active) == (State.FENCED, False)
    life.wait(BEAT).beat().read()
    assert life.is_active


def test_fenced_by_the_metadata_it_acts_no_more_and_asks_at_once() -> None:
    life = online().wait(500 * MS).read(fenced=True)
    assert (life.state, life.is_active) == (State.FENCED, False)
    assert not life.heartbeat.want_fence


def test_not_ready_it_asks_to_be_kept_fenced() -> None:
    life = Life(is_ready=False).start().register().read(fenced=True)
    assert life.heartbeat.want_fence
    life.beat(fenced=True)
    life.ready()
    if life.heartbeat.want_fence:
        life.beat(fenced=True)
    assert not life.heartbeat.want_fence
    life.beat().read()
    assert life.is_active
    life.ready(False)
    assert life.heartbeat.want_fence
    life.beat(fenced=True)
    assert not life.is_active


def test_with_an_epoch_that_stands_no_more_it_registers_again_as_the_same_incarnation() -> None:
    life = online(epoch=40).wait(BEAT).refuse(ErrorCode.STALE_BROKER_EPOCH)
    assert (life.state, life.is_active) == (State.REGISTERING, False)
    life.wait(50 * MS)
    assert life.registration.incarnation_id == Uuid(b"i" * 16)
    life.register(60)
    assert life.core.epoch == 60
    life.read(60, fenced=True).beat()
    if life.pending is not None:
        life.beat()
    life.read(60)
    assert life.is_active


def test_the_metadata_naming_a_later_incarnation_fences_it_at_once() -> None:
    life = online(epoch=40).read(epoch=55, next_offset=56)
    assert (life.state, life.is_active) == (State.REGISTERING, False)


def test_unregistered_by_somebody_it_registers_again() -> None:
    life = online(epoch=40).read(epoch=-1, next_offset=56)
    assert (life.state, life.is_active) == (State.REGISTERING, False)


def test_metadata_from_before_its_registration_says_nothing() -> None:
    life = Life().start().register(40).read(epoch=12, next_offset=30)
    assert life.state is State.FENCED
    life.read(epoch=-1, next_offset=35)
    assert life.state is State.FENCED


def test_a_controller_that_knows_no_epoch_it_gave_out_is_not_asked_without_end() -> None:
    life = online()
    count = 0
    until = life.now + 10 * SECOND
    while life.now < until:
        life.wait(max(life.core.deadline_us - life.now, 0))
        while life.pending is not None:
            count += 1
            assert count < 60
            life.register(40) if life.state is State.REGISTERING else life.refuse(ErrorCode.STALE_BROKER_EPOCH)


def test_an_answer_that_is_none_of_its_questions_is_as_good_as_none() -> None:
    life = online().wait(BEAT)
    life.answer(Life().start().registration)
    assert life.core.deadline_us == life.now + 50 * MS


# --- going ------------------------------------------------------------------------------------------------------------


def test_it_asks_to_go_at_once_and_acts_until_it_is_let_go() -> None:
    life = online().wait(500 * MS).stop()
    assert (life.state, life.is_active) == (State.STOPPING, True)
    assert life.heartbeat.want_shut_down
    life.beat()
    assert life.is_active, "its leads have not moved away yet"
    life.wait(50 * MS)
    assert life.heartbeat.want_shut_down
    life.beat(go=True)
    assert (life.state, life.is_active, life.core.error) == (State.GONE, False, None)
    assert life.core.deadline_us == -1


def test_after_the_first_look_it_asks_at_its_interval() -> None:
    life = online().stop().beat().wait(50 * MS).beat()
    assert life.core.deadline_us == min(life.now + BEAT, life.core.deadline_us)
    assert life.pending is None


def test_a_heartbeat_under_way_is_waited_for_and_then_it_asks_to_go() -> None:
    life = online().wait(BEAT).stop()
    assert not life.heartbeat.want_shut_down
    life.beat()
    assert life.heartbeat.want_shut_down


def test_not_let_go_in_time_it_goes_by_itself() -> None:
    life = online().stop(5 * SECOND)
    life.beat().wait(5 * SECOND)
    assert life.state is State.GONE
    assert life.states[-2:] == [State.STOPPING, State.GONE]


def test_out_of_contact_while_it_goes_it_does_not_act() -> None:
    life = online().stop(60 * SECOND).wait(LEASE)
    assert (life.state, life.is_active) == (State.STOPPING, False)


def test_fenced_while_it_goes_it_does_not_act() -> None:
    assert not online().stop().beat(fenced=True).is_active
    assert not online().stop().read(fenced=True).is_active


def test_replaced_while_it_goes_it_is_gone() -> None:
    assert online().stop().refuse(ErrorCode.STALE_BROKER_EPOCH).state is State.GONE


@pytest.mark.parametrize("life", [Life(), Life().start(), Life().start().register()])
def test_whom_nobody_counts_on_goes_at_once(life: Life) -> None:
    assert life.stop().state is State.GONE


def test_a_second_wish_to_go_may_only_shorten_the_first() -> None:
    life = online().stop(5 * SECOND).stop(9 * SECOND)
    assert life.core._stop_by_us == life.now + 5 * SECOND
    life.stop(1 * SECOND)
    life.wait(1 * SECOND)
    assert life.state is State.GONE


def test_what_breaks_ends_it_with_the_reason() -> None:
    error = ImageFailed("no")
    life = online().fail(error)
    assert (life.state, life.core.error, life.is_active) == (State.GONE, error, False)
    life.fail(ClosedError("later"))
    assert life.core.error is error


# --- the table --------------------------------------------------------------------------------------------------------


def test_gone_is_the_end_and_everything_leads_there() -> None:
    assert not [state for state, _ in TABLE if state is State.GONE]
    assert {
        state for (state, cause) in TABLE if cause is StateCause.STOP_REQUESTED or cause is StateCause.FAILED
    } == set(State) - {State.GONE}
    lines = mermaid(TABLE, first=State.OFFLINE, last=State.GONE).splitlines()
    assert lines[-1] == "    gone --> [*]"
    assert len(lines) > 8


def test_what_cannot_be_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="gone"):
        next_state(State.GONE, StateCause.ADMITTED)
