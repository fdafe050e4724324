"""Builders: a member's life with a hand-turned clock, and a controller that says what it is told to say."""

from fastquorum.broker.events import (
    Answered,
    Ask,
    Effect,
    Event,
    Failed,
    Followed,
    MemberStarted,
    MemberTimerFired,
    Ready,
    StateChanged,
    StopRequested,
    Unanswered,
)
from fastquorum.broker.lifecycle import Lifecycle
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.broker.states import State
from fastquorum.config import MS, SECOND
from fastquorum.controller.image.registrations import Listener
from fastquorum.errors import FastQuorumError
from fastquorum.types import Endpoint, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
BOOTSTRAP = (Endpoint("CONTROLLER", "h1", 9093), Endpoint("CONTROLLER", "h2", 9093))
SETTINGS = MemberSettings(
    broker_id=7,
    cluster_id=CLUSTER_ID,
    bootstrap=BOOTSTRAP,
    incarnation_id=Uuid(b"i" * 16),
    log_dirs=(Uuid(b"d" * 16),),
    listeners=(Listener("PLAINTEXT", "b7", 9092, 0),),
    rack="r1",
)
CONFIG = MemberConfig(session_timeout_us=8 * SECOND)  # a lease lasts 6 s
LEASE = 6 * SECOND
BEAT = 2 * SECOND


class NoChance:
    """Draws nothing: every wait is as long as it can be."""

    def randrange(self, stop: int, /) -> int:
        return 0


class Life:
    """A Lifecycle, the time, and what it asked for last."""

    def __init__(self, config: MemberConfig = CONFIG, *, is_ready: bool = True) -> None:
        self.core = Lifecycle(SETTINGS, config, NoChance(), is_ready=is_ready)
        self.now = 1_000 * SECOND
        self.pending: Ask | None = None
        """The request that is not answered yet."""
        self.sent_us: dict[int, int] = {}
        """When each request was made, by number."""
        self.states: list[State] = []
        """The states that the program was notified of, in order."""
        self.effects: list[Effect] = []
        """The effects of the last step."""

    # --- what happens -------------------------------------------------------------------------------------------------

    def step(self, event: Event) -> "Life":
        self.effects = self.core.step(event, self.now)
        for effect in self.effects:
            if isinstance(effect, Ask):
                self.pending = effect
                self.sent_us[effect.number] = self.now
            elif isinstance(effect, StateChanged):
                self.states.append(effect.state)
        return self

    def start(self) -> "Life":
        return self.step(MemberStarted())

    def wait(self, us: int) -> "Life":
        """Time goes by, and every timer fires when it is due."""
        until = self.now + us
        while 0 <= self.core.deadline_us <= until:
            self.now = max(self.core.deadline_us, self.now)
            self.step(MemberTimerFired())
        self.now = until
        return self

    def sleep(self, us: int) -> "Life":
        """Time goes by, and nobody turns the wheel: the process was stopped."""
        self.now += us
        return self

    def answer(self, message: Message) -> "Life":
        pending = self.take()
        return self.step(Answered(pending.number, message))

    def lose(self) -> "Life":
        """The connection fails."""
        return self.step(Unanswered(self.take().number, "the connection failed"))

    def stop(self, us: int = 5 * SECOND) -> "Life":
        return self.step(StopRequested(self.now + us))

    def ready(self, is_ready: bool = True) -> "Life":
        return self.step(Ready(is_ready))

    def fail(self, error: FastQuorumError) -> "Life":
        return self.step(Failed(error))

    # --- the controller's side ----------------------------------------------------------------------------------------

    def register(self, epoch: int = 40) -> "Life":
        self.registration  # noqa: B018  # that is what was asked
        return self.answer(BrokerRegistrationResponse(broker_epoch=epoch))

    def refuse(self, code: ErrorCode) -> "Life":
        if isinstance(self.message, BrokerRegistrationRequest):
            return self.answer(BrokerRegistrationResponse(error_code=code))
        return self.answer(BrokerHeartbeatResponse(error_code=code))

    def beat(self, *, fenced: bool = False, go: bool = False) -> "Life":
        self.heartbeat  # noqa: B018
        return self.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=fenced, should_shut_down=go))

    def read(self, epoch: int = 40, *, fenced: bool = False, next_offset: int = 50, fresh: bool = True) -> "Life":
        """The metadata, up to now unless it is not `fresh`."""
        return self.step(Followed(next_offset, self.now if fresh else self.now - 1, epoch, fenced))

    # --- what it asked ------------------------------------------------------------------------------------------------

    def take(self) -> Ask:
        pending, self.pending = self.pending, None
        assert pending is not None, "it has asked for nothing"
        return pending

    @property
    def message(self) -> Message:
        assert self.pending is not None, "it has asked for nothing"
        return self.pending.message

    @property
    def registration(self) -> BrokerRegistrationRequest:
        assert isinstance(self.message, BrokerRegistrationRequest)
        return self.message

    @property
    def heartbeat(self) -> BrokerHeartbeatRequest:
        assert isinstance(self.message, BrokerHeartbeatRequest)
        return self.message

    @property
    def state(self) -> State:
        return self.core.state

    @property
    def is_active(self) -> bool:
        return self.core.is_active(self.now)


def online(config: MemberConfig = CONFIG, epoch: int = 40) -> Life:
    """It may act, as of now: nothing is asked, the next heartbeat is due in BEAT."""
    life = Life(config).start().register(epoch).read(epoch, fenced=True).beat()
    if life.pending is not None:  # it had not read its registration when it first asked
        life.beat()
    life.read(epoch)
    assert life.state is State.ONLINE
    return life


__all__ = [
    "BEAT",
    "BOOTSTRAP",
    "CLUSTER_ID",
    "CONFIG",
    "LEASE",
    "MS",
    "SECOND",
    "SETTINGS",
    "Life",
    "NoChance",
    "online",
]
