"""The table of roles: every legal pair is reached by a real replica, every other one asserts."""

from collections.abc import Callable

import pytest

from fastquorum.raft import events as ev
from fastquorum.raft import moves
from fastquorum.raft.transitions import TABLE, Cause, RoleName, next_role
from tests.quality.diagrams import mermaid

from .scenario import Replica, replica
from .wire_messages import begin_request, end_request, endpoint, key, vote_request

AT_FIVE: dict[RoleName, Callable[[], Replica]] = {
    RoleName.UNATTACHED: lambda: replica(1).unattached(epoch=5),
    RoleName.PROSPECTIVE: lambda: replica(1).prospective(epoch=5),
    RoleName.CANDIDATE: lambda: replica(1).candidate(epoch=5),
    RoleName.LEADER: lambda: replica(1).leader(epoch=5),
    RoleName.FOLLOWER: lambda: replica(1).follower(epoch=5, of=2),
    RoleName.RESIGNED: lambda: replica(1).resigned(epoch=5),
}


def time_out(node: Replica) -> None:
    role = node.role
    for _ in range(20):
        if node.role == role:
            node.elapse_to_deadline()


def answers(granted: bool) -> Callable[[Replica], None]:
    def answer(node: Replica) -> None:
        role = node.role
        for other in (2, 3):
            if node.role == role:
                node.answer_vote(other, granted=granted)

    return answer


def start_alone(node: Replica) -> None:
    alone = replica(1).voters(1)
    alone.stored = node.raft.election
    assert alone.starts().role == RoleName.LEADER


def lose_pre_votes_of_a_follower(node: Replica) -> None:
    node.receives(begin_request(6, by=2))
    node.pass_deadline(until=RoleName.PROSPECTIVE)
    answers(granted=False)(node)


def resign_the_leader(node: Replica) -> None:
    node.receives(end_request(5, by=2))
    time_out(node)


def end_the_leaders_process(node: Replica) -> None:
    node.step(ev.LeaderConnection(2, True))
    node.hears_leader()
    for _ in range(3):
        node.step(ev.LeaderConnection(2, False))
        node.elapse(40)
    time_out(node)


def fill_the_disk(node: Replica) -> None:
    node.fetched_by(2, 3)
    node.fake_log.is_full = True
    node.step(ev.RoomChanged())


WAYS: dict[tuple[RoleName, Cause], Callable[[Replica], object]] = {
    (RoleName.UNATTACHED, Cause.ELECTION_TIMEOUT): time_out,
    (RoleName.FOLLOWER, Cause.FETCH_TIMEOUT): time_out,
    (RoleName.FOLLOWER, Cause.LEADER_RESIGNED): resign_the_leader,
    (RoleName.FOLLOWER, Cause.LEADER_GONE): end_the_leaders_process,
    (RoleName.CANDIDATE, Cause.ELECTION_TIMEOUT): time_out,
    (RoleName.RESIGNED, Cause.ELECTION_TIMEOUT): time_out,
    (RoleName.UNATTACHED, Cause.SOLE_VOTER): start_alone,
    (RoleName.RESIGNED, Cause.SOLE_VOTER): start_alone,
    (RoleName.PROSPECTIVE, Cause.PRE_VOTES_WON): answers(granted=True),
    (RoleName.PROSPECTIVE, Cause.PRE_VOTES_LOST): lose_pre_votes_of_a_follower,
    (RoleName.PROSPECTIVE, Cause.PRE_VOTES_LOST_LEADERLESS): answers(granted=False),
    (RoleName.CANDIDATE, Cause.VOTES_WON): answers(granted=True),
    (RoleName.LEADER, Cause.QUORUM_LOST): time_out,
    (RoleName.LEADER, Cause.RESIGN_REQUESTED): lambda node: node.step(ev.ResignRequested(-1, 5)),
    (RoleName.LEADER, Cause.DISK_STALLED): lambda node: node.step(ev.DiskStalled()),
    (RoleName.LEADER, Cause.INTERPRETER_HELD): lambda node: node.step(
        ev.ResignRequested(-1, 5, Cause.INTERPRETER_HELD)
    ),
    (RoleName.LEADER, Cause.DISK_FULL): fill_the_disk,
    (RoleName.LEADER, Cause.SHUTDOWN): lambda node: node.step(ev.ShutdownRequested()),
    **{(role, Cause.HIGHER_EPOCH): lambda node: node.receives(vote_request(6, to=key(3))) for role in RoleName},
    **{(role, Cause.LEADER_OF_HIGHER_EPOCH): lambda node: node.receives(begin_request(6)) for role in RoleName},
    **{
        (role, Cause.LEADER_OF_THIS_EPOCH): lambda node: node.receives(begin_request(5))
        for role in (RoleName.UNATTACHED, RoleName.PROSPECTIVE, RoleName.CANDIDATE, RoleName.FOLLOWER)
    },
}


@pytest.mark.parametrize("pair", TABLE, ids=lambda pair: f"{pair[0]}, {pair[1]}")
def test_every_pair_of_the_table_is_reached(pair: tuple[RoleName, Cause], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[RoleName, Cause]] = []

    def watch(role: RoleName, cause: Cause) -> RoleName:
        seen.append((role, cause))
        return next_role(role, cause)

    monkeypatch.setattr(moves, "next_role", watch)
    node = AT_FIVE[pair[0]]()
    if pair == (RoleName.FOLLOWER, Cause.LEADER_OF_THIS_EPOCH):
        node.receives(begin_request(5, by=2, endpoints=(endpoint(2), endpoint(7))))
    else:
        WAYS[pair](node)
    assert pair in seen


@pytest.mark.parametrize(
    "pair", [(role, cause) for role in RoleName for cause in Cause if (role, cause) not in TABLE], ids=str
)
def test_every_other_pair_asserts(pair: tuple[RoleName, Cause]) -> None:
    with pytest.raises(AssertionError, match="cannot end for"):
        next_role(*pair)


def test_nobody_becomes_leader_but_a_candidate_and_nobody_a_candidate_without_pre_votes() -> None:
    assert [role for (role, _), target in TABLE.items() if target is RoleName.LEADER] == [RoleName.CANDIDATE]
    assert [role for (role, _), target in TABLE.items() if target is RoleName.CANDIDATE] == [RoleName.PROSPECTIVE]


def test_the_diagram_has_every_arrow_once() -> None:
    lines = mermaid(TABLE, first=RoleName.UNATTACHED).splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    candidate --> leader: votes won" in lines
    arrows = [line.split(":")[0] for line in lines[2:]]
    assert len(arrows) == len(dict.fromkeys(arrows)) == len({(role, to) for (role, _), to in TABLE.items()})
