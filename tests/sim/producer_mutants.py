"""Bugs of exactly once put back on purpose, for the simulator's named producer to catch."""

import sys

from fastquorum.kernels import Buffer
from fastquorum.kernels.producers import ProducedBatch, Stamp
from fastquorum.node.lane.appends import Queued
from fastquorum.node.lane.callers import LaneCallers
from fastquorum.node.lane.confirming import FINAL_REFUSALS
from fastquorum.node.lane.producer_states import ProducerStates
from fastquorum.types import Epoch, Micros
from tests.raft.mutants import Patcher
from tests.sim.mutants import Mutant


def _repeats_are_appended(patcher: Patcher) -> None:
    judge = ProducerStates.judge

    def take_it_for_new(
        states: ProducerStates, stamp: Stamp, batch: Buffer, epoch: Epoch, now_us: Micros
    ) -> ProducedBatch | None:
        found = judge(states, stamp, batch, epoch, now_us)
        return found if found is None or stamp.is_fence else None

    patcher.setattr(ProducerStates, "judge", take_it_for_new)


def _fences_are_ignored(patcher: Patcher) -> None:
    judge = ProducerStates.judge

    def as_of_the_epoch_of_now(
        states: ProducerStates, stamp: Stamp, batch: Buffer, epoch: Epoch, now_us: Micros
    ) -> ProducedBatch | None:
        known = states.current().get(stamp.producer_id)
        if known is not None and not stamp.is_fence:
            stamp = stamp._replace(epoch=known.epoch)
        return judge(states, stamp, batch, epoch, now_us)

    patcher.setattr(ProducerStates, "judge", as_of_the_epoch_of_now)


def _judged_out_of_turn(patcher: Patcher) -> None:
    """And at once: a barrier would have those in front of it appended first."""
    append_or_queue = LaneCallers._append_or_queue

    def judge_as_it_comes(shell: LaneCallers, queued: Queued, now_us: Micros) -> bool:
        waits = bool(shell._appends.queued) or shell._lane.is_frozen
        if waits and queued.stamp is not None and queued.encoded is not None and shell.session is not None:
            try:
                shell._producer_states.judge(queued.stamp, queued.encoded, shell.session.epoch, now_us)
            except FINAL_REFUSALS as error:
                shell._appends.fail(queued, error)
                return True
        return append_or_queue(shell, queued, now_us)

    patcher.setattr(LaneCallers, "_append_or_queue", judge_as_it_comes)


def _final_without_a_barrier(patcher: Patcher) -> None:
    def refuse_at_once(shell: LaneCallers, queued: Queued, now_us: Micros) -> None:
        error = sys.exception()
        assert isinstance(error, FINAL_REFUSALS)
        shell._appends.fail(queued, error)

    patcher.setattr(LaneCallers, "_refuse_unless_deposed", refuse_at_once)


MUTANTS: dict[str, Mutant] = {
    "producer-repeats": Mutant("a repeated batch is appended again", _repeats_are_appended),
    "producer-fences": Mutant("a fenced instance appends on", _fences_are_ignored),
    "producer-out-of-turn": Mutant("a batch is refused for good though others wait before it", _judged_out_of_turn),
    "producer-no-barrier": Mutant("a refusal is final though another node may lead by now", _final_without_a_barrier),
}
