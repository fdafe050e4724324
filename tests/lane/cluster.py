"""Three replicas around lanes: logs in memory, queues for a network, just enough of raft/ to decide what is handed up.

Every effect is checked against a global account: what was committed, once and for ever. A deposed leader may go on
without knowing it.
"""

from collections import deque
from collections.abc import Iterator

from fastquorum.kernels.lane import (
    Advanced,
    BarrierDone,
    Connection,
    FetchAdmission,
    FollowerSession,
    HandUp,
    Lane,
    LaneIdentity,
    LaneMode,
    LaneTimeouts,
    LeaderSession,
    Output,
    Send,
)
from fastquorum.kernels.pure import batch_headers
from fastquorum.types import METADATA_TOPIC_ID
from fastquorum.wire import decode_request, decode_response
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from tests.lane.builders import CLUSTER, Batch, Make, MemoryLog, control_batch, key

VOTERS = (1, 2, 3)
MAJORITY = 2


class Node:
    """One replica: its log, its lane, its connection to the leader, and frames that wait for it."""

    def __init__(self, node_id: int, make: Make, log: MemoryLog) -> None:
        self.id = node_id
        self.make = make
        self.log = log
        self.lane = self.new_lane()
        self.epoch = 0
        self.attempt = 0
        self.connection: Connection = -1
        self.version = 18
        self.in_box: deque[tuple[Connection, bytes | None]] = deque()
        """Frames on their way here; None: the other end has closed the connection."""
        self.accepted_end = 0
        """Exclusive end of the appends it accepted in its present session."""

    def new_lane(self) -> Lane:
        return self.make(LaneIdentity(key(self.id), CLUSTER, METADATA_TOPIC_ID), self.log, 4_096)


