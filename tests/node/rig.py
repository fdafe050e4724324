"""One replica over fake ports: its outside is told what happens, step by step, and keeps a journal of what it did.

A disk in memory, a flusher that syncs when the test says so, connections whose frames are kept, a quorum state that can
fail, and a clock that stands still.
"""

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastquorum.config import MS, QuorumConfig
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.errors import FastQuorumError, StateStoreFailed, WireError
from fastquorum.kernels import Buffer, load
from fastquorum.kernels.lane import load_lane
from fastquorum.node.assembly import Member, Ports, assemble, lane_shell
from fastquorum.node.clients.server import api_versions
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.raft.election import ElectionState
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import NO_NODE, Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire import ApiKey, Message, decode_request, decode_response, encode_request, request_header
from fastquorum.wire import encode_response as response_frame
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse
from tests.lane.builders import CLUSTER, fetch_request
from tests.storage.fake_disk import FakeDisk, FakeFlusher

M = TypeVar("M", bound=Message)
TOPIC = "quorum"
WALL_CLOCK_MS = 1_700_000_000_000


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([node_id]) * 16))


def endpoint(node_id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"host{node_id}", 9000 + node_id)


class FakeTransport:
    """Connections by number: what was sent on them, and which are open."""

    def __init__(self, journal: list[tuple[str, Any]]) -> None:
        self.journal = journal
        self.open: dict[int, Endpoint | None] = {}
        self.sent: dict[int, list[bytes]] = {}
        self.errors: dict[Endpoint, str] = {}
        self.doubted: list[Endpoint] = []
        self.begun: list[int] = []
        """Outgoing connections whose fate the test has yet to decide."""
        self.wakes = 0
        self.unread: set[int] = set()
        """Connections whose other side reads nothing."""
        self.favoured: set[int] = set()
        """Voters' connections."""
        self._next = 1

    def connect(self, endpoint: Endpoint) -> int:
        number = self.accept(endpoint)
        self.begun.append(number)
        return number

    def accept(self, endpoint: Endpoint | None = None) -> int:
        number, self._next = self._next, self._next + 1
        self.open[number] = endpoint
        self.sent[number] = []
        return number

    def send(self, connection: int, frame: Buffer) -> None:
        if connection in self.open:
            self.sent[connection].append(bytes(frame))
            self.journal.append(("send", connection))

    def favour(self, connection: int) -> None:
        self.favoured.add(connection)

    def needs_drain(self, connection: int) -> bool:
        return connection in self.unread

    def is_crowded(self) -> bool:
        return False

    def close(self, connection: int) -> None:
        self.open.pop(connection, None)

    def last_error(self, endpoint: Endpoint) -> str:
        return self.errors.get(endpoint, "")

    def try_elsewhere(self, endpoint: Endpoint) -> None:
        self.doubted.append(endpoint)

    def wake(self) -> None:
        self.wakes += 1

    def take(self, connection: int) -> list[bytes]:
        frames, self.sent[connection] = self.sent[connection], []
        return frames


class FakeStates:
    """The quorum state, in memory; `fails` makes the next save fail."""

    def __init__(self, journal: list[tuple[str, Any]]) -> None:
        self.journal = journal
        self.state: ElectionState | None = None
        self.fails = False

    def load(self) -> ElectionState | None:
        return self.state

    def save(self, state: ElectionState) -> None:
        if self.fails:
            raise StateStoreFailed(detail="injected", operation="save", path="/fake/state", errno_code=5)
        self.state = state
        self.journal.append(("save", state))


