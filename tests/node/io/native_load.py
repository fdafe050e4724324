"""A leader's native shell under load from all sides at once: callers, voters, strangers, and somebody who freezes,
closes, rolls and opens anew. What each of them sees is checked where it is seen, or noted for the end."""

import contextlib
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Record
from fastquorum.kernels.codes import EVENT_FRAME, EVENT_LOST, EVENT_SYNCED
from fastquorum.kernels.lane import FetchAdmission, LaneTimeouts, LeaderSession
from fastquorum.kernels.pure import batch_headers
from fastquorum.node.io.clock import now_us
from fastquorum.wire import ApiKey, ErrorCode, decode_request, decode_response
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.produce import ProduceResponse
from tests.lane.builders import control_batch, key

from .native_callers import Callers, look_around, read_barriers
from .native_rig import NEVER, WAIT_S, Peer, Rig, is_readable, kernels
from .produce_frames import PRODUCE_VERSION, a_batch, produce_api, produce_request, produce_response

HOOKS: Final = ("before-lock", "before-wake", "before-receive", "after-sync", "before-wait")
REQUESTS_WAITING: Final = 3
PRODUCED: Final = b"producer "
ENDED: Final = 0x3FFF_FFFF
"""Correlation id of a frame that says: the session of this epoch has ended."""
UNUSUAL: Final = b"\0\x34 nothing that a lane knows"


class Voter:
    """Fetches without an end; checks that its log is continued, and that nothing comes of an epoch that has ended."""

    def __init__(self, peer: Peer, seed: int) -> None:
        self.peer = peer
        self.offsets: dict[int, int] = {}
        """By the correlation id of the Fetch."""
        self.data = b""
        self.offset = 1
        self.answered: set[int] = set()
        self._epoch = self._last_epoch = 5
        self._ended = 0
        self._chance = random.Random(seed)

    def fetch(self) -> None:
        if self._chance.random() < 0.02:
            self.peer.send(UNUSUAL)
        frame = self.peer.fetch_frame(
            self.offset, epoch=self._epoch, last_epoch=self._last_epoch, high_watermark=0, max_wait_ms=20
        )
        self.offsets[self.peer.correlation_id] = self.offset
        self.peer.send(frame)

    def run(self) -> None:
        while (frame := self.peer.frame()) is not None:
            if int.from_bytes(frame[:4], "big") == ENDED:
                self._ended = int.from_bytes(frame[4:], "big")
            else:
                self._answered(frame)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.fetch()

    def _answered(self, frame: bytes) -> None:
        correlation_id, message = decode_response(frame, 1, 18)
        assert isinstance(message, FetchResponse)
        (partition,) = message.responses[0].partitions
        assert correlation_id not in self.answered, "answered twice"
        self.answered.add(correlation_id)
        assert correlation_id == self.peer.correlation_id
        epoch = partition.current_leader.leader_epoch
        assert epoch > self._ended, f"an answer of epoch {epoch} came after the end of {self._ended}"
        assert epoch >= self._epoch
        self._epoch = epoch
        records = bytes(partition.records or b"")
        for header in batch_headers(records):
            assert header.crc_valid
            assert header.base_offset == self.offset, "it continues the log"
            assert header.leader_epoch >= self._last_epoch
            self.offset, self._last_epoch = header.last_offset + 1, header.leader_epoch
        self.data += records


class Producer:
    """A Kafka client with a few requests on the way; checks that it is answered in their order."""

    def __init__(self, peer: Peer, stopped: threading.Event) -> None:
        self.peer = peer
        self.outcomes: dict[bytes, int] = {}
        """The offset of each value that was answered for."""
        self.requests_waiting = REQUESTS_WAITING
        """At most so many are under way."""
        self._stopped = stopped

    def run(self) -> None:
        waiting: deque[tuple[int, bytes]] = deque()
        number = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # all are closed at the end
            while waiting or not self._stopped.is_set():
                while len(waiting) < self.requests_waiting and not self._stopped.is_set():
                    number += 1
                    waiting.append((number, PRODUCED + b"%d" % number))
                    self.peer.send(produce_request(a_batch(waiting[-1][1]), number=number))
                frame = self.peer.frame()
                if frame is None:
                    return
                self._answered(frame, *waiting.popleft())

    def _answered(self, frame: bytes, number: int, value: bytes) -> None:
        correlation_id, message = decode_response(frame, ApiKey.PRODUCE, PRODUCE_VERSION)
        assert correlation_id == number, "answered out of its turn"
        assert isinstance(message, ProduceResponse)
        (answered,) = message.responses[0].partition_responses
        assert answered.error_code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if answered.error_code == ErrorCode.NONE:
            self.outcomes[value] = answered.base_offset


