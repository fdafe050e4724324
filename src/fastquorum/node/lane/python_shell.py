"""The shell around a replica's lane: the lock, the callers' appends, and the lane's outputs carried out. Sans-IO.

Two threads meet here. Callers may use `append`, `append_encoded`, `producer` and `begin_barrier` from any thread;
everything else is the replica's thread's. Methods that say "lock held" are parts of one critical section (lane rule 3):

    who        owns                                                    under
    lane lock  lane, log, pending and queued appends, barriers, sends   `self.lock`
    replica    raft, connections' meaning, the inbox, `unparked`        its thread

Must not know election rules, nor what records mean. Source: `kernels/lane.py` (the seven rules).
"""

from collections.abc import Callable, Sequence

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import SteadyBeats
from fastquorum.kernels.lane import (
    Connection,
    FetchAdmission,
    LaneMode,
    LaneSession,
    LaneState,
    LeaderSession,
    same_session,
)
from fastquorum.node.lane.callers import LaneCallers
from fastquorum.node.lane.peer_events import FetchLink
from fastquorum.node.lane.port import with_answered
from fastquorum.types import Micros, NodeId, Offset


class LaneShell(LaneCallers):
    """See the module for who may call what."""

    fast_path = None

    @property
    def is_standing(self) -> bool:
        return self._lane.is_frozen

    @property
    def deadline_us(self) -> Micros:
        return self._lane.deadline_us

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        """Lock held, lane open. A frame, after whatever raft/ has decided. False: there is no room for it."""
        self.resume(now_us)
        if not self.make_room_for_frame(frame):
            return False
        self.perform(self._lane.on_frame(connection, frame, now_us))
        return True

    def make_room_for_frame(self, frame: bytes) -> bool:
        """Lock held. A leader writes nothing of what comes: what gathered has its room. The records are counted by the
        lane, which reads the frame."""
        return self.is_leader or self._make_room(len(frame), 0)

    def admit(self, admission: FetchAdmission, now_us: Micros) -> None:
        self.perform(self._lane.admit(admission, now_us))

    def detach(self, connection: Connection, now_us: Micros) -> None:
        self.perform(self._lane.detach(connection, now_us))

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """The flusher's report; a failure raises FsyncFailed, with the latch set first (lane rule 5)."""
        if errno_code:
            self._lane.on_flush_failed()
        done = self.log.flush_done(token, errno_code)
        if done is not None:
            self.perform(self._lane.on_flushed(done.generation, done.end, now_us))

    def _attach_leader(self, link: FetchLink, now_us: Micros) -> None:
        self.perform(self._lane.attach_leader(link.connection, link.api_version, now_us))

    def on_tick(self, now_us: Micros) -> None:
        if 0 <= self._lane.deadline_us <= now_us:
            self.perform(self._lane.on_tick(now_us))

    def settle(self, session: LaneSession | None, now_us: Micros) -> None:
        """raft/'s effects are all done: the lane goes on, in this session (lane rule 1)."""
        if session is not None and self.session is not None and same_session(session, self.session):
            self.resume(now_us)
            return
        self.close(now_us)
        if session is None:
            return
        self.session = session
        self.progress.opened(leads=isinstance(session, LeaderSession), end_offset=self.log.end_offset)
        if isinstance(session, LeaderSession):
            self.appended_us = now_us
            self.perform(self._lane.open_leader(session, now_us))
        else:
            self.perform(self._lane.open_follower(session, now_us))
            self._attach(now_us)

    def close(self, now_us: Micros) -> None:
        """After this nothing of the old session is appended or sent; its appends' fate is open."""
        if self.session is None:
            return
        led = self.is_leader
        self.session = None
        state, outputs = self._lane.close(now_us)
        if with_answered(state, self._fetch_answered).fetch_in_flight >= 0:  # which raft/ reckons with
            self._fetch_link = None
        self.perform(outputs)
        self.progress.closed(self.log.end_offset)
        if led:
            self._appends.fail_pending(self.not_leader(maybe_committed=True))

    def stop(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """Nothing is sent, written or acknowledged after this; everybody who waits is told so."""
        self.stopped = True
        self.error = error = self.error or error
        if error is not None:
            self._lane.on_flush_failed()
        if self._lane.mode is not LaneMode.CLOSED:
            self._lane.close(now_us)
        self.session = None
        self._appends.fail_pending(error or self.not_leader(maybe_committed=True))
        self._appends.fail_queued(error or self.not_leader())
        self._barriers.fail_all()

    def serve_beats(self, beats: SteadyBeats, confirmed_us_max: Micros) -> None:
        self._beats, self._beats_confirmed_us_max = beats, confirmed_us_max

    def is_confirmed(self, within_us: Micros, now_us: Micros) -> bool:
        with self.lock:
            return self._is_confirmed(within_us, now_us)

    def _is_confirmed(self, within_us: Micros, now_us: Micros) -> bool:
        confirmed_us = self._lane.confirmed_us
        return confirmed_us >= 0 and now_us - confirmed_us < within_us

    def answer_beat(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        session = self.session
        if self._beats is None or not isinstance(session, LeaderSession) or self._lane.is_frozen or not self.may_send():
            return False
        if not self._is_confirmed(self._beats_confirmed_us_max, now_us):
            return False
        answer = self._beats.answer(frame, session.epoch, now_us)
        if answer is not None:
            self.send(connection, answer)
        return answer is not None

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        with self.lock:
            self.are_observers_awaited = self._lane.await_observers(ids, offset)
            return self.are_observers_awaited

    def look(self, now_us: Micros) -> LaneState | None:
        """A lane that waits for raft/ goes on waiting; another one is held for the moment that it takes."""
        was_frozen, state = self._lane.is_frozen, self.freeze(now_us)
        if not was_frozen:
            self.resume(now_us)
        return state

    def waiting(self) -> tuple[int, int]:
        return self._appends.records, self._appends.size_bytes

    # --- telling, on the replica's thread, without the lock -----------------------------------------------------------

    def tell(self, on_committed: Callable[[Offset], None], watches: Callable[[], bool]) -> None:
        while True:
            with self.lock:
                fates, barriers = self._appends.take_fates(), self._barriers.take_ended()
                high_watermark, announced = self.high_watermark, self._announced_high_watermark
                self._announced_high_watermark = high_watermark
            if not fates and not barriers and high_watermark == announced:
                return
            for fate in fates:
                fate.tell()
            for barrier in barriers:
                barrier.tell(lambda: self.error or self.not_leader())
            if high_watermark != announced:
                on_committed(high_watermark)
