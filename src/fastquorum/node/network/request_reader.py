"""How requests are read. Sans-IO.

Must not know what raft/ or the client APIs decide. Source: the Kafka protocol guide (headers); KIP-595 (replica ids).
"""

from collections.abc import Collection
from typing import Final

from fastquorum.errors import WireError
from fastquorum.types import NodeId
from fastquorum.wire import ApiKey, Frames, Message, RequestHeader
from fastquorum.wire.messages.fetch import FetchRequest

QUORUM_APIS: Final = frozenset(
    (
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
    )
)
"""Raft's own, beside Fetch, which is raft's only when a replica sends it."""
ELEMENTS_MAX: Final = 4_096
"""Array elements and tagged fields in one request; there is one topic with one partition here. A million of them would
take seconds to be read and answered, and hundreds of megabytes, while the quorum waits: whoever sends more is hung up
on."""
CONTROLLER_ELEMENTS_MAX: Final = 200_000
"""In one request of those that a controller serves: a broker proposes the ISRs of all its partitions at once."""


def api_key_of(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


def replica_id(message: FetchRequest) -> NodeId:
    """Return the id of the replica that fetches; -1 for a consumer. The field moved in version 15."""
    return message.replica_state.replica_id if message.replica_state.replica_id >= 0 else message.replica_id


class RequestReader:
    """Decodes requests of one replica's accepted connections."""

    def __init__(self, frames: Frames, controller_apis: Collection[int] = ()) -> None:
        """`controller_apis`: those of which more may be asked in one request."""
        self.frames: Final = frames
        self._controller_apis: Final = frozenset(controller_apis)

    def read(self, frame: bytes) -> tuple[RequestHeader, Message]:
        """Raises WireError (UnsupportedVersion included)."""
        most = CONTROLLER_ELEMENTS_MAX if api_key_of(frame) in self._controller_apis else ELEMENTS_MAX
        try:
            return self.frames.decode_request(frame, most)
        except MemoryError:
            raise WireError(f"there is no memory to read a request of {len(frame)} bytes") from None
