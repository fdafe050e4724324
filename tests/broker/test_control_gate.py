"""KIP-380 at the broker: which control requests it acts on. Each test names the sentence that it shows."""

import pytest

from fastquorum.broker.control_gate import WAITING_MAX, Act, ControlGate, Effect, Refuse, Request
from fastquorum.wire import API, decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

KINDS = [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]
EPOCH = 40


def lead(broker_epoch: int, controller_epoch: int = 1) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(controller_epoch=controller_epoch, broker_epoch=broker_epoch)


def stop(broker_epoch: int) -> StopReplicaRequest:
    return StopReplicaRequest(controller_epoch=1, broker_epoch=broker_epoch, delete_partitions=True)


def gate(epoch: int = EPOCH) -> ControlGate:
    found = ControlGate()
    assert found.registered(epoch) == []
    return found


def code(effects: list[Effect]) -> ErrorCode:
    """Return the code of the one refusal, which can be encoded."""
    (refused,) = effects
    assert isinstance(refused, Refuse)
    wire = refused.response.__wire__
    raw = encode(refused.response, wire.versions.first)
    assert decode(API[wire.api_key].response, wire.versions.first, raw) == refused.response
    return ErrorCode(refused.response.error_code)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epoch", [EPOCH - 1, -1])
def test_what_is_meant_for_an_earlier_generation_is_refused(kind: type[Request], epoch: int) -> None:
    """ "When a broker sees a LeaderAndIsrRequest/UpdateMetadataRequest/StopReplicaRequest with outdated broker epoch,
    it will respond back with STALE_BROKER_EPOCH error." """
    request = kind(controller_epoch=1, broker_epoch=epoch)
    assert code(gate().offer(1, request)) is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_meant_for_this_one_is_acted_upon(kind: type[Request]) -> None:
    request = kind(controller_epoch=1, broker_epoch=EPOCH)
    assert gate().offer(1, request) == [Act(1, request, is_first=kind is LeaderAndIsrRequest)]


def test_what_is_meant_for_a_later_one_waits_until_the_broker_knows_that_it_is_that() -> None:
    """ "A broker ... will reject the requests with smaller broker generation than its current generation": a higher one
    is no reason to refuse."""
    broker, request = ControlGate(), lead(EPOCH)
    assert broker.offer(1, request) == []
    assert broker.registered(EPOCH) == [Act(1, request, is_first=True)]
    assert broker.registered(EPOCH) == [], "once"


def test_what_waited_for_a_generation_that_never_was_is_refused_then() -> None:
    broker = gate()
    assert broker.offer(1, stop(EPOCH + 1)) == []
    assert code(broker.registered(EPOCH + 2)) is ErrorCode.STALE_BROKER_EPOCH


def test_nothing_overtakes_what_waits() -> None:
    broker = gate()
    first, second = stop(EPOCH + 1), lead(EPOCH + 1)
    assert broker.offer(1, first) == []
    assert broker.offer(2, lead(EPOCH)) == []
    assert broker.offer(3, second) == []
    acted, refused, last = broker.registered(EPOCH + 1)
    assert (acted, last) == (Act(1, first), Act(3, second, is_first=True))
    assert code([refused]) is ErrorCode.STALE_BROKER_EPOCH


def test_not_more_waits_than_a_controller_sends() -> None:
    broker = ControlGate()
    for number in range(WAITING_MAX):
        assert broker.offer(number, lead(EPOCH)) == []
    assert code(broker.offer(WAITING_MAX, lead(EPOCH))) is ErrorCode.BROKER_NOT_AVAILABLE
    assert len(broker.registered(EPOCH)) == WAITING_MAX


def test_an_earlier_controller_is_refused() -> None:
    """ "Broker can only reject controller requests if they are sent from a stale controller with older controller
    epoch." """
    broker = gate()
    broker.offer(1, lead(EPOCH, controller_epoch=7))
    assert code(broker.offer(2, lead(EPOCH, controller_epoch=6))) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert isinstance(broker.offer(3, lead(EPOCH, controller_epoch=7))[0], Act)


def test_a_refused_request_says_nothing_about_who_the_controller_is() -> None:
    broker = gate()
    broker.offer(1, lead(EPOCH - 1, controller_epoch=9))
    assert isinstance(broker.offer(2, lead(EPOCH, controller_epoch=7))[0], Act)


def test_a_restarted_broker_does_not_stop_what_its_former_run_was_told_to_stop() -> None:
    """ "If a broker bounces during controlled shutdown, the bounced broker may accidentally process its earlier
    generation's StopReplicaRequest": not any more."""
    bounced = ControlGate()
    late = stop(EPOCH)
    assert bounced.offer(1, late) == [], "it does not know yet who it is"
    assert code(bounced.registered(EPOCH + 5)) is ErrorCode.STALE_BROKER_EPOCH
    assert code(bounced.offer(2, late)) is ErrorCode.STALE_BROKER_EPOCH


def test_a_restarted_broker_does_not_take_its_former_runs_leader_and_isr_for_its_first() -> None:
    """ "If the first LeaderAndIsrRequest that a broker processes is sent by the active controller before its startup,
    the broker will overwrite the high watermark checkpoint file": it is not processed."""
    bounced = gate(EPOCH + 5)
    assert code(bounced.offer(1, lead(EPOCH))) is ErrorCode.STALE_BROKER_EPOCH
    whole = lead(EPOCH + 5)
    assert bounced.offer(2, whole) == [Act(2, whole, is_first=True)]
    assert bounced.offer(3, whole) == [Act(3, whole, is_first=False)]


def test_registered_again_it_is_told_everything_anew() -> None:
    broker = gate()
    broker.offer(1, lead(EPOCH))
    broker.registered(EPOCH + 1)
    assert broker.offer(2, lead(EPOCH + 1)) == [Act(2, lead(EPOCH + 1), is_first=True)]


def test_a_generation_that_falls_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        gate().registered(EPOCH - 1)


def test_what_waits_on_a_connection_that_is_gone_is_forgotten_and_what_came_behind_it_goes_on() -> None:
    broker = gate()
    broker.offer(1, stop(EPOCH + 1))
    behind = lead(EPOCH)
    assert broker.offer(2, behind) == []
    assert broker.forget(1) == [Act(2, behind, is_first=True)]
    assert broker.registered(EPOCH + 1) == []
