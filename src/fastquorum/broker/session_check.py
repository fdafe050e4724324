"""Checks that a member's lease fits the session timeout of the active controller.

The lease promise (`fastquorum.lease`) depends on settings of both sides, and no registration or heartbeat carries them.
So the member asks each new leading controller for its `broker.session.timeout.ms`, before any other request, and does
not register with one whose session is too short. A controller that does not answer this (Kafka's before 3.7, or one
that authorizes only others) is trusted. Sans-IO. Source: KIP-133 (DescribeConfigs), KIP-919 (controllers answer it).
"""

from typing import Final

from fastquorum.broker.follower import ActiveController
from fastquorum.broker.settings import MemberConfig
from fastquorum.config import MS
from fastquorum.controller.image.configs import ResourceType
from fastquorum.lease import check_controllers_session
from fastquorum.types import Micros
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse

SESSION_TIMEOUT: Final = "broker.session.timeout.ms"


class SessionCheck:
    """The session check of one member."""

    def __init__(self, config: MemberConfig) -> None:
        self._config = config
        self._checked: ActiveController | None = None
        """The last controller that has answered, or is trusted. Its settings do not change within one epoch: after a
        restart it leads under another."""

    def is_due(self, controller: ActiveController) -> bool:
        """Return whether this controller has to be asked first; never, if the member's lease promises nothing
        (KIP-343)."""
        return self._config.lease_us <= self._config.session_timeout_us and controller != self._checked

    def request(self, controller: ActiveController) -> DescribeConfigsRequest:
        """Return the request for a controller's session timeout."""
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=ResourceType.BROKER, resource_name=str(controller.id), configuration_keys=[SESSION_TIMEOUT]
        )
        return DescribeConfigsRequest(resources=[resource])

    def answered(self, controller: ActiveController, response: DescribeConfigsResponse) -> None:
        """Take a controller's answer. ConfigError if the member could act for longer than that allows."""
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
