"""Whatever the controller says, and when: a member never acts past its deadline, nor under an older epoch."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.broker.events import Answered, Ask, Unanswered
from fastquorum.broker.states import State
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationResponse
from tests.broker.rig import LEASE, MS, SECOND, Life

SAYS = ("yes", "yes", "yes", "fenced", "stale", "not controller", "lost", "late", "go")
STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(SAYS)),
    st.tuples(st.just("wait"), st.integers(0, 9 * SECOND)),
    st.tuples(st.just("wait"), st.integers(0, 100 * MS)),
    st.tuples(st.just("sleep"), st.integers(0, 20 * SECOND)),
    st.tuples(st.just("read"), st.sampled_from(("fresh", "stale", "fenced", "another", "nobody"))),
    st.tuples(st.just("late"), st.integers(0, 5)),
    st.tuples(st.just("ready"), st.booleans()),
    st.tuples(st.just("stop"), st.integers(0, 9 * SECOND)),
)


class Controller:
    """Says what it is told to, and remembers what a member may conclude from it."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.next_epoch = 40
        self.acknowledged: dict[int, list[int]] = {}
        """When the acknowledged heartbeats of an epoch were sent."""
        self.late: list[tuple[Ask, str]] = []

    def say(self, what: str) -> None:
        if self.life.pending is None:
            return
        pending = self.life.take()
        if what == "late":
            self.late.append((pending, "yes"))
        else:
            self.answer(pending, what)

    def answer(self, pending: Ask, what: str) -> None:
        life, message = self.life, pending.message
        if what == "lost":
            life.step(Unanswered(pending.number, "lost"))
            return
        is_heartbeat = isinstance(message, BrokerHeartbeatRequest)
        code = {"stale": ErrorCode.STALE_BROKER_EPOCH, "not controller": ErrorCode.NOT_CONTROLLER}.get(what, 0)
        if is_heartbeat:
            if code == 0:
                self.acknowledged.setdefault(message.broker_epoch, []).append(life.sent_us[pending.number])
            reply = BrokerHeartbeatResponse(error_code=code, is_fenced=what == "fenced", should_shut_down=what == "go")
            life.step(Answered(pending.number, reply))
            return
        if what == "stale":
            code = ErrorCode.DUPLICATE_BROKER_REGISTRATION
        self.next_epoch += what == "yes"
        life.step(Answered(pending.number, BrokerRegistrationResponse(error_code=code, broker_epoch=self.next_epoch)))

    def read(self, what: str) -> None:
        life = self.life
        epoch = {"another": self.next_epoch + 1, "nobody": -1}.get(what, life.core.epoch)
        if what == "another":
            self.next_epoch += 1
        life.read(epoch, fenced=what == "fenced", next_offset=self.next_epoch + 1, fresh=what != "stale")


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=400, deadline=None)
def test_never_active_past_its_deadline_and_its_epoch_never_falls(steps: list[tuple[str, object]]) -> None:
    life = Life().start()
    controller = Controller(life)
    epoch = life.core.epoch
    for what, value in [("say", "yes"), ("read", "fresh"), ("say", "yes"), ("say", "yes"), ("read", "fresh"), *steps]:
        match what, value:
            case "say", str(value):
                controller.say(value)
            case "read", str(value):
                controller.read(value)
            case "wait", int(us):
                life.wait(us)
            case "sleep", int(us):
                life.sleep(us)
            case "late", int(index):
                if controller.late:
                    controller.answer(*controller.late.pop(index % len(controller.late)))
            case "ready", bool(is_ready):
                life.ready(is_ready)
            case "stop", int(us):
                life.stop(us)
        assert life.core.epoch >= epoch
        epoch = life.core.epoch
        acknowledged = controller.acknowledged.get(epoch, [])
        for at in (life.now, life.now + LEASE - 1, life.now + LEASE):
            if life.core.is_active(at):
                assert acknowledged
                assert at < max(acknowledged) + LEASE
                assert life.state in (State.ONLINE, State.STOPPING)


@given(st.lists(STEPS, max_size=40))
@settings(max_examples=200, deadline=None)
def test_it_always_has_something_to_wait_for_until_it_is_gone(steps: list[tuple[str, object]]) -> None:
    life = Life().start()
    controller = Controller(life)
    for what, value in steps:
        if what == "say":
            controller.say(str(value))
        elif what == "read":
            controller.read(str(value))
        elif what in ("wait", "sleep") and isinstance(value, int):
            life.wait(value)
        elif what == "stop" and isinstance(value, int):
            life.stop(value)
        assert (life.core.deadline_us < 0) == (life.state is State.GONE)