class Cluster:
    """Replicas 1, 2 and 3, the connections between them, and the account of what was promised."""

    def __init__(self, makes: list[Make], log: type[MemoryLog] = MemoryLog) -> None:
        self.nodes = {node_id: Node(node_id, make, log()) for node_id, make in zip(VOTERS, makes, strict=True)}
        self.now_us = 0
        self.connections = 0
        self.ends: dict[Connection, tuple[int, int]] = {}
        """Connections, ever: (follower, leader)."""
        self.live: set[Connection] = set()
        self.requests: dict[Connection, bytes] = {}
        """The correlation id of the Fetch that waits for its answer."""
        self.leaders: dict[int, int] = {}
        """The leader of each epoch."""
        self.committed: list[Batch] = []
        self.barriers: dict[tuple[int, int], int] = {}
        """(node, barrier): the committed end when it began."""
        self.barriers_done = 0

    @property
    def committed_end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    @property
    def epoch(self) -> int:
        return max(self.leaders, default=0)

    # --- what lanes order -------------------------------------------------------------------------------------------

    def perform(self, node: Node, out: list[Output]) -> None:
        for output in out:
            match output:
                case Send(connection, frame):
                    self.send(node, connection, bytes(frame))
                case HandUp(connection, frame):
                    assert node.lane.is_frozen
                    self.decide(node, connection, frame)
                case Advanced(high_watermark):
                    self.account(node, high_watermark)
                case BarrierDone(barrier, high_watermark):
                    begun = self.barriers.pop((node.id, barrier))
                    if high_watermark >= 0:
                        assert high_watermark >= begun, "a read that misses what was committed before it was asked for"
                        self.barriers_done += 1

    def send(self, node: Node, connection: Connection, frame: bytes) -> None:
        assert not node.lane.is_frozen, "sent while raft/ decides"
        if connection not in self.live:
            return
        follower, leader = self.ends[connection]
        if node.id == follower:
            _, message = decode_request(frame)
            assert isinstance(message, FetchRequest)
            offset = message.topics[0].partitions[0].fetch_offset
            assert offset <= node.log.durable_end, "a Fetch claims what is not on this disk"
            assert offset == node.log.end_offset
            assert connection not in self.requests, "a second Fetch in flight"
            self.requests[connection] = frame[4:8]
        else:
            assert self.requests.pop(connection, b"") == frame[:4], "an answer to nobody's question"
            assert node.lane.mode is LaneMode.LEADER, "sent after the session ended"
        self.nodes[leader if node.id == follower else follower].in_box.append((connection, frame))

    def account(self, node: Node, high_watermark: int) -> None:
        """A high watermark moved: a leader's must be on a majority of disks, and nothing committed may ever differ."""
        assert high_watermark <= node.log.end_offset
        prefix = [batch for batch in node.log.batches if batch.next_offset <= high_watermark]
        assert (prefix[-1].next_offset if prefix else 0) == high_watermark, "inside a batch"
        common = min(len(prefix), len(self.committed))
        assert prefix[:common] == self.committed[:common], "committed differently"
        if node.lane.mode is LaneMode.LEADER:
            holders = [
                other
                for other in self.nodes.values()
                if other.log.durable_end >= high_watermark and other.log.batches[: len(prefix)] == prefix
            ]
            assert len(holders) >= MAJORITY, "committed what is not on a majority of disks"
            assert prefix[-1].epoch == node.epoch, "committed without a record of the own epoch"
        else:
            assert high_watermark <= self.committed_end, "a follower is ahead of every leader"
        if len(prefix) > len(self.committed):
            self.committed = prefix

    # --- just enough of raft/ ---------------------------------------------------------------------------------------

    def decide(self, node: Node, connection: Connection, frame: bytes) -> None:
        node.lane.freeze(self.now_us)
        if self.ends[connection][0] == node.id:
            self.decide_response(node, frame)
        else:
            self.decide_request(node, connection, frame)
        self.perform(node, node.lane.resume(self.now_us))

    def decide_request(self, node: Node, connection: Connection, frame: bytes) -> None:
        header, message = decode_request(frame)
        assert isinstance(message, FetchRequest)
        partition = message.topics[0].partitions[0]
        offset = partition.fetch_offset
        before = [batch.epoch for batch in node.log.batches if batch.next_offset == offset]
        valid = offset == 0 or before == [partition.last_fetched_epoch]
        if node.lane.mode is not LaneMode.LEADER or partition.current_leader_epoch != node.epoch or not valid:
            self.disconnect(connection, node)
            return
        admission = FetchAdmission(
            connection,
            header.correlation_id,
            header.request_api_version,
            key(self.ends[connection][0]),
            True,
            offset,
            partition.high_watermark,
            message.max_wait_ms * 1_000,
            message.max_bytes,
        )
        self.perform(node, node.lane.admit(admission, self.now_us))

    def decide_response(self, node: Node, frame: bytes) -> None:
        """Records that the lane would not judge: a control batch, another epoch."""
        _, message = decode_response(frame, 1, node.version)
        assert isinstance(message, FetchResponse)
        records = bytes(message.responses[0].partitions[0].records or b"")
        for header in batch_headers(records):
            if header.base_offset == node.log.end_offset and node.log.last_epoch <= header.leader_epoch <= node.epoch:
                node.log.append_batch(
                    records[header.position : header.position + header.size_bytes],
                    base_offset=header.base_offset,
                    next_offset=header.last_offset + 1,
                    epoch=header.leader_epoch,
                    timestamp_ms=0,
                )
                node.log.request_flush()

    def close(self, node: Node) -> None:
        node.accepted_end = 0
        _, out = node.lane.close(self.now_us)
        assert not any(isinstance(output, Send) for output in out)
        self.perform(node, out)
        self.perform(node, node.lane.resume(self.now_us))
        self.disconnect_all(node)

    def disconnect_all(self, node: Node) -> None:
        for connection in sorted(self.live):
            if node.id in self.ends[connection]:
                self.disconnect(connection, node)
        node.in_box.clear()

    def disconnect(self, connection: Connection, by: Node) -> None:
        """One end closes; the other learns of it behind the frames that are on their way to it."""
        self.live.discard(connection)
        self.requests.pop(connection, None)
        follower, leader = self.ends[connection]
        self.closed(by, connection)
        self.nodes[leader if by.id == follower else follower].in_box.append((connection, None))

    def closed(self, node: Node, connection: Connection) -> None:
        if node.connection == connection:
            node.connection = -1
        self.perform(node, node.lane.detach(connection, self.now_us))

    def elect(self, candidate: int, supporter: int) -> bool:
        """The candidate leads a new epoch if the supporter's log is not ahead; the third learns of it later."""
        node, other = self.nodes[candidate], self.nodes[supporter]
        mine, theirs = ((each.log.last_epoch, each.log.end_offset) for each in (node, other))
        if mine < theirs or node is other:
            return False
        epoch = self.epoch + 1
        self.close(node)
        node.epoch = epoch
        assert node.log.batches[: len(self.committed)] == self.committed, "a leader lacks what was committed"
        self.leaders[epoch] = candidate
        start = node.log.end_offset
        node.log.append_batch(
            control_batch(start, epoch), base_offset=start, next_offset=start + 1, epoch=epoch, timestamp_ms=0
        )
        node.log.request_flush()
        session = LeaderSession(epoch, tuple(map(key, VOTERS)), start, -1, LaneTimeouts(500_000))
        self.perform(node, node.lane.open_leader(session, self.now_us))
        self.follow(supporter)
        return True

    def follow(self, node_id: int) -> None:
        """The node learns who leads the newest epoch, drops what that leader's log lacks, and follows."""
        node, leader = self.nodes[node_id], self.nodes[self.leaders[self.epoch]]
        assert node is not leader
        self.close(node)
        node.epoch = self.epoch
        same = 0
        for mine, theirs in zip(node.log.batches, leader.log.batches, strict=False):
            if mine != theirs:
                break
            same = mine.next_offset
        if same < node.log.end_offset:
            held = [each.log.batches[: len(self.committed)] == self.committed for each in (node, leader)]
            assert held[1] or not held[0]
            node.log.truncate(same)
        node.attempt += 1
        session = FollowerSession(self.epoch, leader.id, -1, node.attempt, 1_000, 500_000)
        self.perform(node, node.lane.open_follower(session, self.now_us))
        self.connect(node)

    def connect(self, node: Node) -> None:
        leader = self.leaders[node.epoch]
        if node.connection >= 0:
            self.disconnect(node.connection, node)
        self.connections += 1
        node.connection = self.connections
        self.ends[node.connection] = (node.id, leader)
        self.live.add(node.connection)
        self.perform(node, node.lane.attach_leader(node.connection, node.version, self.now_us))

    # --- what happens -----------------------------------------------------------------------------------------------

    def deliver(self, node: Node) -> bool:
        """The next frame arrives, unless raft/ is deciding."""
        if not node.in_box or node.lane.is_frozen:
            return False
        connection, frame = node.in_box.popleft()
        if frame is None:
            self.closed(node, connection)
            return True
        self.perform(node, node.lane.on_frame(connection, frame, self.now_us))
        return True

    def finish_sync(self, node: Node) -> bool:
        if node.log.syncing is None:
            return False
        generation, end = node.log.finish_sync()
        self.perform(node, node.lane.on_flushed(generation, end, self.now_us))
        return True

    def append(self, node: Node, count: int) -> int:
        offset, out = node.lane.append([b"v" * 20] * count, 0, self.now_us)
        self.perform(node, out)
        node.accepted_end = max(node.accepted_end, offset + count if offset >= 0 else 0)
        return offset

    def begin_barrier(self, node: Node) -> None:
        begun = self.committed_end
        number, out = node.lane.begin_barrier(self.now_us)
        if number > 0:
            self.barriers[node.id, number] = begun
        self.perform(node, out)

    def crash(self, node: Node) -> None:
        """Lose the process and what was not synced; it comes back knowing nothing but its disk."""
        for key_ in [each for each in self.barriers if each[0] == node.id]:
            del self.barriers[key_]
        self.disconnect_all(node)
        node.log.crash()
        node.accepted_end = 0
        node.lane = node.new_lane()

    def freeze(self, node: Node) -> None:
        accepted = node.accepted_end
        state = node.lane.freeze(self.now_us)
        assert state.log_end == node.log.end_offset
        if node.lane.mode is LaneMode.LEADER and not node.lane.has_failed:
            assert state.log_end >= accepted, "raft/ decides without what was accepted"

    def resume(self, node: Node) -> None:
        self.perform(node, node.lane.resume(self.now_us))

    def learn(self, node: Node) -> None:
        leader = self.nodes[self.leaders[self.epoch]]
        if node is not leader and leader.lane.mode is LaneMode.LEADER:
            self.follow(node.id)

    def reconnect(self, node: Node, version: int) -> None:
        if node.lane.mode is LaneMode.FOLLOWER and self.nodes[self.leaders[node.epoch]].epoch == node.epoch:
            node.version = version
            self.connect(node)

    def heal(self) -> None:
        """The faults stop: everything that the last leader accepted commits, everywhere."""
        nodes = list(self.nodes.values())
        leader = max(nodes, key=lambda node: (node.log.last_epoch, node.log.end_offset))
        first, second = (node for node in nodes if node is not leader)
        assert self.elect(leader.id, first.id)
        self.follow(second.id)
        assert self.append(leader, 3) > 0
        self.begin_barrier(leader)
        before = self.barriers_done
        for _ in range(600):
            moved = [self.deliver(node) | self.finish_sync(node) for node in nodes]
            if not any(moved):
                if all(node.lane.high_watermark == leader.log.end_offset for node in nodes):
                    break
                self.tick(600_000)
        assert self.committed_end == leader.log.end_offset
        assert {node.log.bytes for node in nodes} == {leader.log.bytes}
        assert {node.lane.high_watermark for node in nodes} == {leader.log.end_offset}
        assert self.barriers_done == before + 1

    def tick(self, after_us: int) -> None:
        self.now_us += after_us
        for node in self.nodes.values():
            self.perform(node, node.lane.on_tick(self.now_us))

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        nodes = list(self.nodes.values())
        return ((a, b) for number, a in enumerate(nodes) for b in nodes[number + 1 :])

    def check(self) -> None:
        """Log matching: the same epoch at the same offset means the same log up to there."""
        for a, b in self.pairs():
            for number in range(min(len(a.log.batches), len(b.log.batches)) - 1, -1, -1):
                mine, theirs = a.log.batches[number], b.log.batches[number]
                if (mine.base_offset, mine.epoch) == (theirs.base_offset, theirs.epoch):
                    assert a.log.batches[: number + 1] == b.log.batches[: number + 1], "logs do not match"
                    break
        holders = [node for node in self.nodes.values() if node.log.batches[: len(self.committed)] == self.committed]
        assert len(holders) >= MAJORITY, "what was committed is not on a majority"
