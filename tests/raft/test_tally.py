"""Elections are counted as Kafka counts them, from the last candidacy until somebody leads."""

from fastquorum.raft.tally import LATEST_MAX, EndedElection, Tally
from fastquorum.raft.transitions import Cause, RoleName


def test_an_election_is_timed_from_the_candidacy_to_the_leader() -> None:
    tally = Tally()
    tally.became(RoleName.PROSPECTIVE, 100)
    tally.became(RoleName.CANDIDATE, 200)
    tally.became(RoleName.LEADER, 500)
    so_far = tally.so_far()
    assert (so_far.stood, so_far.won, so_far.role_changes) == (1, 1, 3)
    assert (so_far.timed, so_far.latency_us, so_far.latest) == (1, 300, (EndedElection(500, 300),))


def test_a_lost_election_that_is_stood_in_again_counts_from_the_second_candidacy() -> None:
    tally = Tally()
    for role, at_us in (
        (RoleName.CANDIDATE, 10),
        (RoleName.PROSPECTIVE, 20),
        (RoleName.CANDIDATE, 30),
        (RoleName.UNATTACHED, 35),
        (RoleName.FOLLOWER, 70),
    ):
        tally.became(role, at_us)
    so_far = tally.so_far()
    assert (so_far.stood, so_far.won) == (2, 0)
    assert so_far.latest == (EndedElection(70, 40),)


def test_to_follow_without_having_stood_is_no_election_and_neither_is_one_that_takes_no_time() -> None:
    tally = Tally()
    tally.became(RoleName.FOLLOWER, 10)
    tally.became(RoleName.CANDIDATE, 20)
    tally.became(RoleName.LEADER, 20)
    tally.became(RoleName.RESIGNED, 30)
    tally.became(RoleName.FOLLOWER, 40)
    assert (tally.so_far().timed, tally.so_far().latest) == (0, ())


def test_only_the_latest_are_kept_one_by_one() -> None:
    tally = Tally()
    for number in range(LATEST_MAX + 5):
        tally.became(RoleName.CANDIDATE, 10 * number)
        tally.became(RoleName.LEADER, 10 * number + 1)
    so_far = tally.so_far()
    assert so_far.timed == so_far.latency_us == LATEST_MAX + 5
    assert len(so_far.latest) == LATEST_MAX
    assert so_far.latest[-1].ended_us == 10 * (LATEST_MAX + 4) + 1


def test_a_change_of_leadership_counts_by_what_began_it_and_without_a_cause_not_at_all() -> None:
    tally = Tally()
    tally.leadership_changed((), was_led=False)
    assert tally.changes_so_far() == ({}, ())
    tally.leadership_changed((Cause.FETCH_TIMEOUT, Cause.PRE_VOTES_WON), was_led=True)
    tally.leadership_changed((Cause.VOTES_WON,), was_led=False)
    tally.leadership_changed((Cause.FETCH_TIMEOUT,), was_led=True)
    tally.leadership_changed((), was_led=False)
    assert tally.changes_so_far() == ({Cause.FETCH_TIMEOUT: 2, Cause.VOTES_WON: 1}, (Cause.FETCH_TIMEOUT,))


def test_why_a_leader_was_elected_begins_with_why_the_one_before_was_lost() -> None:
    tally = Tally()
    lost = (Cause.LEADER_GONE, Cause.PRE_VOTES_WON)
    tally.leadership_changed(lost, was_led=True)
    tally.leadership_changed((Cause.VOTES_WON,), was_led=False)
    assert tally.latest_causes == (*lost, Cause.VOTES_WON)
    tally.leadership_changed((Cause.LEADER_OF_HIGHER_EPOCH,), was_led=True)
    assert tally.latest_causes == (Cause.LEADER_OF_HIGHER_EPOCH,)
