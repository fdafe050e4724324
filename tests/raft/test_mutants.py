"""Each known bug, put back, is caught by a scenario that passes without it."""

from collections.abc import Callable

import pytest

from fastquorum.config import MS
from fastquorum.kernels.lane import LeaderSession
from fastquorum.raft import effects as fx

from .mutants import MUTANTS
from .network import Network
from .promises import Promises
from .scenario import replica
from .wire_messages import fetch_response, is_granted, key, vote_request

pytestmark = pytest.mark.long


def a_restarted_voter_remembers_its_vote() -> None:
    voter = replica(1).unattached(epoch=5)
    assert is_granted(voter.receives(vote_request(6, by=2)))
    voter.restarts()
    assert not is_granted(voter.receives(vote_request(6, by=3)))


def a_restarted_voter_refuses_the_epochs_it_has_left() -> None:
    voter = replica(1).persisted(5, voted=key(2)).log("3:4").starts()
    assert voter.epoch == 5
    assert not is_granted(voter.receives(vote_request(5, by=3, log=(4, 9))))


def what_is_sent_is_durable() -> None:
    voter = replica(1).starts()
    promises = Promises(key(1))
    promises.watch(voter, voter.effects, -1)
    promises.request = vote_request(1, by=2)
    voter.forget()
    voter.receives(promises.request)
    promises.watch(voter, voter.effects, -1)


def a_restarted_leader_leads_another_epoch() -> None:
    leader = replica(1).voters(1, 2, 3).starts()
    leader.elect_itself()
    led = leader.epoch
    del leader.fake_log.epochs[:]  # what was not flushed is gone: the same offsets would get other records
    leader.restarts()
    assert leader.role == "resigned"
    leader.elect_itself()
    assert leader.epoch > led


def a_restarted_leader_votes_for_nobody_in_its_epoch() -> None:
    leader = replica(1).leader(epoch=5)
    assert leader.role == "leader"
    del leader.fake_log.epochs[:]  # the tail that was not flushed
    leader.restarts()
    assert not is_granted(leader.receives(vote_request(5, by=2, log=(4, 100))))


def a_follower_keeps_what_is_committed() -> None:
    follower = replica(1).follower(epoch=5, of=3).log("1:10").committed(8)
    follower.lane_hands_up(fetch_response(5, leader=3, diverging=(1, 7)))
    assert not follower.ordered(fx.TruncateLog)


def a_leader_commits_nothing_before_its_own_first_record() -> None:
    session = replica(1).leader(epoch=5).log("1:4 3:5 5:1").raft.lane_session()
    assert isinstance(session, LeaderSession)
    assert session.epoch_start == 9


def a_longer_log_of_an_older_epoch_does_not_win() -> None:
    assert not is_granted(replica(1).unattached(5).log("1:2 4:3").receives(vote_request(6, log=(3, 500))))


def an_isolated_leader_resigns() -> None:
    network = Network(1, 2, 3, seed=1)
    leader = network.run_until_led()
    network.isolate(leader)
    network.run(5_000)
    assert network.nodes[leader].role != "leader"


def a_leader_of_stuck_followers_resigns() -> None:
    leader = replica(1).leader(epoch=5)
    for _ in range(8):
        leader.elapse(500)
        if leader.role == "leader":
            leader.fetched_by(2, 3, progress=False)
    assert leader.role != "leader"


def a_voter_that_was_cut_off_does_not_depose_the_leader() -> None:
    network = Network(1, 2, 3, seed=1)
    leader = network.run_until_led()
    epoch = network.nodes[leader].epoch
    network.isolate(next(node_id for node_id in network.nodes if node_id != leader))
    network.run(10_000)
    network.heal()
    network.run(5_000)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)


def _after_an_outage(seed: int, kinds: int) -> None:
    """Voters that were long without a leader, and strangers at all of them."""
    network = Network(1, 2, 3, seed=seed)
    for node_id in network.nodes:
        network.isolate(node_id)
    network.run(20_000)
    network.pester(3 * MS, kinds=kinds)
    network.run(2_000)
    network.heal()
    leader = network.run_until_led(6 * network.nodes[1].config.election_timeout_us // MS)
    assert leader in network.nodes


def strangers_that_ask_and_claim_all_the_time_hinder_no_election_after_an_outage() -> None:
    for seed in range(2):
        _after_an_outage(seed, 3)


def nor_do_strangers_that_only_ask() -> None:
    for seed in range(2):
        _after_an_outage(seed, 1)


def strangers_disturb_no_leader_by_way_of_a_voter_that_restarts() -> None:
    for seed in range(2):
        network = Network(1, 2, 3, seed=seed)
        leader = network.run_until_led()
        network.run(500)
        epoch = network.nodes[leader].epoch
        network.pester(1 * MS)
        other = next(node_id for node_id in network.nodes if node_id != leader)
        network.kill(other)
        network.run(100)
        network.restart(other)
        network.run(3_000)
        assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)


def nor_after_the_connection_to_the_leader_is_lost() -> None:
    network = Network(1, 2, 3, seed=1)
    leader = network.run_until_led()
    network.run(500)
    epoch = network.nodes[leader].epoch
    network.pester(1 * MS)
    network.refuse(next(node_id for node_id in network.nodes if node_id != leader), leader)
    network.run(900)
    network.heal()
    network.run(5_000)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)


SCENARIOS: dict[str, Callable[[], None]] = {
    "K1": a_restarted_voter_remembers_its_vote,
    "K2": a_restarted_voter_refuses_the_epochs_it_has_left,
    "K4": what_is_sent_is_durable,
    "K9": a_restarted_leader_leads_another_epoch,
    "K10": a_restarted_leader_votes_for_nobody_in_its_epoch,
    "K11": a_follower_keeps_what_is_committed,
    "K14": a_leader_commits_nothing_before_its_own_first_record,
    "K28": a_longer_log_of_an_older_epoch_does_not_win,
    "K30": an_isolated_leader_resigns,
    "K31": a_leader_of_stuck_followers_resigns,
    "K32": a_voter_that_was_cut_off_does_not_depose_the_leader,
    "moved-by-strangers": strangers_that_ask_and_claim_all_the_time_hinder_no_election_after_an_outage,
    "disturbs-at-start": strangers_disturb_no_leader_by_way_of_a_voter_that_restarts,
    "disturbs-the-lost": nor_after_the_connection_to_the_leader_is_lost,
    "waits-for-their-leads": strangers_that_ask_and_claim_all_the_time_hinder_no_election_after_an_outage,
    "believes-their-leads": strangers_that_ask_and_claim_all_the_time_hinder_no_election_after_an_outage,
    "waits-for-strangers": nor_do_strangers_that_only_ask,
}


def test_every_bug_has_a_scenario() -> None:
    assert set(SCENARIOS) == set(MUTANTS)


@pytest.mark.parametrize("scenario", dict.fromkeys(SCENARIOS.values()), ids=lambda scenario: scenario.__name__)
def test_the_scenario_passes_without_the_bug(scenario: Callable[[], None]) -> None:
    scenario()


@pytest.mark.parametrize("name", MUTANTS)
def test_the_scenario_fails_with_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name].apply(monkeypatch)
    with pytest.raises(AssertionError):
        SCENARIOS[name]()
