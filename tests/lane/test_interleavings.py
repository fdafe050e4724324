"""Three lanes, any order of appends, syncs, deliveries, pauses, elections and crashes: nothing committed is ever lost.

The state machine finds short stories and tells them well; the walks go deep, and are what the mutants are measured by.
"""

from collections.abc import Callable
from random import Random
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fastquorum.kernels import load
from fastquorum.kernels.pure.lane import Lane
from tests.lane import mutants
from tests.lane.builders import Make, MemoryLog
from tests.lane.cluster import VOTERS, Cluster, Node
from tests.lane.conftest import TWINS

node_ids = st.sampled_from(VOTERS)


class Interleavings(RuleBasedStateMachine):
    """The lanes run over both kernel sets at once."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster

    @initialize(
        kernels=st.lists(st.sampled_from(["pure", "native"]), min_size=3, max_size=3), twin=st.sampled_from([*TWINS])
    )
    def start(self, kernels: list[Literal["pure", "native"]], twin: str) -> None:
        self.cluster = Cluster([Make(TWINS[twin], load(name)) for name in kernels])
        assert self.cluster.elect(1, 2)
        self.cluster.follow(3)

    def node(self, node_id: int) -> Node:
        return self.cluster.nodes[node_id]

    @rule(node_id=node_ids, count=st.integers(1, 4))
    def append(self, node_id: int, count: int) -> None:
        self.cluster.append(self.node(node_id), count)

    @rule(node_id=node_ids)
    def finish_sync(self, node_id: int) -> None:
        self.cluster.finish_sync(self.node(node_id))

    @rule(node_id=node_ids)
    def deliver(self, node_id: int) -> None:
        self.cluster.deliver(self.node(node_id))

    @rule(order=st.lists(node_ids, max_size=12))
    def deliver_and_sync_many(self, order: list[int]) -> None:
        for node_id in order:
            if not self.cluster.deliver(self.node(node_id)):
                self.cluster.finish_sync(self.node(node_id))

    @rule(node_id=node_ids)
    def freeze(self, node_id: int) -> None:
        self.cluster.freeze(self.node(node_id))

    @rule(node_id=node_ids)
    def resume(self, node_id: int) -> None:
        self.cluster.resume(self.node(node_id))

    @rule(node_id=node_ids)
    def begin_barrier(self, node_id: int) -> None:
        self.cluster.begin_barrier(self.node(node_id))

    @rule(after_us=st.sampled_from([1, 200_000, 600_000]))
    def tick(self, after_us: int) -> None:
        self.cluster.tick(after_us)

    @rule(candidate=node_ids, supporter=node_ids)
    def elect(self, candidate: int, supporter: int) -> None:
        self.cluster.elect(candidate, supporter)

    @rule(node_id=node_ids)
    def learn_of_the_leader(self, node_id: int) -> None:
        self.cluster.learn(self.node(node_id))

    @rule(node_id=node_ids, version=st.integers(12, 18))
    @precondition(lambda self: self.cluster.connections < 200)
    def reconnect(self, node_id: int, version: int) -> None:
        self.cluster.reconnect(self.node(node_id), version)

    @rule(node_id=node_ids)
    def crash(self, node_id: int) -> None:
        self.cluster.crash(self.node(node_id))

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.check()

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.heal()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


# --- walks ------------------------------------------------------------------------------------------------------------

KERNELS: tuple[Literal["pure", "native"], ...] = ("pure", "native")
Action = Callable[[Cluster, Node, Random], object]
DELIVER: Action = lambda cluster, node, _: cluster.deliver(node)  # noqa: E731
RARE = 30
"""Actions below this weight are faults: each walk leaves some out and has more of others."""
ACTIONS: tuple[tuple[Action, int], ...] = (
    (DELIVER, 300),
    (lambda cluster, node, _: cluster.finish_sync(node), 150),
    (lambda cluster, node, random: cluster.append(node, random.randint(1, 3)), 120),
    (lambda cluster, node, random: cluster.tick(random.choice((1, 100_000, 600_000))), 30),
    (lambda cluster, node, _: cluster.begin_barrier(node), 60),
    (lambda cluster, node, _: cluster.freeze(node), 25),
    (lambda cluster, node, _: cluster.resume(node), 150),
    (lambda cluster, node, random: cluster.elect(node.id, random.choice(VOTERS)), 6),
    (lambda cluster, node, _: cluster.learn(node), 40),
    (lambda cluster, node, random: cluster.reconnect(node, random.randint(12, 18)), 8),
    (lambda cluster, node, _: cluster.crash(node), 4),
)


def walk(makes: list[Make], seed: int, steps: int = 800, log: type[MemoryLog] = MemoryLog) -> Cluster:
    """A random story from its seed, with a node that hears nothing for a while; afterwards the faults stop."""
    random = Random(seed)
    cluster = Cluster(makes, log)
    assert cluster.elect(1, 2)
    cluster.follow(3)
    actions = [action for action, _ in ACTIONS]
    weights = [weight * (random.choice((0, 1, 4)) if weight < RARE else 1) for _, weight in ACTIONS]
    deaf = -1
    for step, action in enumerate(random.choices(actions, weights, k=steps)):
        if step % 150 == 0:
            deaf = random.choice((-1, *VOTERS))
        node_id = random.choice(VOTERS)
        if node_id != deaf or action is not DELIVER:
            action(cluster, cluster.nodes[node_id], random)
            cluster.check()
    cluster.heal()
    return cluster


@pytest.mark.parametrize("seed", range(100))
def test_a_walk_loses_nothing(seed: int) -> None:
    twins, names = list(TWINS.values()), KERNELS
    walk([Make(twins[seed % len(twins)], load(names[(seed >> index) & 1])) for index in range(3)], seed)


def test_the_walks_reach_deep() -> None:
    clusters = [walk([Make(Lane, load("pure"))] * 3, seed) for seed in range(20)]
    assert sum(len(cluster.committed) for cluster in clusters) > 300
    assert sum(cluster.barriers_done for cluster in clusters) > 30
    assert sum(cluster.epoch for cluster in clusters) > 80


CAUGHT_BY_WALKS = (
    mutants.HandsUpWithoutFreezing,
    mutants.FreezesWithoutWritingWhatGathered,
    mutants.SendsWhileFrozen,
    mutants.GoesOnAfterClose,
    mutants.AnswersAParkedFetchTwice,
    mutants.SamplesTheEndAfterTheSync,
    mutants.TrustsSyncsFromBeforeATruncation,
    mutants.ConfirmsBeforeTheEpochsStart,
    mutants.CountsItsUnflushedEnd,
    mutants.FetchesPastWhatIsSynced,
)


@pytest.mark.parametrize("mutant", CAUGHT_BY_WALKS, ids=lambda mutant: mutant.__name__)
def test_walks_catch_mutants_too(mutant: type[Lane] | type[MemoryLog]) -> None:
    lane, log = (Lane, mutant) if issubclass(mutant, MemoryLog) else (mutant, MemoryLog)
    with pytest.raises(AssertionError):  # noqa: PT012
        for seed in range(20):
            walk([Make(lane, load("native"))] * 3, seed, log=log)
