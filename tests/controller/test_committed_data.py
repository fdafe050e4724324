"""Whatever happens to brokers and partitions, whoever leads has all that was committed, unless it leads uncleanly and
says so (C9).

A model beside the controller: how much of what was committed each replica holds. A leader commits while its ISR is no
smaller than the least one (KIP-966); whoever joins the ISR has caught up; a replica that is new, or whose broker came
back uncleanly, has less.
"""

import random
from collections.abc import Callable

import pytest

from fastquorum.controller import config_changes as configs
from fastquorum.controller import features
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.partitions import elections, reassignments
from fastquorum.types import NodeId
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest
from fastquorum.wire.messages.partitions import AlterPartitionReassignmentsRequest
from tests.controller import rig

BROKERS = (1, 2, 3, 4)
STEPS = 150
NOTHING = -1
LEAST_ISR = "min.insync.replicas"
ELR = "eligible.leader.replicas.version"
Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


class Cluster:
    """A controller, and what replicas of a topic's partitions hold."""

    def __init__(self, seed: int, *, elr: bool) -> None:
        self.chance = chance = random.Random(seed)
        self.controller = rig.Controller(elr=elr)
        self.controller.start(*BROKERS)
        self.least = chance.randint(1, 3)
        assignments = [tuple(self.some()) for _ in range(chance.randint(1, 3))]
        self.numbers = range(len(assignments))
        self.controller.topic(*assignments, configs={"min_insync_replicas": str(self.least)})
        self.committed = [0] * len(assignments)
        self.held: list[dict[NodeId, int]] = [dict.fromkeys(each, 0) for each in assignments]
        self.incarnations = dict.fromkeys(BROKERS, 1)

    def some(self) -> list[NodeId]:
        return self.chance.sample(BROKERS, self.chance.randint(1, 3))

    @property
    def is_elr_enabled(self) -> bool:
        return self.controller.state.image.features.is_elr_enabled

    def act(self, acts: tuple[Callable[["Cluster", NodeId, int], None], ...]) -> str:
        """One thing happens; what it was."""
        before = [self.controller.partition(number) for number in self.numbers]
        act = self.chance.choice(acts)
        broker, number = self.chance.choice(BROKERS), self.chance.choice(self.numbers)
        act(self, broker, number)
        what = f"{act.__name__} of broker {broker}, partition {number}"
        for each in self.numbers:
            self._look(each, before[each], what)
        return what

    def _look(self, number: int, before: Partition, what: str) -> None:
        after, held = self.controller.partition(number), self.held[number]
        self.held[number] = held = {each: held.get(each, NOTHING) for each in after.replicas}
        leader = after.leader
        if not after.has_leader or after.leader_epoch == before.leader_epoch:
            return
        was_known = leader in before.isr or leader in before.elr or what.startswith("joins")
        if after.recovery == 0 or was_known:
            assert held[leader] >= self.committed[number], f"{what}: {after} after {before}, {held}"
            return
        self.committed[number] = held[leader] = max(held[leader], 0)  # what the others have beyond that they cut off
        for each in held:
            if each != leader:
                held[each] = min(held[each], held[leader] - 1)


# --- what may happen --------------------------------------------------------------------------------------------------


def commits(cluster: Cluster, _: NodeId, number: int) -> None:
    partition = cluster.controller.partition(number)
    if partition.has_leader and len(partition.isr) >= min(cluster.least, len(partition.replicas)):
        cluster.committed[number] += 1
        for each in partition.isr:
            cluster.held[number][each] = cluster.committed[number]


def joins(cluster: Cluster, broker: NodeId, number: int) -> None:
    partition = cluster.controller.partition(number)
    may_join = broker in partition.replicas and broker not in partition.isr
    if partition.has_leader and may_join and cluster.controller.state.is_active(broker):
        cluster.held[number][broker] = cluster.committed[number]
        cluster.controller.alter([*partition.isr, broker], partition_index=number)


def falls_behind(cluster: Cluster, broker: NodeId, number: int) -> None:
    partition = cluster.controller.partition(number)
    if partition.has_leader and broker in partition.isr and broker != partition.leader:
        cluster.controller.alter([each for each in partition.isr if each != broker], partition_index=number)


def is_fenced(cluster: Cluster, broker: NodeId, _: int) -> None:
    if broker in cluster.controller.state.image.brokers:
        cluster.controller.beat(broker, want_fence=True)


