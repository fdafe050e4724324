"""Running seeds: one, many, or one again with its whole trace. Plain functions, so that a caller may spread them
over processes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, get_args

from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.kernels import load
from fastquorum.kernels.lane import load_lane
from fastquorum.meant import one_of
from fastquorum.sim.node.build import Twin
from fastquorum.sim.phases import Phases
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Report, Violation
from fastquorum.sim.swarm import (
    HARDSHIPS,
    ClusterSwarm,
    draw,
    draw_cluster,
    draw_members,
    spared,
    with_snapshots_by_age,
)
from fastquorum.sim.trace import SimTrace
from fastquorum.sim.world import World

KernelChoice = Literal["mixed", "pure", "native"]
NODES_MAX: Final = 5
MEMBERS_EVERY: Final = 8
"""One in this number of cluster seeds has members that share a broker id in place of brokers."""
BY_AGE_EVERY: Final = 7
"""One in this number of cluster seeds takes snapshots by age, and has kraft.version raised amid the faults."""


def run(
    seed: int,
    nodes: int | None = None,
    *,
    kernels: KernelChoice = "mixed",
    controller: bool = False,
    without: Sequence[str] = (),
    echo: Callable[[str], None] | None = None,
) -> Report:
    """Simulate one seed.

    Args:
        seed: decides everything.
        nodes: the number of voters, 1 to 5; None: the seed's choice.
        kernels: "mixed" gives some nodes the pure set and lane and some the native ones. The trace does not depend on
            it.
        controller: the nodes are a cluster's controllers, brokers and an administrator use them, or members that
            share one broker id, and what they commit is checked as well.
        without: faults that the seed is spared, of `swarm.HARDSHIPS`: all else stays as it was drawn.
        echo: gets every line of the trace at once.

    Raises:
        UsageError: there is no such seed, number of nodes, choice of kernels, or fault.
    """
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed {seed}", "a seed is a number from 0 to 2^64 - 1")
    if nodes is not None and not 1 <= nodes <= NODES_MAX:
        raise UsageError(f"{nodes} nodes", f"a simulated quorum has 1 to {NODES_MAX} voters")
    if kernels not in get_args(KernelChoice):
        raise UsageError(f"kernels {kernels!r}", f"one of {', '.join(get_args(KernelChoice))}")
    for each in without:
        if each not in HARDSHIPS:
            raise UsageError(f"without {each!r}", one_of("faults", each, HARDSHIPS))
    prng = Prng(seed)
    swarm = spared(draw(prng, nodes), without)
    cluster = _cluster(seed, prng) if controller else None
    trace = SimTrace(echo)
    world = World(prng, swarm if cluster is None else cluster.applied(swarm), _twins(kernels), trace, cluster)
    violation: Violation | None = None
    try:
        Phases(world).run()
    except Violation as broken:
        violation = broken
    except AssertionError as error:
        violation = Violation("assertion", _where(error))
        violation.__cause__ = error
    except (FastQuorumError, ArithmeticError, LookupError, AttributeError, TypeError, ValueError) as error:
        violation = Violation("unexpected error", _where(error))
        violation.__cause__ = error
    return _report(seed, nodes, without, world, violation)


def run_seed(seed: int) -> Report:
    """`run` with all defaults: what a pool of processes maps over seeds."""
    return run(seed)


def run_cluster(seed: int) -> Report:
    """`run` with controllers: as `run_seed`."""
    return run(seed, controller=True)


def sweep(seeds: Iterable[int], *, kernels: KernelChoice = "mixed", controller: bool = False) -> Iterator[Report]:
    """Simulate many seeds, one after another."""
    for seed in seeds:
        yield run(seed, kernels=kernels, controller=controller)


def replay(
    seed: int,
    echo: Callable[[str], None],
    nodes: int | None = None,
    *,
    kernels: KernelChoice = "mixed",
    controller: bool = False,
    without: Sequence[str] = (),
) -> Report:
    """Simulate a seed again and show everything that happens."""
    return run(seed, nodes, kernels=kernels, controller=controller, without=without, echo=echo)


def _cluster(seed: int, prng: Prng) -> ClusterSwarm:
    cluster = draw_members(prng) if seed % MEMBERS_EVERY == 0 else draw_cluster(prng)
    return with_snapshots_by_age(cluster, prng) if seed % BY_AGE_EVERY == 0 else cluster


def _twins(choice: KernelChoice) -> tuple[Twin, ...]:
    names: tuple[Literal["pure", "native"], ...] = ("pure", "native") if choice == "mixed" else (choice,)
    return tuple(Twin(load(name), load_lane(name)) for name in names)


def _where(error: BaseException) -> str:
    """The error and the innermost place it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {error}{place}"


def _report(seed: int, nodes: int | None, without: Sequence[str], world: World, violation: Violation | None) -> Report:
    environment, ledger = world.environment, world.ledger
    network = environment.network
    faults = {kind: count for kind, count in world.nemesis.counts.items() if count}
    for kind, count in (
        ("loss", network.lost),
        ("duplication", network.duplicated),
        ("broken connection", network.broken),
    ):
        if count:
            faults[kind] = count
    if world.population is not None:
        faults |= world.population.context.counts
    return Report(
        seed=seed,
        brokers=0 if world.population is None else world.population.size,
        ok=violation is None,
        nodes=nodes,
        without=tuple(without),
        trace_hash=environment.trace.digest,
        voters=environment.swarm.voters,
        observers=environment.swarm.observers,
        events=environment.scheduler.events,
        virtual_us=environment.scheduler.now_us,
        elections=len(environment.ghost.leaders),
        committed_records=environment.ghost.committed_end,
        acknowledged=ledger.acknowledged,
        unknown=sum(operation.outcome == "unknown" for operation in ledger.operations),
        barriers=ledger.barriers,
        restarts=world.restarts,
        faults=faults,
        invariant=violation.invariant if violation is not None else "",
        detail=violation.detail if violation is not None else "",
        node_id=violation.node_id if violation is not None else -1,
        trace_tail=environment.trace.last_lines if violation is not None else (),
    )