class Load:
    """All of it, over one rig."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.chance = random.Random(seed)
        self.epoch = 5
        self.callers = Callers(rig)
        self.voters = [Voter(rig.connect(node_id), seed + node_id) for node_id in (2, 3)]
        self.producer = Producer(rig.connect(), self.callers.stopped)
        self.failed: list[BaseException] = []
        self._passed_up = 0
        """Requests of the producer that were passed up."""
        self._high_watermark = -1
        self._ended = 0
        rig.shell.serve_produce(produce_api())
        rig.lend()
        self._open()

    def run(self, turns: int) -> None:
        rig, strangers = self.rig, threading.Event()
        jobs = [partial(self.callers.run_slots, name) for name in range(3)]
        threads = [
            self._thread(job)
            for job in (*jobs, partial(self.callers.run_mail, 7), partial(self.callers.run_turns, 8), self.producer.run)
        ]
        others = [self._thread(voter.run) for voter in self.voters]
        for job in (self._strangers, partial(look_around, rig), partial(read_barriers, rig)):
            others.append(self._thread(partial(job, strangers)))
        for voter in self.voters:
            voter.fetch()
        for _ in range(turns):
            self._serve()
            if self.failed:
                break
            self.chance.choice((self._pause, self._pause, self._change_session, self._serve))()
        # Each term may have been too short for the one producer among so many: the last is as long as it needs. Of
        # several requests under way each may come before Python has dealt with the one before, and is Python's then.
        self.producer.requests_waiting = 1
        deadline = time.monotonic() + WAIT_S
        while not self.producer.outcomes and not self.failed and time.monotonic() < deadline:
            self._serve()
        self.callers.stopped.set()
        while any(thread.is_alive() for thread in threads) and not self.failed:
            self._serve()
        strangers.set()
        self._end_session()
        rig.shell.close_all(now_us())
        for thread in threads + others:
            thread.join(60)
            assert not thread.is_alive()
        self.callers.collect()
        if self.failed:
            raise self.failed[0]

    def _thread(self, job: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                job()
            except (AssertionError, OSError, FastQuorumError, IndexError) as error:
                self.failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _strangers(self, over: threading.Event) -> None:
        """Connections that come, say something that no lane serves, and go."""
        number = 1_000
        while not over.wait(0.0005):
            number += 1
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            assert self.rig.shell.add(number, ours.fileno(), True, now_us()) == 0
            ours.detach()
            with contextlib.suppress(BrokenPipeError):  # all are closed at the end
                theirs.sendall(b"\0\0\0\x02hi\0\0\0\x05ha")
            if number % 2:
                self.rig.shell.close_connection(number)
            theirs.close()

    # --- raft's side --------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Deal with the news like the replica's thread."""
        shell = self.rig.shell
        is_readable(shell, 0.002)
        handed_up, events, unparked = shell.take_news()
        frames = [*handed_up]
        for kind, connection, frame, token, error in events:
            if kind == EVENT_FRAME:
                frames.append((connection, frame))
            elif kind == EVENT_SYNCED:
                assert error == 0
                shell.synced(token, error, now_us())
            elif kind == EVENT_LOST:
                shell.close_connection(connection)
        for connection, correlation_id, _ in unparked:
            self._admit(connection, correlation_id)
        for connection, frame in frames:
            if connection == self.producer.peer.number:
                self._refuse(frame)
            elif frame != UNUSUAL and shell.knows(connection) and frame != b"hi":
                header, message = decode_request(frame)
                assert isinstance(message, FetchRequest)
                self._admit(connection, header.correlation_id)
        if shell.room_wanted:
            self._roll()
        shell.resume(now_us())
        shell.frames_done([(connection, len(frame)) for connection, frame in frames])
        self.callers.drain()
        assert shell.high_watermark >= self._high_watermark, "it never falls"
        self._high_watermark = shell.high_watermark
        assert not shell.has_failed, shell.failure()

    def _admit(self, connection: int, correlation_id: int) -> None:
        voter = next(voter for voter in self.voters if voter.peer.number == connection)
        admission = FetchAdmission(
            connection=connection,
            correlation_id=correlation_id,
            api_version=18,
            peer=key(voter.peer.node_id),
            is_voter=True,
            fetch_offset=voter.offsets[correlation_id],
            request_high_watermark=0,
            max_wait_us=20_000,
            bytes_max=1 << 20,
        )
        self.rig.shell.admit(admission, now_us())

    def _refuse(self, frame: bytes) -> None:
        """A Produce that came to Python."""
        header, _ = decode_request(frame)
        code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        connection = self.producer.peer.number
        self.rig.shell.send(connection, produce_response(PRODUCE_VERSION, header.correlation_id, code))
        self._passed_up += 1
        self.rig.shell.settled(connection, self._passed_up)

    def _pause(self) -> None:
        """raft/ decides something, and the session stays as it is."""
        state = self.rig.shell.freeze()
        self.rig.take_back()
        assert self.rig.loan.end_offset == state.log_end
        self.rig.lend()
        self.rig.shell.resume(now_us())

    def _roll(self) -> None:
        shell = self.rig.shell
        shell.freeze()
        loan = self.rig.take_back()
        shell.room_sought()
        self.rig.segments[-1].file.sync()
        self.rig.add_segment(loan.end_offset)
        self.rig.loan = loan._replace(size_bytes=0, prepared_bytes=0, max_timestamp_ms=-1)
        self.rig.lend()

    def _end_session(self) -> None:
        shell = self.rig.shell
        state = shell.close()
        mark = ENDED.to_bytes(4, "big") + self.epoch.to_bytes(4, "big")
        for voter in self.voters:
            shell.send(voter.peer.number, mark)
        shell.fail_pending(-1_000 - self.epoch)
        self.rig.take_back()
        assert self.rig.loan.end_offset == state.log_end

    def _change_session(self) -> None:
        """Resigned, and elected again: the next epoch begins with a control batch, which the log's owner writes."""
        self._end_session()
        rig, loan = self.rig, self.rig.loan
        self.epoch += 1
        batch = control_batch(loan.end_offset, self.epoch)
        rig.segments[-1].file.write(loan.size_bytes, batch)
        size = loan.size_bytes + len(batch)
        rig.segments[-1] = rig.segments[-1]._replace(size_bytes=size)
        rig.loan = loan._replace(
            end_offset=loan.end_offset + 1,
            size_bytes=size,
            prepared_bytes=max(size, loan.prepared_bytes),
            last_epoch=self.epoch,
        )
        rig.lend()
        self._open()

    def _open(self) -> None:
        session = LeaderSession(
            epoch=self.epoch,
            voters=(key(1), key(2), key(3)),
            epoch_start=self.rig.loan.end_offset - 1,
            high_watermark=self.rig.shell.high_watermark,
            timeouts=LaneTimeouts(NEVER),
        )
        self.rig.shell.open_leader(session, now_us())

    # --- what must be so at the end -----------------------------------------------------------------------------------

    def check(self) -> None:
        stored = self.rig.stored()
        found: dict[bytes, int] = {}
        next_offset = 0
        for header in batch_headers(stored):
            assert header.crc_valid
            assert header.base_offset == next_offset, "the log is continuous"
            next_offset = header.last_offset + 1
            if not header.attributes & 0x20:
                for record in kernels.decode_records(stored, header.position):
                    self._note_record(found, record)
        produced = {value: found.pop(value) for value in list(found) if value.startswith(PRODUCED)}
        assert self.producer.outcomes, "a producer was answered"
        for value, outcome in self.producer.outcomes.items():
            assert outcome == produced[value] < self.rig.shell.high_watermark
        callers = self.callers
        assert callers.accepted, "something was appended"
        assert found == callers.accepted, "each accepted value is in the log once, where its caller was told"
        assert callers.outcomes.keys() == callers.accepted.keys(), "each is told"
        for value, outcome in callers.outcomes.items():
            assert outcome < 0 or outcome == callers.accepted[value]
            assert outcome < self.rig.shell.high_watermark
        assert any(outcome >= 0 for outcome in callers.outcomes.values()), "something was committed"
        for voter in self.voters:
            assert stored.find(voter.data) >= 0, "a voter has what the leader has"

    @staticmethod
    def _note_record(found: dict[bytes, int], record: Record) -> None:
        value = bytes(record.value or b"")
        assert value not in found, "written twice"
        found[value] = record.offset
