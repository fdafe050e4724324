"""What all handlers of client APIs share: whose log they serve, and why not. Sans-IO."""

import hashlib
from typing import Final

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.node.view import KnownLeader, ReplicaView, leader_of
from fastquorum.storage.identity import LogKind
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Epoch, Uuid
from fastquorum.wire import ErrorCode


class ClientContext:
    """One log, shown as one topic with one partition."""

    def __init__(
        self,
        replica: ReplicaView,
        cluster_id: str,
        kind: LogKind,
        topic_name: str,
        *,
        config: QuorumConfig,
        kernels: Kernels,
    ) -> None:
        """`replica`: whose log it is."""
        self.replica: Final = replica
        self.cluster_id: Final = cluster_id
        self.kind: Final = kind
        self.topic_name: Final = TOPIC_NAME if kind is LogKind.METADATA else topic_name
        self.topic_id: Final = METADATA_TOPIC_ID if kind is LogKind.METADATA else user_topic_id(cluster_id, topic_name)
        self.config: Final = config
        self.kernels: Final = kernels
        self.log: Final = replica.shell.log

    def leader(self) -> KnownLeader:
        return leader_of(self.replica)

    # --- why not ------------------------------------------------------------------------------------------------------

    def partition_error(self, name: str | None, topic_id: Uuid, partition: int, by_id: bool) -> ErrorCode:
        """NONE, or why this topic and partition cannot be served by anybody here."""
        if by_id and topic_id != self.topic_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if (not by_id and name != self.topic_name) or partition != 0:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def reader_error(self, known_epoch: Epoch) -> ErrorCode:
        """NONE, or why this node serves no reads now; `known_epoch` is the reader's, -1 if it knows none (KIP-320)."""
        if not self.replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        epoch = self.replica.raft.epoch
        if known_epoch >= 0 and known_epoch != epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if known_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.replica.high_watermark >= 0 else ErrorCode.LEADER_NOT_AVAILABLE


def user_topic_id(cluster_id: str, topic_name: str) -> Uuid:
    """The same on every node and after every restart; never the metadata topic's."""
    return Uuid(hashlib.sha256(f"fastquorum:{cluster_id}:{topic_name}".encode()).digest()[:16])
