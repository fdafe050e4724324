"""The driver of the native shell: what the replica's thread and callers ask of it, in the words of `node.lane.port`.

Who owns what: everything of the lane, the sockets and the pending appends is native, under the native lock, which is
never held while Python runs. The log's end is the native side's while the lane goes on (`Log.lend`), and this side's
while it is frozen or closed: so raft's effects find the log they know. `lock` guards what is Python's alone: the log's
and the producers' books, and the appends that wait for raft/'s decision. Source: `kernels/lane.py` (the seven rules).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError
from fastquorum.kernels import Buffer, Kernels, OffsetIndex, Producers, SegmentFile, SteadyBeats
from fastquorum.kernels.lane import (
    Connection,
    FetchAdmission,
    HandUp,
    LaneMode,
    LaneSession,
    LaneState,
    LeaderSession,
    Unparked,
    same_session,
)
from fastquorum.kernels.loan import LoanState, Zeros
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io.arrivals import Arrival
from fastquorum.node.io.native.producers import NativeProducers
from fastquorum.node.lane.peer_events import FetchLink
from fastquorum.node.lane.port import NativeFastPath, with_answered
from fastquorum.node.lane.produce_answers import produce_answers
from fastquorum.node.ports import LaneLock
from fastquorum.storage.log.log import Log
from fastquorum.types import Micros, NodeId, Offset, Uuid
from fastquorum.wire import frames_of

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell
    from fastquorum.kernels.shell import SteadyBeats as NativeBeats


class Borrowing:
    """`storage.ports.Borrower` over the native shell: files as it knows them."""

    def __init__(self, shell: Shell, unwrapped: Callable[[SegmentFile], SegmentFile]) -> None:
        self._shell = shell
        self._unwrapped = unwrapped
        self.take_back = shell.take_back
        self.look = shell.look
        self.read_recent = shell.read_recent
        self.prepare = shell.prepare

    @property
    def end_offset(self) -> Offset:
        return self._shell.end_offset

    @property
    def flushed_end(self) -> Offset:
        return self._shell.flushed_end

    @property
    def is_flushing(self) -> bool:
        return self._shell.is_flushing

    def lend(
        self,
        state: LoanState,
        segments: Sequence[tuple[Offset, SegmentFile, OffsetIndex, int]],
        segment_bytes: int,
        zeros: Zeros,
        producers: Producers,
    ) -> None:
        unwrapped = [(base, self._unwrapped(file), index, size) for base, file, index, size in segments]
        self._shell.lend(state, unwrapped, segment_bytes, zeros, producers)


class NativeShell(NativeProducers):
    """Implements `node.lane.port.Shell`, as `LaneShell` explains it, and `NativeFastPath`. See the module for who owns
    what."""

    answer_beat = None

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        log: Log,
        lock: LaneLock,
        shell: Shell,
        mailbox: Mailbox,
        unwrapped: Callable[[SegmentFile], SegmentFile],
    ) -> None:
        """`mailbox` is collected by the replica's thread; `unwrapped` makes a file one of the native kernels'."""
        super().__init__(config=config, kernels=kernels, log=log, lock=lock, shell=shell, mailbox=mailbox)
        self._handed_up_sizes: list[tuple[Connection, int]] = []
        self.events: list[Arrival] = []
        """For the replica's loop: kind, connection, frame, a sync's token and errno (see `kernels.codes`)."""
        self._borrowing = Borrowing(shell, unwrapped)
        # What it takes, from any thread.
        self.stage_histograms = shell.stage_histograms
        self.trace_start = shell.trace_start
        self.trace_stop = shell.trace_stop
        self.trace_read = shell.trace_read

    @property
    def fast_path(self) -> NativeFastPath:
        return self

    @property
    def deadline_us(self) -> Micros:
        """Parked Fetches are the native thread's business."""
        return -1

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        """A frame, after whatever raft/ has decided. False: there is no room for it."""
        self.resume(now_us)
        while not self._shell.offer(connection, frame, now_us):
            had_room = self._make_room()
            self.resume(now_us)
            if not had_room:
                return False
        self.collect()
        return True

    def admit(self, admission: FetchAdmission, now_us: Micros) -> None:
        self._shell.admit(admission, now_us)
        self.collect()

    def detach(self, connection: Connection, now_us: Micros) -> None:
        self._shell.detach(connection)

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """A sync that nobody counted when it ended, as the log was not lent."""
        if errno_code:
            self._shell.latch()
        if self.log.is_lent:
            self._shell.synced(token, errno_code, now_us)
        else:
            self.log.flush_done(token, errno_code)

    def on_tick(self, now_us: Micros) -> None:
        """Nothing: see `deadline_us`."""

    def freeze(self, now_us: Micros) -> LaneState | None:
        """None while the lane is closed."""
        if self.session is None:
            return None
        state = self._shell.freeze()
        self.log.take_back()
        self.collect()
        self._raise_cut_off()
        return with_answered(state, self._fetch_answered)

    def resume(self, now_us: Micros) -> None:
        if self._shell.room_wanted:
            self._make_room()
        if self.session is not None and not self.log.is_lent:
            self.log.lend(self._borrowing)
        self._shell.resume(now_us)
        self._raise_cut_off()

    def _make_room(self) -> bool:
        """There is none at the log's end for what came; the lane is frozen until it was looked for. False: the file
        system is full, as the log knows from now on."""
        self._shell.freeze()
        self.log.take_back()
        self._raise_cut_off()
        wanted = self._shell.room_wanted
        self._shell.room_sought()
        return wanted is None or self.log.make_room(*wanted)

    def settle(self, session: LaneSession | None, now_us: Micros) -> None:
        if session is not None and self.session is not None and same_session(session, self.session):
            self.resume(now_us)
            return
        self.close(now_us)
        if session is None:
            return
        self.progress.opened(leads=isinstance(session, LeaderSession), end_offset=self.log.end_offset)
        self.log.lend(self._borrowing)
        if isinstance(session, LeaderSession):
            self._shell.open_leader(session, now_us)
            self.session = session
        else:
            self._shell.open_follower(session, now_us)
            self.session = session
            self._attach(now_us)
        self._raise_cut_off()

    def close(self, now_us: Micros) -> None:
        """After this nothing of the old session is appended or sent; its appends' fate is open."""
        if self.session is None:
            return
        led = self.is_leader
        self.session = None
        state = self._shell.close()
        if with_answered(state, self._fetch_answered).fetch_in_flight >= 0:  # which raft/ reckons with
            self._fetch_link = None
        self.log.take_back()
        self.progress.closed(self.log.end_offset)
        self.collect()
        if led:
            self._fail_pending(self.not_leader(maybe_committed=True))
        self._raise_cut_off()

    def drain(self, now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        if self._shell.room_wanted:
            self.resume(now_us)  # be there any or not: the lane stands
        self._drain(self.resume, now_us)

    def refuse_appends(self, refuse: bool) -> None:
        self._shell.refuse_appends(refuse)

    def stop(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """Nothing is sent, written or acknowledged after this; everybody who waits is told so."""
        self.stopped = True
        self.collect_failure()
        self.error = error = self.error or error
        if error is not None:
            self._shell.latch()
        self._shell.stop()
        if self._shell.mode is not LaneMode.CLOSED:
            self._shell.close()
        self.log.take_back()
        self.session = None
        self._fail_pending(error or self.not_leader(maybe_committed=True))
        self._fail_queued(error or self.not_leader())

    def cut_off(self, error: BaseException) -> None:
        self._shell.latch()
        self.log.abandon()
        reason: FastQuorumError
        if isinstance(error, FatalError | CorruptionError):
            reason = error
        else:
            reason = FatalError(f"a critical section was cut off by {error!r}: start the process anew")
        self.collect_failure()  # what came of it is not why
        self.error = self.error or reason
        self._shell.rouse()

    def send(self, connection: Connection, frame: Buffer) -> None:
        """Behind the native gate: after the disk has failed nothing leaves (lane rule 5)."""
        if self.log.may_claim and not self.stopped:
            self._shell.send(connection, frame)

    def serve_produce(self, topic_name: str, topic_id: Uuid, unanswered_max: int) -> None:
        answers = produce_answers(frames_of(self._kernels), topic_name, topic_id)
        produce = load_shell().ProduceApi(
            topic_name,
            bytes(topic_id),
            answers,
            batch_bytes_max=self._config.batch_bytes_max,
            unanswered_max=unanswered_max,
        )
        self._shell.serve_produce(produce)

    def serve_beats(self, beats: SteadyBeats, confirmed_us_max: Micros) -> None:
        self._shell.serve_beats(cast("NativeBeats", beats), confirmed_us_max)

    def is_confirmed(self, within_us: Micros, now_us: Micros) -> bool:
        """By the clock as it is now: what is decided may have come long after its turn began."""
        return self._shell.is_confirmed(within_us)

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        return self._shell.await_observers(ids, offset)

    @property
    def are_observers_awaited(self) -> bool:
        return self._shell.are_observers_awaited

    def settled(self, connection: Connection, frames: int) -> None:
        self._shell.settled(connection, frames)

    def advance(self, high_watermark: Offset) -> None:
        self._shell.advance(high_watermark)

    @property
    def is_standing(self) -> bool:
        return self._shell.is_frozen

    def look(self, now_us: Micros) -> LaneState | None:
        return self._shell.state() if self.session is not None else None

    def collect(self) -> None:
        """What the native side has for this thread; `events` are for its loop."""
        handed_up, events, unparked = self._shell.take_news()
        self.handed_up += [HandUp(*each) for each in handed_up]
        self._handed_up_sizes += [(connection, len(frame)) for connection, frame in handed_up]
        self.events += events
        self.unparked += [Unparked(*each) for each in unparked]

    def take_events(self) -> list[Arrival]:
        """Return the events that were collected, for the loop to see to, and forget them."""
        events, self.events = self.events, []
        return events

    def take_handed_up(self) -> list[tuple[Connection, int]]:
        """The connections and sizes of the frames that were handed up since the last call, if all are decided."""
        if self.handed_up:
            return []
        sizes, self._handed_up_sizes = self._handed_up_sizes, []
        return sizes

    def _attach_leader(self, link: FetchLink, now_us: Micros) -> None:
        self._shell.attach_leader(link.connection, link.api_version, now_us)

    def _raise_cut_off(self) -> None:
        """What cut the lane off ends the replica."""
        self.collect_failure()
        if self.error is not None and not self.stopped:
            raise self.error

    # --- telling, on the replica's thread, without the lock -----------------------------------------------------------

    def tell(self, on_committed: Callable[[Offset], None], watches: Callable[[], bool]) -> None:
        while True:
            letters = self._mailbox.collect()
            fates, self._fates = self._fates, []
            high_watermark, announced = self.high_watermark, self._announced_high_watermark
            self._announced_high_watermark = high_watermark
            for fail, waiting, error in fates:
                fail(waiting, error)
            for ticket, result in letters:
                if result >= 0:
                    ticket.committed(result)
                else:
                    ticket.failed(self.error_of(result))
            if high_watermark != announced:
                on_committed(high_watermark)
            elif not letters and not fates and not (watches() and self.watch_commit() != high_watermark):
                break  # and what is committed from here on makes a turn, if somebody watches
