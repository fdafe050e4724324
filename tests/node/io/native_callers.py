"""Threads that call a native shell as its users do: they append and wait, read behind barriers, and look at it."""

import threading
from collections.abc import Callable
from typing import Any

from fastquorum.kernels.codes import AppendVerdict
from fastquorum.node.io.clock import now_us

from .native_rig import WAIT_S, Rig, is_readable, native

TURN_S = 0.01


class _Queued:
    """An append that waits for a decision."""

    def __init__(self, submit: Callable[[], int]) -> None:
        self.submit = submit
        self.offset = 0
        self.decided = threading.Event()


class Callers:
    """Threads that append and wait; in slots, or by a mailbox."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.stopped = threading.Event()
        self.accepted: dict[bytes, int] = {}
        """The offset that each value was given."""
        self.outcomes: dict[bytes, int] = {}
        self.queue: list[_Queued] = []
        self.lock = threading.Lock()
        self.box = native.Mailbox()

    def run_slots(self, name: int) -> None:
        number = 0
        while not self.stopped.is_set():
            value = b"slot %d %d" % (name, number)
            number += 1
            slot = native.Slot()
            # Two threads of three leave the writing to the native thread.
            later = name > 0

            def submit(more: dict[str, bool], value: bytes = value, slot: Any = slot, later: bool = later) -> int:
                offset: int = self._shell.append_slot(value, slot, is_pushed_later=later, **more)
                if later:
                    self._shell.push_soon()
                return offset

            if self._append(value, submit):
                assert slot.wait(WAIT_S), f"{value!r} was never told"
                with self.lock:
                    self.outcomes[value] = slot.outcome

    def run_mail(self, name: int) -> None:
        number = 0
        while not self.stopped.is_set():
            value = b"mail %d %d" % (name, number)
            number += 1

            def submit(more: dict[str, bool], value: bytes = value) -> int:
                offset: int = self._shell.append_mail([value], self.box, value, is_pushed_later=True, **more)
                return offset

            self._append(value, submit)
            if number % 8 == 0:
                self._shell.push()
            if number % 64 == 0:
                self.collect()
        self.collect()

    def run_turns(self, name: int) -> None:
        """Append like an event loop: many at once, then collect the outcomes."""
        number = 0
        while not self.stopped.is_set():
            values = [b"turn %d %d" % (name, number + each) for each in range(16)]
            number += len(values)
            for value, offset in zip(values, self._shell.append_all(values, self.box, values), strict=True):

                def submit(more: dict[str, bool], value: bytes = value) -> int:
                    (again,) = self._shell.append_all([value], self.box, [value], have_waited=bool(more))
                    return int(again)

                self._append(value, submit, offset)
            # As tasks do that await what they appended; `run_mail` may have collected it.
            is_readable(self.box, within_s=TURN_S)
            self.collect()

    def collect(self) -> None:
        with self.lock:
            for value, outcome in self.box.collect():
                assert value not in self.outcomes, "told twice"
                self.outcomes[value] = outcome

    @property
    def _shell(self) -> Any:
        return self._rig.shell

    def _append(self, value: bytes, submit: Callable[[dict[str, bool]], int], offset: int | None = None) -> bool:
        """Whether it is going to be told. `offset`, or a verdict, if it was submitted already."""
        if offset is None:
            offset = submit({})
        if offset == AppendVerdict.FROZEN:
            queued = _Queued(lambda: self._note(value, submit({"has_waited": True})))
            with self.lock:
                self.queue.append(queued)
                self._shell.hold_appends()
            while not queued.decided.wait(0.05):
                with self.lock:
                    if self.stopped.is_set() and queued in self.queue:
                        self.queue.remove(queued)
                        return False
            return queued.offset >= 0
        return self._note(value, offset) >= 0

    def _note(self, value: bytes, offset: int) -> int:
        assert offset >= 0 or offset in (AppendVerdict.FROZEN, AppendVerdict.NOT_LEADER), f"verdict {offset}"
        if offset >= 0:
            assert value not in self.accepted
            self.accepted[value] = offset
        return offset

    def drain(self) -> None:
        """Submit the appends that waited for a decision, in their order."""
        with self.lock:
            while self.queue:
                first = self.queue[0]
                first.offset = first.submit()
                if first.offset == AppendVerdict.FROZEN:
                    return
                self.queue.pop(0)
                first.decided.set()
            self._shell.release_appends()


def read_barriers(rig: Rig, over: threading.Event) -> None:
    """A barrier that passes shows all that was committed when it began; one that fails says so."""
    rig.shell.set_barrier_failure(-77)
    while not over.wait(0.0005):
        slot, committed = native.Slot(), rig.shell.high_watermark
        number = rig.shell.barrier_slot(slot)
        if number < 0:
            assert number in (AppendVerdict.FROZEN, AppendVerdict.NOT_LEADER), f"verdict {number}"
            continue
        assert slot.wait(WAIT_S), "a barrier was never told"
        assert slot.outcome == -77 or slot.outcome >= committed


def look_around(rig: Rig, over: threading.Event) -> None:
    """Everything that may be asked at any time."""
    shell, offset = rig.shell, 1
    while not over.wait(0.0005):
        state, loan, now = shell.state(), shell.look(), now_us()
        assert state.flushed_end <= state.log_end
        assert loan.flushed[0] <= loan.end_offset
        assert min(shell.waiting()) >= 0
        assert shell.flushed_end <= shell.end_offset
        assert not shell.was_cut_off
        assert shell.failure() == ("", 0, -1)
        found = shell.read_recent(offset, 1_000)
        assert found is None or int.from_bytes(found[:8], "big") <= offset
        offset = max(state.log_end - 1, 1)
        shell.watch_commit()
        shell.watch_flush_again(now)
        shell.overdue(now, partial_us_max=1 << 40, idle_us_max=1 << 40, connect_us_max=1 << 40)
        shell.oldest_silent(now, 1 << 40)
        _ = (shell.mode, shell.is_frozen, shell.is_flushing, shell.room_wanted, shell.appended_us)
        assert shell.connection_count() >= 0
        assert shell.flush_began_us >= -1