def beats(cluster: Cluster, broker: NodeId, _: int) -> None:
    if broker in cluster.controller.state.image.brokers:
        cluster.controller.beat(broker)


def shuts_down(cluster: Cluster, broker: NodeId, _: int) -> None:
    if broker in cluster.controller.state.image.brokers:
        cluster.controller.beat(broker, want_shut_down=True)


def comes_back(cluster: Cluster, broker: NodeId, _: int) -> None:
    """With all that it had."""
    standing = cluster.controller.state.image.brokers.get(broker)
    if standing is not None:
        _register(cluster, broker, standing.epoch)


def comes_back_uncleanly(cluster: Cluster, broker: NodeId, _: int) -> None:
    """With less than it had: only where that is heeded."""
    if cluster.is_elr_enabled:
        for held in cluster.held:
            if broker in held:
                held[broker] = cluster.chance.randint(NOTHING, held[broker])
    _register(cluster, broker, -1)


def _register(cluster: Cluster, broker: NodeId, previous_epoch: int) -> None:
    cluster.controller.wait(20)  # its session is over; the others beat again before they are looked at
    cluster.incarnations[broker] += 1
    cluster.controller.register(broker, cluster.incarnations[broker], previous_broker_epoch=previous_epoch)


def is_unregistered(cluster: Cluster, broker: NodeId, _: int) -> None:
    if broker in cluster.controller.state.image.brokers:
        cluster.controller.unregister(broker)


def moves(cluster: Cluster, _: NodeId, number: int) -> None:
    target = [each for each in cluster.some() if each in cluster.controller.state.image.brokers]
    if target:
        _reassign(cluster, number, target)


def stays(cluster: Cluster, _: NodeId, number: int) -> None:
    """Take the reassignment back."""
    _reassign(cluster, number, None)


def _reassign(cluster: Cluster, number: int, target: list[NodeId] | None) -> None:
    partitions = [Topic.ReassignablePartition(partition_index=number, replicas=target)]
    request = AlterPartitionReassignmentsRequest(topics=[Topic(name="t", partitions=partitions)])
    cluster.controller.decide(reassignments.alter_reassignments(cluster.controller.state, request))


def has_another_least_isr(cluster: Cluster, _: NodeId, __: int) -> None:
    cluster.least = cluster.chance.randint(1, 3)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name=LEAST_ISR, config_operation=0, value=str(cluster.least))
    request = IncrementalAlterConfigsRequest(resources=[resource(resource_type=2, resource_name="t", configs=[config])])
    cluster.controller.decide(configs.incremental_alter_configs(cluster.controller.state, request))


def is_looked_after(cluster: Cluster, _: NodeId, __: int) -> None:
    for walk in (elections.balance, elections.elect_missing):
        if records := walk(cluster.controller.state).elections(cluster.controller.state):
            cluster.controller.write(*records)


def is_led_by_another_controller(cluster: Cluster, _: NodeId, __: int) -> None:
    cluster.controller.fail_over()


def turns_eligibility_on_or_off(cluster: Cluster, _: NodeId, __: int) -> None:
    level, kind = (0, 2) if cluster.is_elr_enabled else (1, 1)
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=ELR, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(feature_updates=[update])
    cluster.controller.decide(features.update_features(cluster.controller.state, request, 1))


OFTEN = (commits, commits, commits, joins, joins, joins, joins, beats, beats, moves)
RARELY = (
    falls_behind,
    is_fenced,
    shuts_down,
    comes_back,
    comes_back_uncleanly,
    is_unregistered,
    moves,
    stays,
    has_another_least_isr,
    is_looked_after,
    is_led_by_another_controller,
)


@pytest.mark.parametrize("elr", [True, False], ids=["with eligible leader replicas", "without"])
def test_who_leads_has_all_that_was_committed(elr: bool) -> None:
    for seed in range(150):
        cluster = Cluster(seed, elr=elr)
        happened = [cluster.act((*OFTEN, *RARELY)) for _ in range(STEPS)]
        assert len(happened) == STEPS


def test_so_it_has_when_eligibility_is_turned_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then an ISR may be empty that nobody is eligible for, as in Kafka: somebody has to elect."""
    monkeypatch.setattr(rig, "check", lambda state, before: None)
    for seed in range(150):
        cluster = Cluster(seed, elr=True)
        happened = [cluster.act((*OFTEN, *RARELY, turns_eligibility_on_or_off)) for _ in range(STEPS)]
        assert len(happened) == STEPS
