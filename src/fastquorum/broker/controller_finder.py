"""Finds the active controller without reading metadata, for a member that receives control requests.

A server that is not the controller any more, or that does not answer, is not asked again: the bootstrap servers are.
Sans-IO. Source: KIP-595 (discovery); KIP-380, whose brokers found it in ZooKeeper.
"""

from fastquorum.broker.follower import NEVER, FollowerRequest, MetadataFollower
from fastquorum.types import Endpoint, Micros
from fastquorum.wire.message import Message


class ControllerFinder(MetadataFollower):
    """A Follower that stops once it knows the leader."""

    @property
    def deadline_us(self) -> Micros:
        return NEVER if self.controller is not None else super().deadline_us

    def poll(self, now_us: Micros) -> FollowerRequest | None:
        return None if self.controller is not None else super().poll(now_us)

    def on_answer(self, number: int, message: Message, now_us: Micros) -> None:
        super().on_answer(number, message, now_us)
        if self.controller is not None:
            self._failures, self.reason = 0, ""

    def not_there(self, endpoint: Endpoint, reason: str, now_us: Micros) -> None:
        """Note that the active controller is not at this endpoint."""
        if self.controller is not None and self.controller.endpoint == endpoint:
            self._lose_leader(reason, now_us)