class FakeListener:
    """What the embedding program was told."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.leaderships: list[tuple[int, int, bool]] = []
        self.reasons: list[str] = []
        self.reach: list[tuple[int, bool]] = []
        self.full: list[bool] = []
        self.foreign: list[tuple[int, Endpoint | None]] = []
        self.notices: list[tuple[str, str]] = []
        self.snapshots: list[SnapshotReport] = []
        self.stopped: list[FastQuorumError | None] = []
        self.watches_commits = False

    def on_committed(self, high_watermark: int) -> None:
        self.committed.append(high_watermark)

    def on_leadership(self, epoch: int, leader_id: int, endpoint: Endpoint | None, is_self: bool, reason: str) -> None:
        self.leaderships.append((epoch, leader_id, is_self))
        self.reasons.append(reason)

    def on_disk_full(self, hindrance: str) -> None:
        self.full.append(bool(hindrance))

    def on_other_cluster(self, node_id: int, endpoint: Endpoint | None) -> None:
        self.foreign.append((node_id, endpoint))

    def on_notice(self, event: str, sentence: str) -> None:
        self.notices.append((event, sentence))

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        self.reach.append((peer.node_id, is_reached))

    def on_snapshot(self, report: SnapshotReport) -> None:
        self.snapshots.append(report)

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.stopped.append(error)


class FakeSnapshots:
    """A SnapshotWriter whose thread runs when told to."""

    def __init__(self, rig: "Rig") -> None:
        self.begun: list[OffsetAndEpoch] = []
        self._rig = rig
        self._pending: list[tuple[OffsetAndEpoch, Iterable[bytes], Callable[[CheckpointState | FastQuorumError], None]]]
        self._pending = []

    def begin(
        self,
        snapshot: OffsetAndEpoch,
        batches: Iterable[bytes],
        done: Callable[[CheckpointState | FastQuorumError], None],
    ) -> None:
        self.begun.append(snapshot)
        self._pending.append((snapshot, batches, done))

    def finish(self) -> None:
        """The one that was begun is written."""
        rig = self._rig
        ((snapshot, batches, done),) = self._pending
        self._pending.clear()
        try:
            done(write_snapshot(rig.disk, rig.kernels, LOG_DIRECTORY, snapshot, batches))
        except FastQuorumError as error:
            done(error)
        rig.replica.on_tick(rig.now_us)


@dataclass
class Ticket:
    """Waits for an append or a barrier."""

    offsets: list[int] = field(default_factory=list)
    errors: list[FastQuorumError] = field(default_factory=list)

    def committed(self, base_offset: int) -> None:
        self.offsets.append(base_offset)

    def passed(self, high_watermark: int) -> None:
        self.offsets.append(high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        self.errors.append(error)


class Rig:
    """Replica 1 of some voters, at a moment of its own."""

    def __init__(
        self,
        *voter_ids: int,
        kind: LogKind = LogKind.USER,
        config: QuorumConfig | None = None,
        state: ElectionState | None = None,
        versions: ApiVersionsResponse | None = None,
        files: Mapping[str, bytes] | None = None,
        first_records: tuple[bytes, ...] = (),
        room_bytes: int | None = None,
        controller: ControllerSettings | None = None,
        chance: int = 1,
    ) -> None:
        """`files` are on the disk before it starts; `room_bytes` is what it has room for beside them; `chance` is the
        seed of all that it draws."""
        self.config = config or QuorumConfig(preallocate_bytes=4096)
        self.versions = versions or api_versions()
        """What its peers speak."""
        self.journal: list[tuple[str, Any]] = []
        self.transport = FakeTransport(self.journal)
        self.states = FakeStates(self.journal)
        self.states.state = state
        self.listener = FakeListener()
        self.flusher = FakeFlusher()
        self.disk = FakeDisk()
        self.disk.make_directory(LOG_DIRECTORY)
        for name, data in (files or {}).items():
            self.disk.replace_file(name, data)
        self.disk.room_bytes = room_bytes
        self.kernels = load("pure")
        self.log = Log.open(self.disk, self.kernels, self.config, self.flusher)
        self.now_us = 1_000_000
        self.wall_clock_ms = WALL_CLOCK_MS
        self.snapshots = FakeSnapshots(self)
        self.lock = threading.Lock()
        self._requests: dict[tuple[int, int], tuple[int, int]] = {}
        self._correlation_id = 100
        member = Member(
            key=key(1),
            cluster_id=CLUSTER,
            voters=VoterSet([Voter(key(node_id), (endpoint(node_id),)) for node_id in voter_ids or (1,)]),
            kraft_version=0,
            log_kind=kind,
            topic_name=TOPIC,
            listeners=(endpoint(1),),
            first_records=first_records,
            controller=controller,
        )
        ports = Ports(
            transport=self.transport,
            lock=self.lock,
            states=self.states,
            listener=self.listener,
            clock_ms=lambda: self.wall_clock_ms,
            random=random.Random(chance),
            snapshots=self.snapshots,
        )
        self.shell = lane_shell(member, self.config, self.kernels, load_lane("pure"), self.log, ports)
        self.replica = assemble(member, self.config, self.kernels, self.shell, self.log, ports)
        self.replica.start(self.now_us)

    # --- time and disk ------------------------------------------------------------------------------------------------

    def pass_time(self, us: int) -> None:
        """So much time passes; every deadline in it is met."""
        until = self.now_us + us
        while 0 <= self.replica.deadline_us <= until:
            self.now_us = max(self.replica.deadline_us, self.now_us + 1)
            self.replica.on_tick(self.now_us)
        self.now_us = max(until, self.now_us)

    def sync(self) -> None:
        """All that is written reaches the disk."""
        while self.flusher.pending:
            self.replica.on_flush(self.flusher.run(), 0, self.now_us)

    def work(self) -> None:
        """The replica's thread looks around, as `wake` asks it to."""
        self.replica.work(self.now_us)

    # --- whoever calls ------------------------------------------------------------------------------------------------

    def append(self, *values: bytes) -> Ticket:
        ticket = Ticket()
        self.shell.append(values, ticket, self.now_us)
        return ticket

    def barrier(self) -> Ticket:
        ticket = Ticket()
        self.shell.begin_barrier(ticket, self.now_us)
        return ticket

    # --- connections to it --------------------------------------------------------------------------------------------

    def accept(self) -> int:
        return self.transport.accept()

    def ask(self, connection: int, message: Message, version: int) -> int:
        """A request comes in; its correlation id."""
        self.ask_frame(connection, self.frame_of(message, version))
        return self._correlation_id

    def frame_of(self, message: Message, version: int) -> bytes:
        """A client's request."""
        self._correlation_id += 1
        return encode_request(request_header(message, version, self._correlation_id, "client"), message)

    def ask_frame(self, connection: int, frame: bytes) -> None:
        self.ask_together((connection, frame))

    def ask_together(self, *frames: tuple[int, bytes]) -> None:
        """Requests come in with one another; what is none has no answer."""
        for connection, frame in frames:
            with suppress(WireError):
                header, _ = decode_request(frame)
                self._requests[connection, header.correlation_id] = (header.request_api_key, header.request_api_version)
        self.replica.on_frames(frames, self.now_us)

    def fetch(self, connection: int, node_id: int, offset: int, **fields: Any) -> None:
        """A replica's Fetch."""
        self._correlation_id += 1
        fields.setdefault("epoch", self.replica.raft.epoch)
        self.ask_frame(connection, fetch_request(node_id, offset, correlation_id=self._correlation_id, **fields))

    def answers(self, connection: int) -> list[Message]:
        """What was answered on an incoming connection since the last look, in order."""
        return [message for _, message in self.numbered_answers(connection)]

    def numbered_answers(self, connection: int) -> list[tuple[int, Message]]:
        found = []
        for frame in self.transport.take(connection):
            requests_on = self._requests[connection, int.from_bytes(frame[:4], "big")]
            found.append(decode_response(frame, *requests_on))
        return found

    def answer_to(self, message: type[M], request: Message, version: int) -> M:
        """Ask on a connection of its own; the one answer."""
        connection = self.accept()
        self.ask(connection, request, version)
        (answer,) = self.answers(connection)
        assert isinstance(answer, message)
        return answer

    # --- connections it made ------------------------------------------------------------------------------------------

    def establish(self) -> list[int]:
        """The connections it began come up, and the handshake is answered as by one of its kind."""
        begun, self.transport.begun = self.transport.begun, []
        for connection in begun:
            if connection in self.transport.open:
                self.replica.on_connected(connection, self.now_us)
                self.shake_hands(connection)
        return begun

    def shake_hands(self, connection: int) -> None:
        (frame,) = self.transport.take(connection)
        header, message = decode_request(frame)
        assert isinstance(message, ApiVersionsRequest)
        answer = response_frame(header.correlation_id, ApiKey.API_VERSIONS, header.request_api_version, self.versions)
        self.replica.on_frame(connection, answer, self.now_us)

    def requests_on(self, connection: int) -> list[tuple[Any, Message]]:
        """(header, message) of what it sent on a connection that it made."""
        return [decode_request(frame) for frame in self.transport.take(connection)]

    def reply(self, connection: int, header: Any, message: Message) -> None:
        frame = response_frame(header.correlation_id, header.request_api_key, header.request_api_version, message)
        self.replica.on_frame(connection, frame, self.now_us)

    def outgoing(self, node_id: int) -> list[int]:
        return [number for number, at in self.transport.open.items() if at == endpoint(node_id)]

    # --- roles --------------------------------------------------------------------------------------------------------

    def lead(self) -> "Rig":
        """Elected by everybody; the epoch's first record is on this disk."""
        for _ in range(20):
            if self.replica.is_leader:
                break
            self.pass_time(200 * MS)
            self.establish()
            for connection in list(self.transport.open):
                if self.transport.open.get(connection) is not None:
                    self._grant(connection)
        assert self.replica.is_leader
        self.sync()
        return self

    def _grant(self, connection: int) -> None:
        for header, message in self.requests_on(connection):
            if isinstance(message, VoteRequest):
                self.reply(connection, header, self.vote_answer(message))

    @staticmethod
    def vote_answer(message: VoteRequest, *, granted: bool = True) -> VoteResponse:
        topic = VoteResponse.TopicData
        vote = message.topics[0].partitions[0]
        partition = topic.PartitionData(leader_id=NO_NODE, leader_epoch=vote.replica_epoch, vote_granted=granted)
        return VoteResponse(topics=[topic(topic_name="__cluster_metadata", partitions=[partition])])

    def follow(self, leader_id: int = 2, epoch: int = 5) -> int:
        """Told that somebody leads; the connection on which it fetches."""
        from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest

        topic = BeginQuorumEpochRequest.TopicData
        partition = topic.PartitionData(leader_id=leader_id, leader_epoch=epoch)
        begin = BeginQuorumEpochRequest(
            cluster_id=CLUSTER, topics=[topic(topic_name="__cluster_metadata", partitions=[partition])]
        )
        self.ask(self.accept(), begin, 1)
        self.establish()
        return self.shell._fetch_link.connection if self.shell._fetch_link is not None else -1


def partition_of(answer: Message) -> FetchResponse.FetchableTopicResponse.PartitionData:
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]
