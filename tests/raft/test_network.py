"""Replicas among themselves: they elect, follow, lose their leader and agree on what was committed."""

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev

from .network import STRANGER, Network

SEEDS = range(3)
FETCH_TIMEOUT_MS = QuorumConfig().fetch_timeout_us // MS


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_any_number_of_voters_elects_one_leader_and_keeps_it(count: int, seed: int) -> None:
    network = Network(*range(1, count + 1), seed=seed)
    if count == 1:
        network.run(1000)
        assert network.leader == 1
        return
    leader = network.run_until_led()
    epoch = network.nodes[leader].epoch
    network.run(10_000)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_leader_is_replaced_and_nothing_committed_is_lost(seed: int) -> None:
    network = Network(1, 2, 3, seed=seed)
    first = network.run_until_led()
    network.append(5)
    network.run(500)
    committed = list(network.committed)
    network.kill(first)
    second = network.run_until_led(by_other_than=first)
    assert network.nodes[second].fake_log.epochs[: len(committed)] == committed
    network.restart(first)
    network.run(5_000)
    assert network.nodes[first].role == "follower"
    assert str(network.nodes[first].fake_log) == str(network.nodes[second].fake_log)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [3, 5, 7])
def test_a_leader_whose_process_is_gone_is_replaced_long_before_the_fetch_timeout(count: int, seed: int) -> None:
    network = Network(*range(1, count + 1), seed=seed)
    first = network.run_until_led()
    network.run(500)
    network.kill(first)
    network.run_until_led(QuorumConfig().fetch_timeout_us // MS // 4, by_other_than=first)


def test_a_voter_that_alone_takes_the_leader_for_gone_does_not_depose_it() -> None:
    network = Network(1, 2, 3, seed=1)
    leader = network.run_until_led()
    network.run(500)
    epoch = network.nodes[leader].epoch
    wrong = next(node_id for node_id in network.nodes if node_id != leader)
    network.refuse(wrong, leader)
    network.run(500)
    assert network.nodes[wrong].role == "prospective"
    network.run(60_000)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)
    network.heal()
    network.run(10_000)
    assert (network.leader, network.nodes[leader].epoch, network.nodes[wrong].role) == (leader, epoch, "follower")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [3, 5])
def test_a_follower_that_its_leader_refuses_deposes_nobody_early_though_a_voter_knows_no_pre_vote(
    count: int, seed: int
) -> None:
    network = Network(*range(1, count + 1), seed=seed)
    leader = network.run_until_led()
    network.run(500)
    epoch = network.nodes[leader].epoch
    wrong, *others = [node_id for node_id in network.nodes if node_id != leader]
    network.without_pre_vote = others[:1]
    network.refuse(wrong, leader)
    network.run(FETCH_TIMEOUT_MS - 600)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)
    network.heal()
    network.run(10_000)
    assert (network.leader, network.nodes[leader].epoch) == (leader, epoch)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_is_gone_is_replaced_though_no_voter_knows_pre_votes(seed: int) -> None:
    network = Network(1, 2, 3, seed=seed)
    leader = network.run_until_led()
    network.without_pre_vote = [node_id for node_id in network.nodes if node_id != leader]
    network.kill(leader)
    network.run_until_led(by_other_than=leader)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_isolated_leader_resigns_and_what_only_it_had_is_truncated(seed: int) -> None:
    network = Network(1, 2, 3, seed=seed)
    first = network.run_until_led()
    network.isolate(first)
    network.append(7)
    second = network.run_until_led(by_other_than=first)
    network.append(2)
    network.run(4_000)
    assert network.nodes[first].role != "leader"
    network.heal()
    network.run(8_000)
    assert str(network.nodes[first].fake_log) == str(network.nodes[second].fake_log)
    assert network.leader == second, "the one that comes back disturbs nobody"


def test_a_voter_that_comes_back_from_isolation_has_not_moved_the_epoch() -> None:
    """KIP-996."""
    network = Network(1, 2, 3, seed=1)
    leader = network.run_until_led()
    other = next(node_id for node_id in network.nodes if node_id != leader)
    epoch = network.nodes[leader].epoch
    network.isolate(other)
    network.run(60_000)
    network.heal()
    network.run(10_000)
    assert (network.leader, network.nodes[leader].epoch, network.nodes[other].role) == (leader, epoch, "follower")


