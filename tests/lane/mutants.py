"""Lanes, logs and shells that break one of the lane's seven rules each, beside the scenario that catches it."""

from typing import NamedTuple

from fastquorum.kernels.lane import Connection, FetchAdmission, LaneState, LeaderSession, Output
from fastquorum.kernels.lane import Lane as AnyLane
from fastquorum.kernels.pure.lane import Lane
from fastquorum.kernels.pure.lane.follower import FollowerLane
from fastquorum.kernels.pure.lane.peer import Peer
from fastquorum.types import Micros, Offset
from tests.lane import scenarios
from tests.lane.builders import MemoryLog
from tests.lane.scenarios import Scenario

# --- rule 1 -----------------------------------------------------------------------------------------------------------


def open_before_the_leader_change(lane: AnyLane, log: MemoryLog, session: LeaderSession) -> list[Output]:
    out = lane.open_leader(session, 0)
    log.control(session.epoch)
    return out


# --- rule 2 -----------------------------------------------------------------------------------------------------------


class HandsUpWithoutFreezing(Lane):
    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> list[Output]:
        out = super().on_frame(connection, frame, now_us)
        self._is_frozen = False
        return out


class FreezesWithoutWritingWhatGathered(Lane):
    def freeze(self, now_us: Micros) -> LaneState:
        self._is_frozen = True
        return self._state()


class SendsWhileFrozen(Lane):
    def _go_on(self, now_us: Micros) -> list[Output]:
        was_frozen, self._is_frozen = self._is_frozen, False
        out = super()._go_on(now_us)
        self._is_frozen = was_frozen
        return out


# --- rule 3 -----------------------------------------------------------------------------------------------------------


class GoesOnAfterClose(Lane):
    def close(self, now_us: Micros) -> tuple[LaneState, list[Output]]:
        leader, follower = self._leader, self._follower
        result = super().close(now_us)
        self._leader, self._follower, self._is_frozen = leader, follower, False
        return result


class AnswersAParkedFetchTwice(Lane):
    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        out = super().open_leader(session, now_us)
        assert self._leader is not None

        def keep(peer: Peer) -> None:
            pass

        self._leader._unpark = keep  # type: ignore[method-assign]
        return out


# --- rule 4 -----------------------------------------------------------------------------------------------------------


class SamplesTheEndAfterTheSync(MemoryLog):
    def finish_sync(self) -> tuple[int, int]:
        assert self.syncing is not None
        self.syncing = (self.syncing[0], self.end_offset)
        return super().finish_sync()


class TrustsSyncsFromBeforeATruncation(MemoryLog):
    def note_synced(self, generation: int, end: int) -> None:
        self.flushed_end = max(self.flushed_end, end)


class IgnoresTheGeneration(Lane):
    def on_flushed(self, generation: int, end: Offset, now_us: Micros) -> list[Output]:
        return super().on_flushed(self._log.generation, end, now_us)


# --- rule 5 -----------------------------------------------------------------------------------------------------------


class ForgetsAFailedSync(Lane):
    def on_flush_failed(self) -> None:
        pass


# --- rule 6 -----------------------------------------------------------------------------------------------------------


class TellsTheContactsOfTheOpening(Lane):
    def _state(self) -> LaneState:
        state = super()._state()
        peers = tuple(peer._replace(last_contact_us=-1) for peer in state.peers)
        return state._replace(peers=peers, leader_contact_us=-1)


# --- rule 7 -----------------------------------------------------------------------------------------------------------


class CountsFetchesUnderWay(Lane):
    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        number, out = super().begin_barrier(now_us)
        if self._leader is not None:
            for peer in self._leader._served.values():
                peer.answered = number
        return number, out


class ConfirmsBeforeTheEpochsStart(Lane):
    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        out = super().open_leader(session, now_us)
        leader, barriers = self._leader, self._context.barriers
        assert leader is not None

        def complete(out: list[Output]) -> None:
            barriers.complete(leader.high_watermark, out)

        leader._complete_barriers = complete  # type: ignore[method-assign]
        return out


class LeavesParkedFetchesAlone(Lane):
    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        assert self._leader is not None
        parked, self._leader._parked_voters = self._leader._parked_voters, 0
        result = super().begin_barrier(now_us)
        self._leader._parked_voters = parked
        return result


class CountsObservers(Lane):
    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        assert self._leader is not None
        for peer in self._leader._peers.values():
            if peer.voter_index < 0:
                peer.voter_index = len(self._leader._session.voters) - 1
        return super().begin_barrier(now_us)


