"""Heartbeats that are answered where they arrive: which, and that both twins see them alike. KIP-631."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import UsageError
from fastquorum.kernels import Kernels
from fastquorum.kernels.beats import AnsweredBeat, SteadyBeat
from fastquorum.node.metadata.heartbeats import steady_beat
from fastquorum.types import Uuid
from fastquorum.wire import ApiKey, decode_response, encode_request, request_header
from fastquorum.wire.codec.codec import Codec
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse, UnregisterBrokerRequest

from .conftest import Twins

LEAD = 7
ANSWER = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
DIRECTORY = Uuid(b"d" * 16)


def wish(**fields: Any) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(**{"broker_id": 1, "broker_epoch": 30, "current_metadata_offset": 40} | fields)


def sent(request: BrokerHeartbeatRequest, version: int = 1, number: int = 5, client: str | None = "broker-1") -> bytes:
    return encode_request(request_header(request, version, number, client), request)


def kept(request: BrokerHeartbeatRequest, version: int = 1, offset_min: int = 30) -> SteadyBeat:
    return steady_beat(Codec(), request, version, offset_min, ANSWER)


def steady(kernels: Kernels, *beats: SteadyBeat) -> Any:
    made = kernels.SteadyBeats()
    made.begin(LEAD)
    for each in beats:
        made.keep(each)
    return made


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_kept_brokers_heartbeat_is_answered_as_the_controller_would(kernels: Kernels, version: int) -> None:
    beats = steady(kernels, kept(wish(), version))
    for number, client in ((9, "x"), (-1, None), (2**31 - 1, "")):
        answer = beats.answer(sent(wish(current_metadata_offset=41), version, number, client), LEAD, 1_000)
        assert decode_response(answer, ApiKey.BROKER_HEARTBEAT, version) == (number, ANSWER)
    assert beats.take_answered() == [AnsweredBeat(1, 30, 1_000, 41)]
    assert beats.take_answered() == [], "it is told once"


@pytest.mark.parametrize(
    "request_",
    [
        wish(broker_id=2),
        wish(broker_epoch=31),
        wish(current_metadata_offset=29),
        wish(want_fence=True),
        wish(want_shut_down=True),
        wish(offline_log_dirs=[DIRECTORY]),
    ],
    ids=["another broker", "another epoch", "not caught up", "to be fenced", "to shut down", "a directory failed"],
)
def test_whoever_wants_something_else_is_the_controllers(kernels: Kernels, request_: BrokerHeartbeatRequest) -> None:
    beats = steady(kernels, kept(wish()))
    assert beats.answer(sent(request_), LEAD, 1_000) is None
    assert beats.take_answered() == []


def test_cordoned_directories_that_the_controller_knows_of_are_nothing_new(kernels: Kernels) -> None:
    cordoned = wish(cordoned_log_dirs=[DIRECTORY])
    beats = steady(kernels, kept(cordoned, 2))
    assert beats.answer(sent(cordoned, 2), LEAD, 1) is not None
    assert beats.answer(sent(wish(cordoned_log_dirs=[]), 2), LEAD, 1) is None
    assert beats.answer(sent(wish(), 2), LEAD, 1) is None


def test_another_version_or_api_and_what_follows_the_wishes_are_the_controllers(kernels: Kernels) -> None:
    beats = steady(kernels, kept(wish()))
    frame = sent(wish())
    assert beats.answer(sent(wish(), 0), LEAD, 1) is None
    assert beats.answer(frame + b"\0", LEAD, 1) is None
    assert all(beats.answer(frame[:end], LEAD, 1) is None for end in range(len(frame)))
    other = UnregisterBrokerRequest(broker_id=1)
    assert beats.answer(encode_request(request_header(other, 0, 1, None), other), LEAD, 1) is None


def test_another_lead_knows_nobody(kernels: Kernels) -> None:
    beats = steady(kernels, kept(wish()))
    assert beats.answer(sent(wish()), LEAD + 1, 1) is None
    assert beats.answer(sent(wish()), LEAD, 1) is not None
    beats.begin(LEAD + 1)
    assert beats.answer(sent(wish()), LEAD + 1, 2) is None
    assert beats.take_answered() == [], "it was heard by the lead before"


def test_who_is_forgotten_is_the_controllers_again_and_was_heard_all_the_same(kernels: Kernels) -> None:
    beats = steady(kernels, kept(wish()), kept(wish(broker_id=2)), kept(wish(broker_id=3)))
    assert beats.answer(sent(wish()), LEAD, 10) is not None
    beats.forget(1)
    assert beats.answer(sent(wish()), LEAD, 20) is None
    assert beats.answer(sent(wish(broker_id=2)), LEAD, 30) is not None
    beats.forget_all()
    assert beats.answer(sent(wish(broker_id=2)), LEAD, 40) is None
    assert sorted(beats.take_answered()) == [AnsweredBeat(1, 30, 10, 40), AnsweredBeat(2, 30, 30, 40)]
    beats.keep(kept(wish()))
    assert beats.answer(sent(wish()), LEAD, 50) is not None


def test_an_answer_of_an_impossible_size_is_refused(kernels: Kernels) -> None:
    beats = steady(kernels)
    for size in (3, 65):
        with pytest.raises(UsageError, match=f"{size} bytes"):
            beats.keep(kept(wish())._replace(answer=bytes(size)))
    assert beats.answer(sent(wish()), LEAD, 1) is None


SMALL = st.integers(0, 2)
WISHES = st.builds(
    wish,
    broker_id=SMALL,
    broker_epoch=SMALL,
    current_metadata_offset=SMALL,
    want_fence=st.booleans(),
    offline_log_dirs=st.lists(st.just(DIRECTORY), max_size=1),
)
STEPS = st.one_of(
    st.tuples(st.just("keep"), WISHES, st.integers(1, 2), SMALL),
    st.tuples(st.just("forget"), SMALL),
    st.tuples(st.just("begin"), SMALL),
    st.tuples(st.just("forget_all")),
    st.tuples(st.just("take")),
    st.tuples(st.just("hear"), WISHES, st.integers(1, 2), SMALL, st.binary(max_size=1)),
    st.tuples(st.just("noise"), st.binary(max_size=60)),
)


def outcome(beats: Any, number: int, step: tuple[Any, ...]) -> Any:
    match step:
        case ("keep", request, version, offset_min):
            return beats.keep(kept(request, version, offset_min))
        case ("forget", broker_id):
            return beats.forget(broker_id)
        case ("begin", epoch):
            return beats.begin(epoch)
        case ("forget_all",):
            return beats.forget_all()
        case ("take",):
            return sorted(beats.take_answered())
        case ("hear", request, version, epoch, rest):
            return beats.answer(sent(request, version, number) + rest, epoch, number)
        case ("noise", data):
            return beats.answer(ApiKey.BROKER_HEARTBEAT.to_bytes(2, "big") + data, 0, number)
    raise AssertionError(step)


@given(steps=st.lists(STEPS, max_size=40))
def test_both_twins_say_the_same(twins: Twins, steps: list[tuple[Any, ...]]) -> None:
    pure, native = twins.pure.SteadyBeats(), twins.native.SteadyBeats()
    for number, step in enumerate(steps):
        assert outcome(pure, number, step) == outcome(native, number, step), step
    assert sorted(pure.take_answered()) == sorted(native.take_answered())
