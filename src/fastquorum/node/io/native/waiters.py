"""The native shell's waiters outside: an event loop, to which its mailbox is one signal for many results, or threads,
each in a slot out of which it is woken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer, Outcome
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io.callers.gate import Gate
from fastquorum.node.io.callers.port import LoopBridge, PendingBarrier, Waiter
from fastquorum.node.io.callers.tickets import LoopCallers, ThreadCallers
from fastquorum.node.io.native.appends import each_append, one_append
from fastquorum.node.io.native.shell import NativeShell

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell, Slot


class NativeLoopCallers(LoopCallers):
    """`LoopCallers` over the native shell."""

    def __init__(self, driver: NativeShell, shell: Shell, mailbox: Mailbox, gate: Gate, bridge: LoopBridge) -> None:
        """`mailbox` is for this loop alone."""
        super().__init__(driver, gate, bridge)
        self._driver = driver
        self._native = shell
        self._mailbox = mailbox
        self._loop = bridge.loop
        self._is_push_due = False
        self._loop.add_reader(mailbox.fileno(), self._collect)
        bridge.at_end(self._close)

    def append(self, values: Buffer | Sequence[Buffer], outcome: Outcome) -> None:
        if self._gate.refuses_appends:
            self._gate.check_appends()
        verdict = self._native.append_mail(values, self._mailbox, outcome, is_pushed_later=True)
        if verdict < 0:
            self._driver.raise_refused(verdict, one_append(self._append_again, self._bridge.resolve, values, outcome))
        if not self._is_push_due:
            self._is_push_due = True
            self._loop.call_soon(self._push)

    def _append_again(self, values: list[list[bytes]], outcomes: list[Outcome]) -> Sequence[int]:
        return (self._native.append_mail(values[0], self._mailbox, outcomes[0], has_waited=True),)

    def _push(self) -> None:
        """Everything appended in the turn is written and sent together."""
        self._is_push_due = False
        self._native.push()

    def append_each(self, values: list[bytes], outcomes: list[Outcome]) -> None:
        self._gate.check_appends()
        verdicts = self._native.append_all(values, self._mailbox, outcomes)
        for at, error in self._driver.not_taken(
            verdicts, lambda: each_append(self._append_each_again, self._bridge.resolve, values, outcomes)
        ):
            if not outcomes[at].done():
                outcomes[at].set_exception(error)

    def _append_each_again(self, values: list[bytes], outcomes: list[Outcome]) -> Sequence[int]:
        return self._native.append_all(values, self._mailbox, outcomes, have_waited=True)

    def begin_barrier(self, waiter: Waiter) -> None:
        self._gate.check_open()
        self._driver.check_begun(self._native.barrier_mail(self._mailbox, waiter))

    def _collect(self) -> None:
        self._mailbox.resolve(self._failed)

    def _failed(self, waiter: Waiter, code: int) -> None:
        if not waiter.done():
            waiter.set_exception(self._driver.error_of(code))

    def _close(self) -> None:
        self._collect()
        self._loop.remove_reader(self._mailbox.fileno())


class NativeThreadCallers(ThreadCallers):
    """`ThreadCallers` over the native shell."""

    def __init__(self, driver: NativeShell, shell: Shell, gate: Gate) -> None:
        super().__init__(driver, gate)
        self._driver = driver
        self._native = shell
        self._new_slot = load_shell().Slot

    def append(self, values: Buffer | Sequence[Buffer], *, waits: bool) -> PendingBarrier:
        """A caller with more to append leaves the writing to the native thread."""
        if self._gate.refuses_appends:
            self._gate.check_appends()
        slot = self._new_slot(self._driver)
        verdict = self._native.append_slot(values, slot, is_pushed_later=not waits)
        if verdict < 0:
            self._driver.raise_refused(verdict, one_append(self._append_again, _fail, values, slot))
        elif not waits:
            self._native.push_soon()
        return slot

    def _append_again(self, values: list[list[bytes]], slots: list[Slot]) -> Sequence[int]:
        return (self._native.append_slot(values[0], slots[0], has_waited=True),)

    def append_each(self, values: list[bytes]) -> Sequence[PendingBarrier]:
        self._gate.check_appends()
        slots = [self._new_slot(self._driver) for _ in values]
        verdicts = self._native.append_slots(values, slots)
        for at, error in self._driver.not_taken(
            verdicts, lambda: each_append(self._append_each_again, _fail, values, slots)
        ):
            slots[at].fail(error)
        return slots

    def _append_each_again(self, values: list[bytes], slots: list[Slot]) -> Sequence[int]:
        return self._native.append_slots(values, slots, have_waited=True)

    def begin_barrier(self) -> PendingBarrier:
        self._gate.check_open()
        slot = self._new_slot(self._driver)
        self._driver.check_begun(self._native.barrier_slot(slot))
        return slot


def _fail(slot: Slot, error: FastQuorumError) -> None:
    slot.fail(error)
