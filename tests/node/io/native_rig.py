"""The native shell over real files and sockets, and peers that speak Fetch: what its tests are told with."""

import select
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fastquorum.kernels import OffsetIndex, SegmentFile, load
from fastquorum.kernels.codes import EVENT_FRAME, EVENT_SYNCED
from fastquorum.kernels.lane import (
    FetchAdmission,
    FollowerSession,
    LaneIdentity,
    LaneTimeouts,
    LeaderSession,
    Send,
)
from fastquorum.kernels.loan import LoanState, Zeros
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io.clock import now_us
from fastquorum.storage.log.preparing import AHEAD_LEAST_BYTES, AHEAD_STEP_BYTES
from fastquorum.types import METADATA_TOPIC_ID
from tests.lane.builders import (
    CLUSTER,
    Answer,
    Question,
    answers,
    control_batch,
    fetch_request,
    fetch_response,
    key,
    questions,
)

WAIT_S = 20.0
NEVER = 1 << 62
native = load_shell()
kernels = load("native")


def until(condition: Callable[[], bool], what: str) -> None:
    """Look again and again: for what no descriptor tells."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {WAIT_S} s"
        time.sleep(0)


def is_readable(source: Any, within_s: float = 0.0) -> bool:
    return bool(select.select([source], [], [], within_s)[0])


class Event(NamedTuple):
    kind: int
    connection: int
    frame: bytes
    token: int
    error: int


class Segment(NamedTuple):
    base_offset: int
    file: SegmentFile
    index: OffsetIndex
    size_bytes: int


class Peer:
    """The other end of one connection."""

    def __init__(self, sock: socket.socket, number: int, node_id: int) -> None:
        self.sock = sock
        self.number = number
        self.node_id = node_id
        self.correlation_id = 0
        sock.settimeout(WAIT_S)

    def send(self, *frames: bytes) -> None:
        """All in one write."""
        self.sock.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    def fetch_frame(self, offset: int, **fields: Any) -> bytes:
        self.correlation_id += 1
        return fetch_request(self.node_id, offset, correlation_id=self.correlation_id, **fields)

    def fetch(self, offset: int, **fields: Any) -> None:
        self.send(self.fetch_frame(offset, **fields))

    def frame(self) -> bytes | None:
        """The next one; None at the end of the stream."""
        head = self._exactly(4)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def frames(self) -> list[bytes]:
        """All until the end of the stream."""
        found = []
        while (frame := self.frame()) is not None:
            found.append(frame)
        return found

    def answer(self) -> Answer:
        frame = self.frame()
        assert frame is not None, "the connection ended"
        (answer,) = answers([Send(self.number, frame)])
        return answer

    def question(self) -> Question:
        frame = self.frame()
        assert frame is not None, "the connection ended"
        (question,) = questions([Send(self.number, frame)])
        return question

    def reply(self, question: Question, records: bytes = b"", **fields: Any) -> None:
        self.send(fetch_response(question.correlation_id, records, **fields))

    def is_silent(self) -> bool:
        return not is_readable(self.sock)

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.sock.recv(size - len(data))
            except ConnectionResetError:  # closed with something of ours unread; what came before was received first
                piece = b""
            if not piece:
                assert not data, f"the connection ended within a frame, after {bytes(data)!r}"
                return None
            data += piece
        return bytes(data)


class Rig:
    """One shell. Its log begins with the control batch of epoch 5, synced."""

    def __init__(
        self,
        directory: Path,
        *,
        node_id: int = 1,
        segment_bytes: int = 1 << 24,
        batch_bytes_max: int = 1 << 16,
        frame_bytes_max: int = 1 << 24,
        records_max: int = 100_000,
        bytes_max: int = 1 << 26,
        busy_poll_us: int = 0,
        alone_us_max: int = 0,
    ) -> None:
        self.directory = directory
        self.shell = native.Shell(
            LaneIdentity(key(node_id), CLUSTER, METADATA_TOPIC_ID),
            batch_bytes_max,
            frame_bytes_max=frame_bytes_max,
            records_max=records_max,
            bytes_max=bytes_max,
            busy_poll_us=busy_poll_us,
            alone_us_max=alone_us_max,
        )
        self.segment_bytes = segment_bytes
        self.zeros = Zeros(AHEAD_LEAST_BYTES, AHEAD_STEP_BYTES)
        self.segments: list[Segment] = []
        self.peers: list[Peer] = []
        self.handed_up: list[tuple[int, bytes]] = []
        self.events: list[Event] = []
        self._taken: list[tuple[int, int]] = []
        self.unparked: list[tuple[int, int, int]] = []
        first = control_batch(0, 5)
        self.loan = LoanState(
            start_offset=0,
            end_offset=1,
            size_bytes=len(first),
            prepared_bytes=len(first),
            max_timestamp_ms=1_000,
            flushed=(1, 0, len(first)),
            generation=0,
            last_epoch=5,
            ticket=None,
            is_flush_wanted=False,
            next_token=1,
        )
        self.producers = kernels.Producers(0)
        self.producers.appended(None, 0, 1)
        self.add_segment(0, first)

    def forget_shell(self) -> None:
        """The last reference to it."""
        self.shell.hold_syncs(False)
        self.shell.end_threads()
        del self.shell

    def close(self) -> None:
        if hasattr(self, "shell"):
            self.forget_shell()
        for peer in self.peers:
            peer.sock.close()
        for segment in self.segments:
            segment.file.close()

    # --- the log ------------------------------------------------------------------------------------------------------

    def add_segment(self, base_offset: int, data: bytes = b"") -> None:
        file = kernels.SegmentFile(str(self.directory / f"{base_offset:020}.log"), "create")
        file.write(0, data)
        self.segments.append(Segment(base_offset, file, kernels.OffsetIndex(base_offset), len(data)))

    def lend(self) -> None:
        self.shell.lend(self.loan, self.segments, self.segment_bytes, self.zeros, self.producers)

    def take_back(self) -> LoanState:
        self.loan = self.shell.take_back()
        self.segments[-1] = self.segments[-1]._replace(size_bytes=self.loan.size_bytes)
        return self.loan

    def truncate_to_control(self) -> None:
        """What storage.Log does: the bytes are gone, and the generation is another one."""
        size = len(control_batch(0, 5))
        self.segments[-1].file.zero_fill(size, self.loan.size_bytes)
        self.segments[-1] = self.segments[-1]._replace(size_bytes=size)
        self.loan = self.loan._replace(
            end_offset=1, size_bytes=size, flushed=(1, 0, size), generation=self.loan.generation + 1
        )

    def roll(self) -> None:
        """What the driver does when the segment is full."""
        self.shell.freeze()
        loan = self.take_back()
        self.segments[-1].file.sync()
        self.shell.room_sought()
        self.add_segment(loan.end_offset)
        self.loan = loan._replace(size_bytes=0, prepared_bytes=0, max_timestamp_ms=-1)
        self.lend()
        self.shell.resume(now_us())
        self.count_syncs()

    def count_syncs(self) -> None:
        """Syncs that ended while the log was taken back are the lane's to count when it is lent again."""
        self.collect()
        for event in [event for event in self.events if event.kind == EVENT_SYNCED]:
            self.events.remove(event)
            self.shell.synced(event.token, event.error, now_us())

    def stored(self) -> bytes:
        """All batches, as the files have them."""
        state = self.shell.look()
        sizes = [segment.size_bytes for segment in self.segments[:-1]] + [state.size_bytes]
        return b"".join(segment.file.read(0, size) for segment, size in zip(self.segments, sizes, strict=True) if size)

    # --- the lane -----------------------------------------------------------------------------------------------------

    def lead(self, voters: Iterable[int] = (1, 2, 3), *, epoch_start: int = 0, fetch_wait_us_max: int = NEVER) -> None:
        self.lend()
        session = LeaderSession(
            epoch=5,
            voters=tuple(key(voter) for voter in voters),
            epoch_start=epoch_start,
            high_watermark=-1,
            timeouts=LaneTimeouts(fetch_wait_us_max),
        )
        self.shell.open_leader(session, now_us())

    def follow(self, peer: Peer) -> None:
        """The peer is the leader, replica 1."""
        self.lend()
        session = FollowerSession(
            epoch=5, leader_id=1, high_watermark=-1, attempt=1, fetch_bytes_max=1 << 20, fetch_wait_us_max=500_000
        )
        self.shell.open_follower(session, now_us())
        self.shell.attach_leader(peer.number, 18, now_us())

    def connect(self, node_id: int = 9) -> Peer:
        """An accepted connection."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        number = 100 + len(self.peers)
        assert self.shell.add(number, ours.fileno(), True, now_us()) == 0
        ours.detach()
        self.peers.append(Peer(theirs, number, node_id))
        return self.peers[-1]

    def voter(self, node_id: int, offset: int = 1, *, is_voter: bool = True, **fields: Any) -> Peer:
        """A connection whose first Fetch raft/ has validated."""
        peer = self.connect(node_id)
        peer.correlation_id += 1
        admission = FetchAdmission(
            connection=peer.number,
            correlation_id=peer.correlation_id,
            api_version=18,
            peer=key(node_id),
            is_voter=is_voter,
            fetch_offset=offset,
            request_high_watermark=fields.pop("high_watermark", NEVER),
            max_wait_us=fields.pop("max_wait_us", NEVER >> 1),
            bytes_max=fields.pop("bytes_max", 1 << 20),
        )
        assert not fields
        self.shell.admit(admission, now_us())
        return peer

    def observer(self, node_id: int, offset: int = 1, **fields: Any) -> Peer:
        """The same, of a replica that is no voter."""
        return self.voter(node_id, offset, is_voter=False, **fields)

    def append(self, value: bytes = b"value") -> Any:
        """A slot that is told."""
        slot = native.Slot()
        offset = self.shell.append_slot(value, slot)
        assert offset >= 0, f"verdict {offset}"
        return slot

    # --- news ---------------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        handed_up, events, unparked = self.shell.take_news()
        self._taken += [(connection, len(frame)) for connection, frame in handed_up]
        self._taken += [(each[1], len(each[2])) for each in events if each[0] == EVENT_FRAME]
        self.handed_up += handed_up
        self.events += [Event(*event) for event in events]
        self.unparked += unparked

    def deal_with_frames(self) -> None:
        """All that were taken, as far as the shell is concerned."""
        taken, self._taken = self._taken, []
        self.shell.frames_done(taken)

    def await_news(self, condition: Callable[[], object]) -> None:
        """Take news, each time the eventfd says so, until the condition holds."""
        self.collect()
        while not condition():
            assert is_readable(self.shell, WAIT_S), f"no news; so far {self.handed_up} {self.events} {self.unparked}"
            self.collect()


def result(slot: Any) -> int:
    """What the slot is told."""
    assert slot.wait(WAIT_S), "nobody told the slot"
    outcome: int = slot.outcome
    return outcome
