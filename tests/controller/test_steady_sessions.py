"""A heartbeat that is answered where it arrives, on another thread, while the controller decides: whoever was told that
it is unfenced has a whole session from then on. KIP-631; C8."""

import pytest

from fastquorum.controller.brokers import fencing
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.refusals import Refused
from fastquorum.kernels.beats import AnsweredBeat
from fastquorum.kernels.pure.beats import SteadyBeats
from fastquorum.node.metadata.heartbeats import steady_beat
from fastquorum.wire import encode_request, request_header
from fastquorum.wire.codec.codec import Codec
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tests.controller.rig import SESSION_S, Controller

LEAD = 1


class Busy(SteadyBeats):
    """A fast path on which broker 1 sends another heartbeat right after each collection of contacts."""

    controller: Controller
    beats = False
    answered = 0

    def take_answered(self) -> list[AnsweredBeat]:
        contacts = super().take_answered()
        if self.beats:
            self.answered += self.is_answered()
        return contacts

    def _request(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(broker_id=1, broker_epoch=self.epoch, current_metadata_offset=self.epoch)

    def keep_first(self) -> None:
        """Keep the steady answer as the controller does once a heartbeat changes nothing."""
        self.epoch = self.controller.state.image.brokers[1].epoch
        answer = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
        self.keep(steady_beat(Codec(), self._request(), 1, self.epoch, answer))

    def is_answered(self) -> bool:
        frame = encode_request(request_header(self._request(), 1, 5, None), self._request())
        return self.answer(frame, LEAD, self.controller.now_us) is not None


@pytest.fixture
def busy() -> Busy:
    beats = Busy()
    beats.begin(LEAD)
    beats.controller = Controller(steady=beats)
    beats.controller.start(1, 2)
    beats.keep_first()
    return beats


def test_who_is_answered_while_it_is_found_silent_is_not_fenced(busy: Busy) -> None:
    controller = busy.controller
    controller.wait(SESSION_S + 1)
    controller.beat(2)
    busy.beats = True
    assert controller.fence_expired() == []
    assert busy.answered == 1, "then it is the controller's"
    controller.wait(SESSION_S + 1)
    assert controller.fence_expired() == [1, 2]
    assert busy.answered == 1


def test_nor_does_another_incarnation_of_it_take_its_place(busy: Busy) -> None:
    controller = busy.controller
    controller.wait(SESSION_S + 1)
    busy.beats = True
    assert controller.register(1, 2) > busy.epoch
    assert busy.answered == 0


def test_nor_that_of_one_that_was_answered_and_not_yet_asked_for(busy: Busy) -> None:
    busy.controller.wait(SESSION_S + 1)
    assert busy.is_answered()
    with pytest.raises(Refused, match="is alive"):
        busy.controller.register(1, 2)


def test_nobody_is_told_that_it_is_unfenced_while_its_fencing_is_written(busy: Busy) -> None:
    state = busy.controller.state
    assert busy.is_answered()
    prepared = state.prepare(fencing.fence(state, state.image.brokers[1]))
    assert not busy.is_answered(), "it may be committed before this thread goes on"
    state.applied(prepared)
    assert not busy.is_answered()


def test_nor_while_its_registration_is_taken_back(busy: Busy) -> None:
    state = busy.controller.state
    state.prepare(fencing.unregister(state, state.image.brokers[1]))
    assert not busy.is_answered()


def test_a_broker_that_is_silent_is_fenced_though_others_are_answered(busy: Busy) -> None:
    controller = busy.controller
    controller.wait(SESSION_S + 1)
    busy.beats = True
    assert controller.fence_expired() == [2]
    assert not brokers.fence_expired(controller.state, controller.now_us)
