"""What happens on a replica's outgoing connections, for raft/ and for the lane."""

from typing import NamedTuple

from fastquorum.kernels.lane import Connection
from fastquorum.types import NodeId
from fastquorum.wire import Message


class PeerAnswer(NamedTuple):
    """A peer's answer to a request."""

    source: NodeId
    correlation_id: int
    api_key: int
    message: Message


class UnansweredRequest(NamedTuple):
    """A request that will not be answered."""

    destination: NodeId
    correlation_id: int
    unsupported: bool
    """The peer knows no version of it that has all the fields that must not be lost; nothing was sent."""
    api_key: int = -1
    """What was asked; -1 where that is not told."""


class FetchLink(NamedTuple):
    """The lane's link came up (with the Fetch version both speak) or went down (connection NO_CONNECTION)."""

    node_id: NodeId
    connection: Connection
    api_version: int


class FetchFrame(NamedTuple):
    """A frame on the lane's link, untouched."""

    connection: Connection
    frame: bytes


PeerEvent = PeerAnswer | UnansweredRequest | FetchLink | FetchFrame
