"""This node's controller registers with the active one, until the committed image says so. Sans-IO; the replica's
thread.

Whoever wants to finalize a feature asks what every controller supports, so each says it in the log, once in a process's
life and wherever metadata.version knows of it. Must not know how it is decided. Source: KIP-919; Kafka
`ControllerRegistrationManager`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.config import MS, SECOND
from fastquorum.controller.image.features import SUPPORTED
from fastquorum.controller.state.placement import PlacementRandom
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.network.inbox import OnResponse
from fastquorum.types import NO_NODE, Endpoint, Epoch, Micros, NodeId, Uuid
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import ControllerRegistrationRequest, ControllerRegistrationResponse

AGAIN_US: Final = 100 * MS
"""After the first attempt that failed; twice as long after each that follows. Kafka's number, as are the next two."""
AGAIN_US_MAX: Final = 120 * SECOND
JITTER: Final = 2
"""Per cent of a wait by which it is longer or shorter, at most."""
PLAINTEXT: Final = 0
"""A security protocol. Nobody is authenticated yet."""


def registration_request(
    node_id: NodeId, incarnation_id: Uuid, listeners: Iterable[Endpoint]
) -> ControllerRegistrationRequest:
    """What a node of ours says of itself: where it is reached, and which features it supports, as its ApiVersions tells
    them."""
    listener, feature = ControllerRegistrationRequest.Listener, ControllerRegistrationRequest.Feature
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        listeners=[
            listener(name=each.name, host=each.host, port=each.port, security_protocol=PLAINTEXT) for each in listeners
        ],
        features=[
            feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
        ],
    )


class Registration:
    """The registration of this controller, for one process's life."""

    def __init__(
        self, request: ControllerRegistrationRequest, replay: Replay, chance: PlacementRandom, timeout_us: Micros
    ) -> None:
        """An answer is waited for `timeout_us`; `chance` spreads the attempts of many."""
        self._request = request
        self._replay = replay
        self._chance = chance
        self._timeout_us = timeout_us
        self._lead: tuple[NodeId, Epoch] = (NO_NODE, -1)
        self._failures = 0
        self._attempt = 0
        self._is_asking = False
        self._answer: Message | None = None
        self._is_answered = False
        self._at_us: Micros = 0
        """When it is asked next, or not waited for any longer; 0 at once."""

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is due; -1 never, 0 at once."""
        if not self._is_wanted or self._lead[0] == NO_NODE:
            return -1
        return 0 if self._is_answered else self._at_us

    @property
    def is_registered(self) -> bool:
        """So says the committed image."""
        found = self._replay.image.controllers.get(self._request.controller_id)
        return found is not None and found.incarnation_id == self._request.incarnation_id

    @property
    def _is_wanted(self) -> bool:
        """Is all that is committed known, and another registration of this node's in it, or none?"""
        replay = self._replay
        level = replay.image.features.metadata_version
        can_be = level is not None and level.has_controller_registration
        return can_be and not replay.is_behind and not self.is_registered

    def on_turn(self, active_id: NodeId, epoch: Epoch) -> None:
        """Note the active controller and its epoch; NO_NODE if there is none. For another one nothing has failed yet,
        and what the former has not committed is lost."""
        if self.is_registered:
            self._forget()  # should another one take its place, that is said at once
        if (active_id, epoch) != self._lead:
            self._lead = (active_id, epoch)
            self._forget()

    def on_tick(self, now_us: Micros, ask: Callable[[ControllerRegistrationRequest, OnResponse], None]) -> None:
        """`ask` has the active controller decide; what it is given may be told the answer at once, later or never."""
        if self._is_answered:
            self._heed(now_us)
        if self._is_wanted and self._lead[0] != NO_NODE and self._at_us <= now_us:
            if self._is_asking:
                self._fail(now_us)
            else:
                self._ask(now_us, ask)

    def _ask(self, now_us: Micros, ask: Callable[[ControllerRegistrationRequest, OnResponse], None]) -> None:
        self._attempt += 1
        self._is_asking = True
        self._at_us = now_us + self._timeout_us
        attempt = self._attempt

        def on_response(response: Message | None) -> None:
            if self._is_asking and attempt == self._attempt:
                self._answer, self._is_answered = response, True

        ask(self._request, on_response)

    def _heed(self, now_us: Micros) -> None:
        answer = self._answer
        if isinstance(answer, ControllerRegistrationResponse) and answer.error_code == ErrorCode.NONE:
            self._forget()
            self._at_us = now_us + AGAIN_US_MAX  # it is committed, and will be in the image long before
        else:
            self._fail(now_us)

    def _fail(self, now_us: Micros) -> None:
        wait_us = min(AGAIN_US << min(self._failures, 16), AGAIN_US_MAX)
        spread_us = wait_us * JITTER // 100
        failures = self._failures + 1
        self._forget()
        self._failures = failures
        self._at_us = now_us + min(wait_us - spread_us + self._chance.randrange(2 * spread_us + 1), AGAIN_US_MAX)

    def _forget(self) -> None:
        """Nothing is under way, and nothing has failed."""
        self._is_asking = self._is_answered = False
        self._answer = None
        self._failures = self._at_us = 0
