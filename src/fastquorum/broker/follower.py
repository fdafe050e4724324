"""Follows the metadata log: finds the leader, which is the active controller, and fetches from it as an observer.

It sends one request at a time. A server that does not lead names the leader; where no leader is known, the bootstrap
servers are asked in turn. Before the first Fetch that counts, the leader is asked for the voters: a Fetch under a
voter's id could be taken for that voter's acknowledgement. Sans-IO. Source: KIP-595 (observers, discovery), KIP-630
(FetchSnapshot), KIP-853 (endpoints in answers); Kafka `KafkaRaftClient`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from fastquorum.broker.metadata import MetadataCopy
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.config import MS
from fastquorum.errors import ImageFailed, PeerProtocolError, ProtocolFatal, UsageError, WireError
from fastquorum.kernels import Kernels
from fastquorum.raft.ports import Random
from fastquorum.types import (
    LISTENER_NAME,
    METADATA_TOPIC_ID,
    TOPIC_NAME,
    Endpoint,
    Epoch,
    Micros,
    NodeId,
    Offset,
    OffsetAndEpoch,
)
from fastquorum.wire.error_codes import ErrorCode, error_name
from fastquorum.wire.message import Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse

NEVER: Final = -1
BACKOFF_US_MAX: Final = 1_000 * MS


class ActiveController(NamedTuple):
    """The leader of the quorum, which is the active controller."""

    id: NodeId
    epoch: Epoch
    endpoint: Endpoint


class FollowerRequest(NamedTuple):
    """A request to one server."""

    number: int
    endpoint: Endpoint
    message: Message


class _NodeEndpoint(Protocol):
    node_id: int
    host: str
    port: int


@dataclass(slots=True)
class _InFlight:
    number: int
    sent_us: Micros
    timeout_us: Micros


@dataclass(slots=True)
class _Snapshot:
    """A snapshot that is being fetched."""

    id: OffsetAndEpoch
    data: bytearray = field(default_factory=bytearray)


class MetadataFollower:
    """The follower of one member. Call `poll` after every event: it returns the next request, if any."""

    def __init__(self, settings: MemberSettings, config: MemberConfig, kernels: Kernels, chance: Random) -> None:
        self.copy = MetadataCopy(kernels)
        self.leader: ActiveController | None = None
        """The leader of the newest known epoch; None while it is unknown."""
        self.fresh_us: Micros = NEVER
        """When the last Fetch was sent whose answer left nothing committed to read."""
        self.reason = "no controller has answered yet"
        """A text for people that states what it waits for; empty while it follows."""
        self._settings = settings
        self._config = config
        self._chance = chance
        self._epoch: Epoch = 0
        """The newest known epoch."""
        self._turn = chance.randrange(len(settings.bootstrap))
        self._has_checked_voters = False
        self._snapshot: _Snapshot | None = None
        self._in_flight: _InFlight | None = None
        self._number = 0
        self._next_us: Micros = 0
        self._failures = 0

    @property
    def controller(self) -> ActiveController | None:
        """The leader, once it has confirmed that this member is not a voter: no other request is sent to it before."""
        return self.leader if self._has_checked_voters else None

    @property
    def deadline_us(self) -> Micros:
        """When `poll` is next due."""
        in_flight = self._in_flight
        return self._next_us if in_flight is None else in_flight.sent_us + in_flight.timeout_us

    # --- asking -------------------------------------------------------------------------------------------------------

    def poll(self, now_us: Micros) -> FollowerRequest | None:
        """Return the next request, if it is time for one."""
        in_flight = self._in_flight
        if in_flight is not None and now_us >= in_flight.sent_us + in_flight.timeout_us:
            self._in_flight = None
            self._lose_leader("it does not answer", now_us)
        if self._in_flight is not None or now_us < self._next_us:
            return None
        self._number += 1
        endpoint, message, timeout_us = self._request()
        self._in_flight = _InFlight(self._number, now_us, timeout_us)
        return FollowerRequest(self._number, endpoint, message)

    @property
    def _server(self) -> Endpoint:
        servers = self._settings.bootstrap
        return servers[self._turn % len(servers)] if self.leader is None else self.leader.endpoint

    def _request(self) -> tuple[Endpoint, Message, Micros]:
        timeout_us = self._config.request_timeout_us
        endpoint = self._server
        if self.leader is None:
            return endpoint, self._discovery(), timeout_us
        if not self._has_checked_voters:
            topic = DescribeQuorumRequest.TopicData
            partition = topic.PartitionData(partition_index=0)
            query = DescribeQuorumRequest(topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])])
            return endpoint, query, timeout_us
        if self._snapshot is not None:
            return endpoint, self._snapshot_fetch(self._snapshot), timeout_us
        return endpoint, self._fetch(), timeout_us + self._config.fetch_wait_us_max

    def _discovery(self) -> FetchRequest:
        """Return a Fetch in the epoch before the first: a leader refuses it, and names itself, before it has any
        effect."""
        return self._fetch_of(0, OffsetAndEpoch(0, 0), wait_ms=0)

    def _fetch(self) -> FetchRequest:
        return self._fetch_of(self._epoch, self.copy.end, self._config.fetch_wait_us_max // MS)

    def _fetch_of(self, epoch: Epoch, end: OffsetAndEpoch, wait_ms: int) -> FetchRequest:
        partition = FetchRequest.FetchTopic.FetchPartition(
            current_leader_epoch=epoch,
            fetch_offset=end.offset,
            last_fetched_epoch=end.epoch,
            replica_directory_id=self._settings.log_dirs[0],
            high_watermark=self.copy.high_watermark,
        )
        topic = FetchRequest.FetchTopic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        return FetchRequest(
            cluster_id=self._settings.cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=self._settings.broker_id),
            max_wait_ms=wait_ms,
            max_bytes=self._config.fetch_bytes_max,
            topics=[topic],
        )

    def _snapshot_fetch(self, snapshot: _Snapshot) -> FetchSnapshotRequest:
        topic = FetchSnapshotRequest.TopicSnapshot
        partition = topic.PartitionSnapshot(
            current_leader_epoch=self._epoch,
            snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.id.offset, epoch=snapshot.id.epoch),
            position=len(snapshot.data),
            replica_directory_id=self._settings.log_dirs[0],
        )
        return FetchSnapshotRequest(
            cluster_id=self._settings.cluster_id,
            replica_id=self._settings.broker_id,
            max_bytes=self._config.fetch_bytes_max,
            topics=[topic(name=TOPIC_NAME, partitions=[partition])],
        )

    # --- answers ------------------------------------------------------------------------------------------------------

    def on_unanswered(self, number: int, reason: str, now_us: Micros) -> None:
        if self._take_in_flight(number) is not None:
            self._lose_leader(reason, now_us)

    def on_answer(self, number: int, message: Message, now_us: Micros) -> None:
        """Take an answer; one that is no longer awaited has no effect.

        Raises:
            UsageError: this is another cluster, or the id is a voter's.
            ProtocolFatal: the controllers have lost what was committed.
            ImageFailed: a committed record does not fit the image.
        """
        in_flight = self._take_in_flight(number)
        if in_flight is None:
            return
        self._next_us = now_us
        try:
            match message:
                case FetchResponse():
                    self._on_fetched(message, in_flight.sent_us, now_us)
                case FetchSnapshotResponse():
                    self._on_snapshot_part(message, now_us)
                case DescribeQuorumResponse():
                    self._on_voters(message, now_us)
                case _:
                    raise PeerProtocolError(f"a Fetch is answered with {type(message).__name__}")
        except PeerProtocolError as error:
            self._lose_leader(str(error), now_us)

    def _take_in_flight(self, number: int) -> _InFlight | None:
        in_flight = self._in_flight
        if in_flight is None or in_flight.number != number:
            return None
        self._in_flight = None
        return in_flight

    def _on_fetched(self, message: FetchResponse, sent_us: Micros, now_us: Micros) -> None:
        self._check_code(message.error_code)
        if len(message.responses) != 1 or len(message.responses[0].partitions) != 1:
            raise PeerProtocolError("a Fetch of one partition is answered with others")
        fetched = message.responses[0].partitions[0]
        current = fetched.current_leader
        if fetched.error_code != ErrorCode.NONE or self.leader is None:
            self._learn(current.leader_id, current.leader_epoch, message.node_endpoints, fetched.error_code, now_us)
            return
        self._failures, self.reason = 0, ""
        if fetched.diverging_epoch.epoch >= 0:
            self.copy.cut()
        elif fetched.snapshot_id.epoch >= 0 and fetched.snapshot_id.end_offset >= 0:
            self._begin_snapshot(OffsetAndEpoch(fetched.snapshot_id.end_offset, fetched.snapshot_id.epoch))
        else:
            self._take(fetched.records or b"", fetched.high_watermark)
            if 0 <= fetched.high_watermark <= self.copy.next_offset:
                self.fresh_us = sent_us

    def _take(self, records: bytes, high_watermark: Offset) -> None:
        try:
            self.copy.take(records, high_watermark)
        except ImageFailed as error:
            is_first = self.copy.image.features.metadata_version is None
            if not (is_first and isinstance(error.__cause__, WireError)):
                raise
            text = f"{error}: it seems that this quorum keeps a user log"
            raise UsageError(text, "join nodes that were formatted with --controller") from error

    def _check_code(self, code: int) -> None:
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise UsageError(f"the controllers are not those of cluster {self._settings.cluster_id}")
        if code != ErrorCode.NONE:
            raise PeerProtocolError(f"it answers {error_name(code)}")

    def _begin_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Begin to fetch a snapshot: the leader's log does not reach back to the end of this copy."""
        if snapshot.offset <= self.copy.next_offset:
            raise ProtocolFatal(
                f"the controllers want the metadata to begin anew at offset {snapshot.offset}, but everything below "
                f"{self.copy.next_offset} was committed: find out which of them lost their disks"
            )
        self._snapshot = _Snapshot(snapshot)

    def _on_snapshot_part(self, message: FetchSnapshotResponse, now_us: Micros) -> None:
        copying = self._snapshot
        assert copying is not None, "a part of a snapshot was asked for"
        self._check_code(message.error_code)
        if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
            raise PeerProtocolError("a FetchSnapshot of one partition is answered with others")
        part = message.topics[0].partitions[0]
        if part.error_code != ErrorCode.NONE:
            self._snapshot = None  # the next Fetch tells what to do instead
            current = part.current_leader
            self._learn(current.leader_id, current.leader_epoch, message.node_endpoints, part.error_code, now_us)
            return
        position, data = len(copying.data), part.unaligned_records
        named = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        if named != copying.id or part.position != position or not position < position + len(data) <= part.size:
            self._snapshot = None
            raise PeerProtocolError("it answers with another part of a snapshot than was asked for")
        copying.data += data
        if len(copying.data) == part.size:
            self._snapshot = None
            self.copy.load(copying.id, bytes(copying.data))

    def _on_voters(self, message: DescribeQuorumResponse, now_us: Micros) -> None:
        self._check_code(message.error_code)
        if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
            raise PeerProtocolError("DescribeQuorum is answered without the partition")
        partition = message.topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE:
            self._lose_leader(f"it answers {error_name(partition.error_code)}", now_us)
            return
        if any(voter.replica_id == self._settings.broker_id for voter in partition.current_voters):
            raise UsageError(
                f"broker id {self._settings.broker_id} is a controller's",
                "give the broker an id that no controller has",
            )
        self._has_checked_voters = True

    # --- the leader ---------------------------------------------------------------------------------------------------

    def _learn(
        self, leader_id: NodeId, epoch: Epoch, endpoints: Iterable[_NodeEndpoint], code: int, now_us: Micros
    ) -> None:
        """Learn the leader from a server that does not lead, or lose it. Older epochs are ignored."""
        at = (Endpoint(LISTENER_NAME, each.host, each.port) for each in endpoints if each.node_id == leader_id)
        found = next(at, None)
        if epoch < self._epoch or leader_id < 0 or found is None:
            self._lose_leader(f"it answers {error_name(code)}, and names no leader", now_us)
            self._epoch = max(epoch, self._epoch)
            return
        leader = ActiveController(leader_id, epoch, found)
        if leader == self.leader:
            self._lose_leader(f"it answers {error_name(code)}, and names itself", now_us)
            return
        self._epoch, self.leader = epoch, leader
        self._snapshot = None

    def _lose_leader(self, reason: str, now_us: Micros) -> None:
        """Ask another server; wait before that if no leader was known."""
        self.reason = f"{self._server.address}: {reason}"
        self.leader = None
        self._snapshot = None
        self._turn += 1
        rounds = self._failures // len(self._settings.bootstrap)
        backoff_us = min(self._config.retry_backoff_us << min(rounds, 16), BACKOFF_US_MAX)
        self._failures += 1
        self._next_us = now_us + backoff_us - self._chance.randrange(backoff_us // 2 + 1)
