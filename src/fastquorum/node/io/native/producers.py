"""Batches of producers in the native shell: each into the log once, whoever has it appended, and however often.

The native side looks first; what it does not see from there, `node.lane.producer_states` judges. `lock` is held from
the look for a repeat to the note of what was appended.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from fastquorum.errors import FastQuorumError, Overloaded, UsageError
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import LeaderSession
from fastquorum.kernels.producers import Stamp, max_timestamp_ms_of
from fastquorum.node.io.native.appends import AppendQueue, CallAppends, Refused
from fastquorum.node.io.native.callers import NativeCallers, Passing, fail_ticket
from fastquorum.node.lane.confirming import FINAL_REFUSALS, Confirming
from fastquorum.node.ports import AppendTicket, BarrierTicket
from fastquorum.types import Micros

_LEFT_TO_PYTHON: Final = (AppendVerdict.PRODUCERS_BEHIND, AppendVerdict.NOT_NEXT)
"""The native side does not know what becomes of the batch."""


class NativeProducers(NativeCallers):
    """The producers' part of `native.shell.NativeShell`."""

    def __init__(self, **given: Any) -> None:
        """Take what NativeCallers takes."""
        super().__init__(**given)
        self._confirming = Confirming[CallAppends](
            self.lock, self._begin_confirming, self._judge_again, self._fail_refused, lambda: self.not_leader()
        )
        self._refused = AppendQueue()
        """Counts those that wait for it."""

    def append_encoded(
        self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros, stamp: Stamp | None = None
    ) -> None:
        timestamp_ms = max_timestamp_ms_of(batch)

        def submit(batches: list[bytearray], tickets: list[AppendTicket]) -> Sequence[int]:  # lock held
            return (self._append_stamped(batches[0], record_count, timestamp_ms, tickets[0], stamp, now_us, True),)

        appends = CallAppends(submit, fail_ticket, [batch], [ticket], [(record_count, len(batch))])
        self._raise_if_stopped()
        with self.lock:  # from the look for doubles to the note of what was appended
            try:
                offset = self._append_stamped(batch, record_count, timestamp_ms, ticket, stamp, now_us, False)
            except FINAL_REFUSALS:
                self._refuse_unless_deposed(appends)
                return
        if offset < 0:
            self.raise_refused(offset, appends)

    def _append_stamped(
        self,
        batch: bytearray,
        record_count: int,
        timestamp_ms: int,
        ticket: AppendTicket,
        stamp: Stamp | None,
        now_us: Micros,
        has_waited: bool,
    ) -> int:
        """Lock held. The offset, or a verdict. Raises as `ProducerStates.judge`."""
        admits_new = False
        while True:
            offset = self._shell.append_encoded(
                batch, record_count, timestamp_ms, self._mailbox, ticket, has_waited, admits_new
            )
            session = self.session
            if offset not in _LEFT_TO_PYTHON or not isinstance(session, LeaderSession):
                return offset
            # The native side has looked, and appends meanwhile: it looks again.
            assert stamp is not None
            there = self._producer_states.judge(stamp, batch, session.epoch, now_us)
            if there is not None:
                return self._shell.await_commit(there.base_offset, there.end_offset, self._mailbox, ticket)
            admits_new = True

    def _has_undecided(self) -> bool:
        return bool(self._queue or self._refused)

    def waiting(self) -> tuple[int, int]:
        """Also those that are to be refused. Lock held."""
        records, size_bytes = super().waiting()
        return records + self._refused.records, size_bytes + self._refused.bytes

    def _tried_again(self, appends: CallAppends, frozen: list[int], refused: list[Refused]) -> list[int]:
        """See `NativeCallers._tried_again`. What a deposed leader says of a producer's batch is not final here,
        either."""
        try:
            return super()._tried_again(appends, frozen, refused)
        except FINAL_REFUSALS:
            self._refuse_unless_deposed(appends.only(frozen))
            return []

    def _submitted(self, appends: CallAppends) -> tuple[list[Refused], list[int]]:
        """See `_judged`; of a producer's batch nothing was looked at before its turn came."""
        try:
            return super()._submitted(appends)
        except FINAL_REFUSALS:
            self._refused.append(appends)
            self._confirming.add(appends)
            return [], []
        except (UsageError, Overloaded) as refused:
            return [(at, refused) for at in range(len(appends.values))], []

    # --- appends that their producer's state forbids, lock held -------------------------------------------------------

    def _refuse_unless_deposed(self, appends: CallAppends) -> None:
        """One append. Raises Overloaded."""
        overloaded = self._has_no_room(*self.waiting(), *appends.sizes[0])
        if overloaded is not None:
            raise overloaded
        self._refused.append(appends)
        self._confirming.add(appends)
        self._shell.rouse()

    def _begin_confirming(self, ticket: BarrierTicket) -> bool:
        return self._shell.barrier_mail(self._mailbox, Passing(ticket)) >= 0

    def _judge_again(self, appends: CallAppends) -> None:
        """One append. This node led after it had come: what is refused now, is refused for good."""
        refused: list[Refused] = []
        frozen = [0]
        if not self._queue:
            try:
                refused, frozen = self._judged(appends.submit(appends.values, appends.waiting), appends)
            except (UsageError, Overloaded) as error:
                refused, frozen = [(0, error)], []
        self._refused.keep_of_first([])
        if frozen:
            self._queue.append(appends)
            self._shell.hold_appends()
        for _, final in refused:
            self._count_refused(final)
            self._fates.append((appends.fail, appends.waiting[0], final))

    def _fail_refused(self, appends: list[CallAppends], error: FastQuorumError) -> None:
        for each in appends:
            self._refused.keep_of_first([])
            self._fates.append((each.fail, each.waiting[0], copy.copy(error)))