def test_a_voter_that_hears_but_is_not_heard_does_not_depose_the_leader() -> None:
    network = Network(1, 2, 3, seed=2)
    leader = network.run_until_led()
    other = next(node_id for node_id in network.nodes if node_id != leader)
    network.cut = [(leader, other)]
    network.run(60_000)
    assert network.leader == leader


def test_all_at_once_restart_and_one_leads_a_new_epoch() -> None:
    network = Network(1, 2, 3, seed=3)
    first = network.run_until_led()
    network.append(4)
    network.run(500)
    epoch, committed = network.nodes[first].epoch, list(network.committed)
    for node_id in (1, 2, 3):
        network.kill(node_id)
    network.run(1000)
    for node_id in (1, 2, 3):
        network.restart(node_id)
    leader = network.run_until_led()
    assert network.nodes[leader].epoch > epoch
    assert network.committed[: len(committed)] == committed


def test_without_a_majority_nobody_leads_and_with_it_somebody_does() -> None:
    network = Network(1, 2, 3, 4, 5, seed=4)
    first = network.run_until_led()
    gone = [first, *(node_id for node_id in network.nodes if node_id != first)][:3]
    for node_id in gone:
        network.kill(node_id)
    network.run(10_000)
    assert network.leader is None
    network.restart(gone[0])
    network.run_until_led()


def test_observers_follow_every_leader_and_never_count() -> None:
    network = Network(1, 2, 3, observers=(8, 9), seed=5)
    first = network.run_until_led()
    network.run(1000)
    assert [str(network.nodes[each].role) for each in (8, 9)] == ["follower"] * 2
    network.kill(first)
    second = network.run_until_led(by_other_than=first)
    network.append(3)
    network.run(5_000)
    for each in (8, 9):
        assert network.nodes[each].leader_id == second
        assert str(network.nodes[each].fake_log) == str(network.nodes[second].fake_log)
    rest = next(node_id for node_id in (1, 2, 3) if node_id not in (first, second))
    network.kill(rest)
    network.run(5_000)
    assert network.leader is None, "two observers and a leader are no majority"


def test_leadership_can_be_handed_over() -> None:
    network = Network(1, 2, 3, seed=6)
    first = network.run_until_led()
    network.run(1000)
    chosen = max(node_id for node_id in network.nodes if node_id != first)
    epoch = network.nodes[first].epoch
    network._step(first, ev.ResignRequested(chosen, epoch))
    network.run(200)
    assert (network.leader, network.nodes[chosen].epoch) == (chosen, epoch + 1)


def test_a_quiet_quorum_sends_no_requests_of_raft() -> None:
    network = Network(1, 2, 3, seed=7)
    network.run_until_led()
    network.run(3_000)
    for node in network.nodes.values():
        node.forget()
    network.run(60_000)
    for node in network.nodes.values():
        assert not node.ordered(fx.SendRequest)
        assert not node.ordered(fx.PersistElection)


@pytest.mark.parametrize("count", [3, 5])
def test_a_voter_that_a_stranger_led_while_it_was_alone_comes_back_and_leads_nobody_away(count: int) -> None:
    network = Network(*range(1, count + 1), seed=count)
    leader = network.run_until_led()
    alone = next(node_id for node_id in network.nodes if node_id != leader)
    network.isolate(alone)
    network.run(12_000)
    network.pester(3 * MS)
    network.run(2_000)
    assert network.nodes[alone].leader_id == STRANGER
    network.heal()
    network.run(6_000)
    leader = network.run_until_led()
    network.run(3_000)
    assert {node.leader_id for node in network.nodes.values()} == {leader}


@pytest.mark.parametrize("seed", SEEDS)
def test_strangers_hinder_no_election_when_the_leaders_machine_is_lost_without_a_word(seed: int) -> None:
    network = Network(1, 2, 3, 4, 5, seed=seed)
    leader = network.run_until_led()
    network.run(3_000)
    network.pester(3 * MS)
    network.down.append(leader)
    network.run_until_led(2 * FETCH_TIMEOUT_MS, by_other_than=leader)
