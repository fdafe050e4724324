"""Known bugs of other systems, put back into raft/ on purpose: what the tests and the simulator must catch.

Above each name stands where the bug was. `MUTANTS[name].apply(monkeypatch)` plants one until the monkeypatch is
undone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from fastquorum.kernels.lane import LeaderSession
from fastquorum.raft import claims, moves, requests
from fastquorum.raft.core import Core, Role
from fastquorum.raft.effects import Effect, PersistElection
from fastquorum.raft.election import ElectionState
from fastquorum.raft.roles import follower
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.roles.leader import Leader, voters_among
from fastquorum.raft.roles.prospective import Prospective
from fastquorum.raft.roles.resigned import Resigned
from fastquorum.raft.roles.unattached import Unattached
from fastquorum.raft.transitions import Cause
from fastquorum.raft.voting import Voting
from fastquorum.types import NodeId, Offset, ReplicaKey


class Patcher(Protocol):
    """pytest's MonkeyPatch, or anything that plants and can take back."""

    def setattr(self, target: Any, name: str, value: Any, /) -> None: ...


class Mutant(NamedTuple):
    """One bug: what it is, and how to plant it."""

    story: str
    apply: Callable[[Patcher], None]


def _k1(patcher: Patcher) -> None:
    def save_without_vote(core: Core) -> None:
        if core._is_unsaved:
            core._is_unsaved = False
            voted = core.election.voted_key
            kept = voted if voted is not None and voted.id == core.key.id else None
            core._effects.append(PersistElection(core.election._replace(voted_key=kept)))

    patcher.setattr(Core, "_save", save_without_vote)


def _k2(patcher: Patcher) -> None:
    def initial_role(core: Core, stored: ElectionState | None) -> None:
        core.election = ElectionState()
        core.role = Unattached(core.random_election_deadline())

    patcher.setattr(moves, "initial_role", initial_role)


def _k4(patcher: Patcher) -> None:
    def emit(core: Core, effect: Effect) -> None:
        core._effects.append(effect)

    patcher.setattr(Core, "emit", emit)


def _k9(patcher: Patcher) -> None:
    begin = moves.begin

    def begin_as_before(core: Core) -> None:
        begin(core)
        if isinstance(core.role, Resigned):
            leader = Leader(core, (core.key.id,))
            core.role = leader
            leader.open_epoch(core)

    patcher.setattr(moves, "begin", begin_as_before)


def _k10(patcher: Patcher) -> None:
    first_role = moves._first_role

    def forget_the_lead(core: Core) -> Role:
        if core.leader_id == core.key.id:
            core.election = ElectionState(core.epoch)
        return first_role(core)

    patcher.setattr(moves, "_first_role", forget_the_lead)


def _k11(patcher: Patcher) -> None:
    def check_nothing(core: Core, leader_id: NodeId, wish: str, offset: Offset) -> bool:
        return True

    patcher.setattr(follower, "keeps_committed", check_nothing)


def _k14(patcher: Patcher) -> None:
    session = Leader.session

    def by_count_alone(role: Leader, core: Core) -> LeaderSession:
        return session(role, core)._replace(epoch_start=0)

    patcher.setattr(Leader, "session", by_count_alone)


def _k28(patcher: Patcher) -> None:
    def longer_is_better(core: Core, vote: Any) -> bool:
        return (vote.last_offset, vote.last_offset_epoch) >= (core.log_end, core.log.last_epoch)

    patcher.setattr(requests, "_is_up_to_date", longer_is_better)


def _k30(patcher: Patcher) -> None:
    def never(role: Leader, core: Core) -> int:
        return -1

    patcher.setattr(Leader, "_quorum_deadline", never)


def _k31(patcher: Patcher) -> None:
    def any_contact(role: Leader, core: Core, node_id: NodeId) -> int:
        return max((each.last_contact_us for each in voters_among(core) if each.key.id == node_id), default=-1)

    patcher.setattr(Leader, "_progress_of", any_contact)


def _k32(patcher: Patcher) -> None:
    def stand_at_once(role: Prospective, core: Core) -> Cause | None:
        return Cause.PRE_VOTES_WON

    patcher.setattr(Prospective, "poll", stand_at_once)


def _moved_again_and_again(patcher: Patcher) -> None:
    believes = claims._believes_stranger

    def forget(core: Core, epoch: int, sender: NodeId) -> bool:
        core.strangers_barred_until_us = 0
        return believes(core, epoch, sender)

    patcher.setattr(claims, "_believes_stranger", forget)


def _leaves_time_to_all(patcher: Patcher) -> None:
    give = requests._give_vote

    def leave_time(core: Core, candidate: ReplicaKey) -> None:
        give(core, candidate)
        assert isinstance(core.role, Voting)
        core.role.voted(core)

    patcher.setattr(requests, "_give_vote", leave_time)


def _never_led(core: Core) -> None:
    core.led_until_us = -(2**62)


def _disturbs_at_start(patcher: Patcher) -> None:
    begin = moves.begin

    def forget(core: Core) -> None:
        begin(core)
        _never_led(core)

    patcher.setattr(moves, "begin", forget)


def _disturbs_the_lost(patcher: Patcher) -> None:
    note_contact = Follower._note_contact

    def forget(follower: Follower, core: Core, at_us: int) -> None:
        note_contact(follower, core, at_us)
        _never_led(core)

    patcher.setattr(Follower, "_note_contact", forget)


def _believes_their_leads(patcher: Patcher) -> None:
    patcher.setattr(Core, "is_leader_unproven", False)


def _waits_for_their_leads(patcher: Patcher) -> None:
    patcher.setattr(Follower, "stand_by", lambda follower, at_us: None)


MUTANTS: dict[str, Mutant] = {
    # PySyncObj #84
    "K1": Mutant("a vote is told but not persisted", _k1),
    # PySyncObj #202
    "K2": Mutant("the epoch is 0 again after a restart", _k2),
    # SOFAJRaft #1245
    "K4": Mutant("requests and answers leave before the election is persisted", _k4),
    # KAFKA-10527
    "K9": Mutant("a restarted leader goes on leading the same epoch", _k9),
    # KAFKA-10661
    "K10": Mutant("a restarted leader votes for another in the epoch it led", _k10),
    # KAFKA-12460
    "K11": Mutant("a follower truncates below its high watermark", _k11),
    # LogCabin #44
    "K14": Mutant("records of earlier epochs are committed by count alone", _k14),
    # openraft, commit a48a3282
    "K28": Mutant("logs are compared by length before epoch", _k28),
    # KAFKA-15489
    "K30": Mutant("an isolated leader never resigns", _k30),
    # KAFKA-15911
    "K31": Mutant("followers that fetch without progress keep a leader", _k31),
    # KAFKA-16164, KAFKA-17641
    "K32": Mutant("no pre-vote", _k32),
    "moved-by-strangers": Mutant("strangers move a replica as often as they like", _moved_again_and_again),
    "disturbs-at-start": Mutant("strangers move whoever has just started", _disturbs_at_start),
    "disturbs-the-lost": Mutant("strangers move whoever has lost its connection", _disturbs_the_lost),
    "believes-their-leads": Mutant("whoever says that it leads is a leader as any other", _believes_their_leads),
    "waits-for-their-leads": Mutant("whoever says that it leads is waited for", _waits_for_their_leads),
    "waits-for-strangers": Mutant("a vote leaves whoever got it the time to be elected", _leaves_time_to_all),
}
