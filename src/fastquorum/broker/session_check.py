"""Whether a member's lease fits the session timeout that the active controller goes by.

The lease promise (`fastquorum.lease`) is of settings of both sides, and no registration or heartbeat carries either. So
the member asks each controller that begins to lead for its `broker.session.timeout.ms`, before anything else, and
registers with none whose session is too short. A controller that does not say (Kafka's before 3.7, or one that
authorizes others only) is believed. Sans-IO. Source: KIP-133 (DescribeConfigs), KIP-919 (controllers answer it).
"""

from typing import Final

from fastquorum.broker.follower import Leader
from fastquorum.broker.settings import MemberConfig
from fastquorum.config import MS
from fastquorum.controller.image.configs import ResourceType
from fastquorum.lease import check_controllers_session
from fastquorum.types import Micros
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse

SESSION_TIMEOUT: Final = "broker.session.timeout.ms"


class SessionCheck:
    """Of one member."""

    def __init__(self, config: MemberConfig) -> None:
        self._config = config
        self._checked: Leader | None = None
        """The last controller that was asked, or is believed. In one epoch it does not change its settings: who starts
        anew leads under another."""

    def is_due(self, controller: Leader) -> bool:
        """Is this one to be asked first? None is if the member's lease promises nothing (KIP-343)."""
        return self._config.lease_us <= self._config.session_timeout_us and controller != self._checked

    def request(self, controller: Leader) -> DescribeConfigsRequest:
        """What to ask it."""
        asked = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=ResourceType.BROKER, resource_name=str(controller.id), configuration_keys=[SESSION_TIMEOUT]
        )
        return DescribeConfigsRequest(resources=[asked])

    def answered(self, controller: Leader, response: DescribeConfigsResponse) -> None:
        """It has said, or does not say. ConfigError if the member could act for longer than that allows."""
        session_us = _session_us(response)
        if session_us is not None:
            check_controllers_session(self._config.lease_us, session_us, f"controller {controller.id}")
        self._checked = controller


def _session_us(response: DescribeConfigsResponse) -> Micros | None:
    for result in response.results:
        for entry in result.configs:
            if entry.name == SESSION_TIMEOUT and entry.value is not None and entry.value.isdecimal():
                return int(entry.value) * MS
    return None
