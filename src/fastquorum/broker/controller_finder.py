"""Finds the active controller, and reads nothing of the metadata: for a member that is told what it is to know.

Whoever is asked, and is not the controller any more, or does not answer, is asked no more: the bootstrap servers are.
Sans-IO. Source: KIP-595 (discovery); KIP-380, whose brokers were told by ZooKeeper.
"""

from fastquorum.broker.follower import NEVER, Follower, Request
from fastquorum.types import Endpoint, Micros
from fastquorum.wire.message import Message


class ControllerFinder(Follower):
    """A Follower that is content once it knows who leads."""

    @property
    def deadline_us(self) -> Micros:
        return NEVER if self.controller is not None else super().deadline_us

    def poll(self, now_us: Micros) -> Request | None:
        return None if self.controller is not None else super().poll(now_us)

    def on_answer(self, number: int, message: Message, now_us: Micros) -> None:
        super().on_answer(number, message, now_us)
        if self.controller is not None:
            self._failures, self.reason = 0, ""

    def not_there(self, endpoint: Endpoint, reason: str, now_us: Micros) -> None:
        """The active controller is not to be found there, or not any more."""
        if self.controller is not None and self.controller.endpoint == endpoint:
            self._lose_leader(reason, now_us)