class TakesCopiesForNew(Lane):
    def admit(self, fetch: FetchAdmission, now_us: Micros) -> list[Output]:
        out = super().admit(fetch, now_us)
        assert self._leader is not None
        self._leader._served[fetch.connection].newest_id = fetch.correlation_id
        return out


# --- what the rules are for -------------------------------------------------------------------------------------------


class CountsItsUnflushedEnd(Lane):
    """Kafka's leader does; this one is stricter (README, decision 1)."""

    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        out = super().open_leader(session, now_us)
        leader = self._leader
        assert leader is not None
        advance = leader._advance

        def eager(out: list[Output]) -> None:
            advance(out)
            ends = [
                self._log.end_offset if index == leader._own_index else end for index, end in enumerate(leader._ends)
            ]
            reached = self._context.kernels.high_watermark(ends, session.epoch_start)
            leader.high_watermark = max(leader.high_watermark, reached)

        leader._advance = eager  # type: ignore[method-assign]
        return out


class FetchesPastWhatIsSynced(Lane):
    def _go_on(self, now_us: Micros) -> list[Output]:
        if isinstance(self._follower, FollowerLane):
            self._log.flushed_end = self._log.end_offset  # type: ignore[misc]
        return super()._go_on(now_us)


class Mutant(NamedTuple):
    """A broken part, and the scenario that shows it. Rule 0: what all the rules are for."""

    rule: int
    scenario: Scenario
    lane: type[Lane] = Lane
    log: type[MemoryLog] = MemoryLog
    elect: object = scenarios.elect

    @property
    def name(self) -> str:
        broken = (self.lane, self.log, self.elect)
        (part,) = (part for part in broken if part not in (Lane, MemoryLog, scenarios.elect))
        return str(getattr(part, "__name__", part))


MUTANTS = (
    Mutant(
        1,
        scenarios.a_lane_opens_only_over_the_leader_change_of_its_epoch,
        elect=open_before_the_leader_change,
    ),
    Mutant(2, scenarios.a_hand_up_stops_appends_until_raft_has_decided, HandsUpWithoutFreezing),
    Mutant(
        2,
        scenarios.the_log_end_that_raft_decides_from_includes_every_accepted_append,
        FreezesWithoutWritingWhatGathered,
    ),
    Mutant(2, scenarios.nothing_is_sent_while_raft_decides, SendsWhileFrozen),
    Mutant(3, scenarios.after_close_nothing_of_the_epoch_leaves, GoesOnAfterClose),
    Mutant(3, scenarios.a_parked_fetch_is_claimed_by_one_answer, AnswersAParkedFetchTwice),
    Mutant(4, scenarios.bytes_written_during_a_sync_do_not_count_when_it_ends, log=SamplesTheEndAfterTheSync),
    Mutant(4, scenarios.a_sync_from_before_a_truncation_does_not_count, log=TrustsSyncsFromBeforeATruncation),
    Mutant(4, scenarios.a_sync_from_before_a_truncation_does_not_count, IgnoresTheGeneration),
    Mutant(5, scenarios.after_a_failed_sync_nothing_leaves_and_nothing_is_accepted, ForgetsAFailedSync),
    Mutant(5, scenarios.after_a_failed_sync_a_follower_claims_nothing, ForgetsAFailedSync),
    Mutant(6, scenarios.raft_learns_the_contacts_that_the_lane_saw, TellsTheContactsOfTheOpening),
    Mutant(7, scenarios.a_fetch_that_was_under_way_when_a_barrier_began_does_not_count, CountsFetchesUnderWay),
    Mutant(7, scenarios.a_parked_fetch_is_answered_empty_to_provoke_one_that_counts, LeavesParkedFetchesAlone),
    Mutant(7, scenarios.a_barrier_needs_a_majority_of_voters, CountsObservers),
    Mutant(7, scenarios.a_barrier_waits_for_the_high_watermark_to_pass_the_epochs_start, ConfirmsBeforeTheEpochsStart),
    Mutant(7, scenarios.copies_of_earlier_fetches_confirm_nothing_though_raft_admits_one, TakesCopiesForNew),
    Mutant(0, scenarios.a_leader_counts_only_what_it_has_synced_itself, CountsItsUnflushedEnd),
    Mutant(0, scenarios.a_fetch_claims_only_what_is_synced, FetchesPastWhatIsSynced),
)
