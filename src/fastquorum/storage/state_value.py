"""The quorum state as one checksummed value, bound to the replica it belongs to. KIP-595 "Quorum State", KIP-853.

LMDB's pages carry no checksum, so a flipped bit in a vote would go unseen; and a value copied in from another replica
would make this one forget what it voted. Both are refused.
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage.lmdb_file import values_in
from fastquorum.storage.replacing import damaged_state
from fastquorum.types import NO_NODE, NodeId, ReplicaKey, Uuid

MAGIC: Final = b"FQSTATE\n"
VERSION: Final = 1
STATE_KEY: Final = b"election"
"""The value's key, where it is one of several."""
RESERVE_KEY: Final = b"reserve"
"""The key of the value that makes the file as large as it will be."""
_HEAD: Final = struct.Struct(">8sHH")
"""Magic, version, length of the cluster id."""
_BODY: Final = struct.Struct(">i16siibi16s")
"""Node id, directory id; epoch, leader id; has voted, voted id, voted directory id."""
_CRC: Final = struct.Struct(">I")
_ANOTHERS: Final = "it says how another replica voted, or one of another cluster"
_SIZE_MIN: Final = _HEAD.size + _BODY.size + _CRC.size


class StateOwner(NamedTuple):
    """The replica that a state belongs to."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid


def encode_state(kernels: Kernels, owner: StateOwner, state: ElectionState) -> bytes:
    cluster = owner.cluster_id.encode()
    voted = state.voted_key or ReplicaKey(NO_NODE)
    body = _BODY.pack(
        owner.node_id,
        owner.directory_id,
        state.epoch,
        state.leader_id,
        state.voted_key is not None,
        voted.id,
        voted.directory_id,
    )
    value = _HEAD.pack(MAGIC, VERSION, len(cluster)) + cluster + body
    return value + _CRC.pack(kernels.crc32c(value))


def state_in(kernels: Kernels, owner: StateOwner, data: bytes, path: str = "") -> ElectionState | None:
    """Return the latest state that a whole LMDB file holds; None: nothing was ever saved.

    That is the last transaction's, unless the one before it holds a later one. LMDB leaves it so when the last write of
    a transaction failed, and a flipped bit does: which of two is the last, a number alone says. No replica is harmed by
    a promise that it keeps although nobody heard it.

    Raises:
        CorruptionError: the value is damaged or another replica's, or anything that LMDB goes by is damaged.
        DirectoryError: a newer version wrote it.
    """
    values = values_in(data, path)
    if not set(values.last) <= {STATE_KEY, RESERVE_KEY}:  # a damaged key, whose value would be missed
        raise damaged_state("state_file", path)
    state = _state_of(kernels, owner, values.last, path)
    before = _if_whole(kernels, owner, values.before)
    is_later = before is not None and _forgets(state or ElectionState(), before, owner.node_id)
    return before if is_later else state


def _state_of(kernels: Kernels, owner: StateOwner, values: dict[bytes, bytes], path: str) -> ElectionState | None:
    value = values.get(STATE_KEY)
    return None if value is None else decode_state(kernels, owner, value, path)


def _if_whole(kernels: Kernels, owner: StateOwner, values: dict[bytes, bytes]) -> ElectionState | None:
    """Nobody starts from it: what is damaged of it proves nothing."""
    try:
        return _state_of(kernels, owner, values, "")
    except (CorruptionError, DirectoryError):
        return None


def _forgets(state: ElectionState, before: ElectionState, node_id: NodeId) -> bool:
    """Could this replica vote again in an epoch where it had voted, or led, before? It never saves such a state."""
    if state.epoch != before.epoch:
        return state.epoch < before.epoch
    had_voted = before.voted_key is not None or before.leader_id == node_id
    return had_voted and state.voted_key is None and state.leader_id == NO_NODE


def settled(read: Callable[[], bytes], decode: Callable[[bytes], ElectionState | None]) -> ElectionState | None:
    """Read and decode a file that a node may be writing: while it looks damaged, read it again until it no longer
    changes. CorruptionError, DirectoryError."""
    data = read()
    while True:
        try:
            return decode(data)
        except CorruptionError:
            before, data = data, read()
            if data == before:
                raise


def decode_state(kernels: Kernels, owner: StateOwner, value: bytes, path: str = "") -> ElectionState:
    """CorruptionError if the bytes are damaged or another replica's; DirectoryError if a newer version wrote them."""
    if len(value) < _SIZE_MIN:
        raise damaged_state("state_length", path, position=len(value))
    (stored,) = _CRC.unpack_from(value, len(value) - _CRC.size)
    computed = kernels.crc32c(value[: -_CRC.size])
    if stored != computed:
        raise damaged_state("crc", path, position=0, stored_crc=stored, computed_crc=computed)
    magic, version, cluster_bytes = _HEAD.unpack_from(value)
    if magic != MAGIC:
        raise damaged_state("magic", path, position=0)
    if version != VERSION:
        raise DirectoryError(
            f"the quorum state has format version {version}, this fastquorum knows {VERSION}",
            "use the version that wrote it",
            path,
        )
    if len(value) != _SIZE_MIN + cluster_bytes:
        raise damaged_state("state_length", path, position=len(value))
    cluster_id = value[_HEAD.size : _HEAD.size + cluster_bytes].decode(errors="replace")
    fields = _BODY.unpack_from(value, _HEAD.size + cluster_bytes)
    node_id, directory_id, epoch, leader_id, has_voted, voted_id, voted_directory = fields
    if (cluster_id, node_id, directory_id) != owner:
        raise damaged_state("foreign_state", path, _ANOTHERS, position=0)
    voted_key = ReplicaKey(voted_id, Uuid(voted_directory)) if has_voted else None
    return ElectionState(epoch, leader_id, voted_key)
