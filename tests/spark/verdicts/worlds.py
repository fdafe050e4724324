"""Worlds of directories, healthy and damaged, and whether the audits say of each what is known of it.

A world is a number: its quorum, what happens to that, its directories and its damage are all drawn from it.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum.spark.engines.engine import Engine
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.engines.local_reads import clusters_at
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.spark.pipelines.invariants.findings import FindingKind
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from tests.spark.verdicts.directories import Layout, Written, dressed, emptied, of_stranger, written
from tests.spark.verdicts.losses import LOSSES, Damaged, Loss, older_put_back
from tests.spark.verdicts.quorum import Quorum, node_id_of
from tests.spark.verdicts.scenes import play

_STEPS: Final = (10, 40, 80, 150)
_THREADS: Final = 3
_ALARMS: Final = frozenset({ReplicaVerdict.DIVERGENT, ReplicaVerdict.LACKING, ReplicaVerdict.UNDECIDED})

Row = tuple[Any, ...]


class Findings(NamedTuple):
    """What the audits say of a cluster, each replica by its own name."""

    replicas: dict[str, Row]
    """Verdict, offset, committed end, and why."""
    promises: list[Row]

    def of(self, *verdicts: ReplicaVerdict) -> list[str]:
        return sorted(name for name, row in self.replicas.items() if row[0] in verdicts)

    @property
    def committed(self) -> int | None:
        return next((row[2] for row in self.replicas.values()), None)


class World(NamedTuple):
    """One of them, on disk."""

    seed: int
    chance: random.Random
    root: Path
    quorum: Quorum
    layout: Layout
    replicas: list[Written]


def made(seed: int, root: Path) -> World:
    chance = random.Random(seed)
    quorum = Quorum(chance)
    play(seed, quorum)
    quorum.run(chance.choice(_STEPS))
    # Of more directories than voters nobody can tell whose a nameless one is.
    needs_names = quorum.is_dynamic or len(quorum.nodes) > len(quorum.initial)
    layout = Layout(
        is_named=chance.random() < 0.85 or needs_names, has_marks=chance.random() < 0.7, has_epochs=seed % 2 == 0
    )
    return World(seed, chance, root, quorum, layout, written(quorum, emptied(root) / "world", layout))


def found_by(engine: Engine, path: str, names: dict[str, str]) -> Findings:
    """`names`: what directories are really called, by what they are called at the path."""

    def named(text: object) -> str:
        for called, name in names.items():
            text = str(text).replace(called, name)
        return str(text)

    rows = [row for row in engine.audit_replicas(path).to_pylist() if row["directory"] in names]
    replicas = {
        names[row["directory"]]: (row["verdict"], row["offset"], row["committed_end"], named(row["why"]))
        for row in rows
    }
    assert len(replicas) == len(rows), "a directory that is meant twice has two rows"
    report = findings.as_report(engine.audit_invariants(path))
    promises = [
        (row["kind"], row["offset"], row["epoch"], sorted(map(named, row["directories"])))
        for row in report["violations"]
        if any(each in names for each in row["directories"])
    ]
    return Findings(replicas, sorted(promises, key=str))


def plainly_found(world: World, engine: Engine) -> Findings:
    names = {str(each.path): each.path.name for each in world.replicas}
    return found_by(engine, f"{world.root}/world", names)


# --- what is wrong with what was said ---------------------------------------------------------------------------------


def faults(seed: int, root: Path, others: dict[str, Engine]) -> Iterator[str]:
    """All that is wrong in one world, as sentences. `others`: engines that must say the same as this process does."""
    world = made(seed, root)
    healthy = plainly_found(world, LocalEngine(1))
    yield from _of_healthy(world, healthy)
    if is_compared_healthy := world.chance.random() < 0.5:
        yield from _of_other_ways(world, healthy, others)
    if (damaged := _damaged(world)) is not None:
        what, loss = damaged
        found = plainly_found(world, LocalEngine(1))
        wrong = _of_damaged(world, loss, healthy, found)
        ways = [] if is_compared_healthy else _of_other_ways(world, found, others)
        for fault in (*wrong, *ways):
            yield f"{what} in {loss.replica.path.name}: {fault}"
    shutil.rmtree(root)


def _of_healthy(world: World, found: Findings) -> Iterator[str]:
    quorum, committed = world.quorum, found.committed
    if accused := found.of(ReplicaVerdict.DIVERGENT, ReplicaVerdict.LACKING):
        yield f"healthy replicas are divergent, or lack records: {accused}, {found.replicas}"
    # Before anything is committed a log that lost it looks like one that never had it.
    undecided = [
        each for each in found.of(ReplicaVerdict.UNDECIDED) if not _may_be_undecided(quorum, found.replicas[each])
    ]
    if quorum.committed and undecided:
        yield f"healthy replicas are undecided: {undecided}, {found.replicas}"
    # A node does not start without the file that names it, whatever its log is.
    if broken := [each for each in found.promises if world.layout.is_named or each[0] != FindingKind.PROPERTIES]:
        yield f"healthy logs break promises: {broken}"
    if (committed or 0) < quorum.committed:
        yield f"offset {committed} is called the committed end, and {quorum.committed} was"
    yield from _of_ends(world, found)


def _may_be_undecided(quorum: Quorum, row: Row) -> bool:
    """Return whether logs cannot tell: a majority holds it, and no leader committed it (Raft, figure 8)."""
    _, offset, committed_end, _ = row
    return offset is not None and quorum.committed <= offset < (committed_end or 0)


def _of_ends(world: World, found: Findings) -> Iterator[str]:
    end_max = max(each.node.end for each in world.replicas)
    if (found.committed or 0) > end_max:
        yield f"{found.committed} is called the committed end, and no replica has more than {end_max}"
    for cluster in clusters_at(f"{world.root}/world", 1):
        for row in cluster.choice().to_pylist():
            if row["end_offset"] is not None and row["end_offset"] > (found.committed or 0) and not row["unproven"]:
                yield f"records are read up to {row['end_offset']}, and {found.committed} is called committed"


def _of_damaged(world: World, loss: Loss, healthy: Findings, found: Findings) -> Iterator[str]:
    name = loss.replica.path.name
    is_proven = loss.is_proven and (loss.crash_from is None or (found.committed or 0) > loss.crash_from)
    if is_proven and not found.of(*_ALARMS):
        yield f"the replicas' audit is silent: {found.replicas}"
    is_torn_end = loss.is_torn and loss.replica.node.end >= (found.committed or 0)
    if is_torn_end and name in found.of(ReplicaVerdict.DIVERGENT):
        yield f"what lies behind all that is committed is accused: {found.replicas}"
    if loss.breaks_promise and not found.promises:
        yield f"the promises' audit is silent: {found.replicas}"
    # The only voter is right, whatever became of it.
    is_only_voter = set(_voters(world)) == {loss.replica.node.id}
    if not is_only_voter and (accused := [each for each in found.of(ReplicaVerdict.DIVERGENT) if each != name]):
        yield f"others are accused: {accused}, {found.replicas}"
    # A nameless one without a log is no directory of a replica, and has no vote any more.
    is_seen = name in found.replicas
    if is_seen and (found.committed or 0) > (healthy.committed or 0):
        yield f"{found.committed} is called the committed end, and before it was {healthy.committed}"
    yield from _of_ends(world, found)


def _voters(world: World) -> tuple[int, ...]:
    """Return the voters in force along the log that goes farthest."""
    best = max((each.node for each in world.replicas), key=lambda node: node.up_to_date)
    return best.voters(world.quorum.initial)


def _damaged(world: World) -> tuple[str, Loss] | None:
    """One of the replicas that have anything."""
    pool = [each for each in world.replicas if each.node.end > 0 and not each.path.name.startswith("copy")]
    if not pool or (len(world.replicas) == 1 and not world.layout.is_named):
        return None  # what is left of a nameless one may be no log at all
    nodes = [each.node for each in world.replicas]
    damaged = Damaged(world.chance, world.quorum, world.layout, world.chance.choice(pool), nodes)
    losses: list[Callable[[Damaged], Loss | None]] = list(LOSSES)
    world.chance.shuffle(losses)
    if len({node_id_of(each.id) for each in nodes}) < len({each.id for each in nodes}) and world.seed % 2:
        losses.insert(0, older_put_back)  # what a directory without a vote has must not stand for it
    for each in losses:
        loss = each(damaged)
        if loss is not None:
            return each.__name__, loss
    return None


def _of_other_ways(world: World, found: Findings, others: dict[str, Engine]) -> Iterator[str]:
    """By other engines; and by threads, of the same directories by other names, in another order and company."""
    for name, engine in others.items():
        if (other := plainly_found(world, engine)) != found:
            yield f"by {name} it is {other}, and by one thread {found}"
    place = world.root / "other"
    stranger = of_stranger(world.quorum, place, world.layout)
    # A nameless one without a log is no directory of a replica: whoever names it is refused.
    there = [each for each in world.replicas if world.layout.is_named or each.log.exists()]
    ways = dressed(world.chance, place / "links", there, stranger)
    other = found_by(LocalEngine(_THREADS), ",".join(ways.paths), ways.names)
    if other != found:
        yield f"by threads and other names it is {other}, and by one thread {found}"
