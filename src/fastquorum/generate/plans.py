"""The plan of each cluster, drawn from the seed before any of them is generated: so each is the same whatever the
others are."""

import itertools
from typing import Final, NamedTuple

from fastquorum.controller.ids import random_id
from fastquorum.generate.kinds import Kind, room_of
from fastquorum.generate.options import GenerateOptions
from fastquorum.sim.prng import Prng
from fastquorum.types import LISTENER_NAME, Endpoint, ReplicaKey, Voter, VoterSet

CONTROLLERS_FROM: Final = 1
HOST: Final = "localhost"
PORTS_FROM: Final = 19_091
"""First port of the voters, so that a cluster can run on one machine."""


class ClusterPlan(NamedTuple):
    """The plan of one cluster."""

    directory: str
    """The name of its directory, below the directory of all."""
    cluster_id: str
    voters: VoterSet
    brokers: int
    partitions: int
    kinds: tuple[Kind, ...]
    """The kinds that are planted in it."""
    seed: int


def plan_clusters(options: GenerateOptions) -> list[ClusterPlan]:
    """Return the plans of all clusters; `options` were checked."""
    prng = Prng(options.seed)
    width = max(3, len(str(options.clusters)))
    kinds = _spread(options, prng.fork())
    plans = []
    for number in range(1, options.clusters + 1):
        own = prng.fork()
        voters = [
            Voter(
                ReplicaKey(node_id, random_id(own)),
                (Endpoint(LISTENER_NAME, HOST, PORTS_FROM + node_id - CONTROLLERS_FROM),),
            )
            for node_id in range(CONTROLLERS_FROM, CONTROLLERS_FROM + options.replicas)
        ]
        plan = ClusterPlan(
            directory=f"cluster-{number:0{width}d}",
            cluster_id=str(random_id(own)),
            voters=VoterSet(voters),
            brokers=own.between(*options.brokers),
            partitions=own.between(*options.partitions),
            kinds=tuple(kinds[number - 1]),
            seed=own.bits(),
        )
        plans.append(plan)
    return plans


def _spread(options: GenerateOptions, prng: Prng) -> list[list[Kind]]:
    """Spread the kinds, each at most once to a cluster, to one with most room for it; a random one of those."""
    kinds: list[list[Kind]] = [[] for _ in range(options.clusters)]
    wanted = [kind for kind in Kind if options.faults.get(kind)]
    often = sorted(wanted, key=lambda kind: -options.faults[kind])  # who must be nearly everywhere comes first
    for kind in itertools.chain.from_iterable([each] * options.faults[each] for each in often):
        able = [each for each in kinds if kind not in each and _like(each, kind) < options.room_for(kind)]
        least = min((_like(each, kind), len(each)) for each in able)
        prng.pick([each for each in able if (_like(each, kind), len(each)) == least]).append(kind)
    return kinds


def _like(kinds: list[Kind], kind: Kind) -> int:
    """Return how many kinds of a cluster take the same room."""
    return sum(room_of(each) is room_of(kind) for each in kinds)
