"""The state of one outgoing connection to one peer, or of the wish for one: `Peers` has them all."""

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from fastquorum.kernels.lane import NO_CONNECTION, Connection
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import API, ApiKey, Message
from fastquorum.wire.messages.fetch import FetchRequest


class Purpose(enum.Enum):
    """What a link is for."""

    REQUEST = "request"
    """Raft's own requests, each of which is answered at once."""
    FETCH = "fetch"
    """The lane's Fetches."""
    FORWARD = "forward"
    """Requests for the leader to answer, of clients or of this node's controller. They may wait for a commit, and
    responses come in the order of requests: a vote must not wait behind them."""
    CONTROL = "control"
    """What a controller tells a broker, whose id may be a voter's, too."""


class LinkState(enum.Enum):
    DOWN = "down"
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    READY = "ready"


class RequestInFlight(NamedTuple):
    """A request that was sent, and is to be answered."""

    api_key: int
    version: int
    sent_us: Micros


@dataclass(slots=True)
class PeerLink:
    """One connection to one peer, or the wish for one."""

    node_id: NodeId
    purpose: Purpose
    endpoint: Endpoint
    connection: Connection = NO_CONNECTION
    state: LinkState = LinkState.DOWN
    handshake: int = 0
    """Index into HANDSHAKE_VERSIONS."""
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    waiting: list[tuple[int, Message]] = field(default_factory=list)
    in_flight: dict[int, RequestInFlight] = field(default_factory=dict)
    backoff_us: Micros = 0
    retry_at_us: Micros = 0
    contact_us: Micros = 0
    """When the other side last gave a sign of life, or the connection was begun."""
    last_error: str = ""
    """Why it went down, or did not come up; empty once it is up."""
    failing_since_us: Micros = -1
    """When an attempt to reach the other side first failed; -1 if the last one did not, or none was made."""
    failed_us: Micros = -1
    """When one last failed."""

    def fetch_version(self) -> int:
        return self.common_version(ApiKey.FETCH)

    def common_version(self, api_key: int) -> int:
        """The highest version both sides speak; -1 if there is none. What is never advertised is asked of those who
        were told to hear it."""
        theirs = self.versions.get(api_key)
        if theirs is None:
            return -1 if API[api_key].is_advertised else API[api_key].versions.last
        ours = API[api_key].versions
        version = min(theirs[1], ours.last)
        return version if version >= max(theirs[0], ours.first) else -1

    @property
    def has_fetch(self) -> bool:
        """A Fetch is to be sent on it, or to be answered. None of the lane's, which are not known here."""
        is_waiting = any(isinstance(message, FetchRequest) for _, message in self.waiting)
        return is_waiting or any(request.api_key == ApiKey.FETCH for request in self.in_flight.values())
