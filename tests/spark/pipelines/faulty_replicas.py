"""Replicas of one made-up cluster as tables, of which a minority has something wrong, of a kind that is drawn."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from fastquorum.spark.pipelines.choosing import LOG_KIND
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from tests.spark.pipelines.test_audit_replicas import BATCHES, KNOWN

SIZE: Final = 100
TORN_BYTES: Final = 40


@dataclass(frozen=True)
class Batch:
    """`crc` stands for its bytes."""

    base: int
    last: int
    epoch: int
    crc: int
    error: str | None = None


@dataclass
class Log:
    """A replica."""

    node: int
    name: str
    batches: list[Batch]
    durable_end: int | None = None
    committed: int = 0
    """Committed end in its durable mark."""
    refused: str | None = None
    snapshots: list[tuple[int, int]] = field(default_factory=list)
    overlap: list[Batch] = field(default_factory=list)
    """Batches of one more segment, which begins inside the others."""


@dataclass
class World:
    """A cluster."""

    voters: list[int]
    logs: list[Log]
    end: int
    """End of what is committed."""
    expected: dict[str, tuple[ReplicaVerdict, int | None]]
    """By directory: its verdict, and from where."""

    def batches(self) -> pa.Table:
        rows = []
        for log in self.logs:
            rows += [_row(log, 0, nth, each) for nth, each in enumerate(log.batches)]
            rows += [_row(log, each.base, nth, each) for nth, each in enumerate(log.overlap)]
        return pa.Table.from_pylist(rows, BATCHES)

    def known(self) -> pa.Table:
        rows: list[dict[str, Any]] = []
        for log in self.logs:
            same = {"cluster_id": "c", "node_id": log.node, "directory": log.name}
            mark = {"durable_offset": log.durable_end, "committed_offset": log.committed}
            rows.append({**same, **mark, "refused": log.refused})
            rows += [{**same, "offset": 0, "voter_id": each} for each in self.voters]
            rows += [{**same, "snapshot_offset": end, "snapshot_epoch": epoch} for end, epoch in log.snapshots]
        more = [("durable_offset", pa.int64()), ("committed_offset", pa.int64())]
        texts = [("refused", pa.string()), (LOG_KIND, pa.string())]
        return pa.Table.from_pylist(rows, pa.schema([*KNOWN, *more, *texts]))


def _row(log: Log, segment: int, nth: int, each: Batch) -> dict[str, Any]:
    good = {"last_offset": each.last, "epoch": each.epoch, "crc": each.crc}
    return {
        "cluster_id": "c",
        "node_id": log.node,
        "directory": log.name,
        "segment": segment,
        "position": nth * SIZE,
        "base_offset": each.base,
        "size_bytes": SIZE if each.error is None else TORN_BYTES,
        "error": each.error,
        **(good if each.error is None else {}),
    }


@st.composite
def truths(draw: st.DrawFn) -> list[Batch]:
    """What was committed."""
    found: list[Batch] = []
    base, epoch = 0, 2
    for crc in range(draw(st.integers(3, 10))):
        epoch += 2 * (draw(st.integers(0, 3)) == 0)  # between two of them a leader may have been deposed
        count = draw(st.integers(1, 9))
        found.append(Batch(base, base + count - 1, epoch, crc))
        base += count
    return found


# --- what can be wrong with one ---------------------------------------------------------------------------------------

Fault = Callable[[st.DrawFn, Log], tuple[ReplicaVerdict, int | None]]


def _other(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """Other bytes, of the same epoch, once or from there on."""
    at = draw(st.integers(0, len(log.batches) - 1))
    upto = draw(st.sampled_from([at + 1, len(log.batches)]))
    log.batches[at:upto] = [replace(each, crc=each.crc + 1000) for each in log.batches[at:upto]]
    return ReplicaVerdict.DIVERGENT, log.batches[at].base


def _cut_up(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """Other batch boundaries, once or from there on."""
    at = draw(st.integers(0, len(log.batches) - 1))
    upto = draw(st.sampled_from([at + 1, len(log.batches)]))
    first = log.batches[at].base
    end = log.batches[upto - 1].last + 1
    cuts = sorted({first, end, *draw(st.lists(st.integers(first, end), max_size=6))})
    epochs = {each: next(one.epoch for one in log.batches if one.last >= each) for each in cuts[:-1]}
    made = [Batch(a, b - 1, epochs[a], 2000 + a) for a, b in itertools.pairwise(cuts)]
    log.batches[at:upto] = made
    return ReplicaVerdict.DIVERGENT, first


def _other_epoch(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """A batch of an epoch of its own, and what follows is the majority's again: no two leaders' logs do that."""
    at = draw(st.integers(0, len(log.batches) - 2))
    epoch = draw(st.sampled_from([1, 51]))
    log.batches[at] = replace(log.batches[at], epoch=epoch, crc=3000)
    return ReplicaVerdict.DIVERGENT, log.batches[at].base


def _flip(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    at = draw(st.integers(0, len(log.batches) - 2))
    log.batches[at] = replace(log.batches[at], error="corrupt: crc")
    return ReplicaVerdict.DIVERGENT, log.batches[at].base


def _flip_of_what_was_synced(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """The last batch, which a mark or a snapshot is of."""
    end, epoch = log.batches[-1].last + 1, log.batches[-1].epoch
    if draw(st.booleans()):
        log.durable_end = end
    else:
        log.snapshots = [(end, epoch)]
    log.batches[-1] = replace(log.batches[-1], error="corrupt: crc")
    # It ends below what it had, and that is where its damage is.
    return ReplicaVerdict.DIVERGENT, log.batches[-1].base


def _torn(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    log.batches[-1] = replace(log.batches[-1], error="corrupt: truncated")
    if draw(st.booleans()):
        log.durable_end = draw(st.integers(0, log.batches[-1].base))
    return ReplicaVerdict.TORN, log.batches[-1].base


def _hole(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    at = draw(st.integers(1, len(log.batches) - 2))
    gone = log.batches.pop(at)
    return ReplicaVerdict.DIVERGENT, gone.base


def _cut_off(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """Below what it had synced, or had in a snapshot; or just behind."""
    keep = draw(st.integers(0, len(log.batches) - 1))
    lost = log.batches[keep]
    had = draw(st.sampled_from(["mark", "snapshot", "nothing"]))
    end = log.batches[keep - 1].last + 1 if keep else 0
    if had == "mark":
        log.durable_end = lost.last + 1
    elif had == "snapshot":
        log.snapshots = [(lost.last + 1, lost.epoch)]
    log.batches = log.batches[:keep]
    return (ReplicaVerdict.BEHIND, None) if had == "nothing" else (ReplicaVerdict.DIVERGENT, end)


def _overlap(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    at = draw(st.integers(1, len(log.batches) - 1))
    log.overlap = log.batches[at:]
    return ReplicaVerdict.DIVERGENT, log.batches[at].base


def _stale(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """A deposed leader's: of an epoch between two others, that nobody else has, with boundaries of its own. Unless its
    own snapshot is of them."""
    begins = [0, *(at for at, each in enumerate(log.batches) if at and each.epoch > log.batches[at - 1].epoch)]
    at = draw(st.sampled_from(begins))
    first, epoch = log.batches[at].base, log.batches[at].epoch - 1
    del log.batches[at:]
    base = first
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)):
        log.batches.append(Batch(base, base + size - 1, epoch, 4000 + base))
        base += size
    if draw(st.integers(0, 3)) == 0:
        log.snapshots = [(log.batches[-1].last + 1, epoch)]
        return ReplicaVerdict.DIVERGENT, first
    return ReplicaVerdict.STALE, first


def _tail(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    end, epoch = log.batches[-1].last + 1, log.batches[-1].epoch
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    for size in sizes:
        base = log.batches[-1].last + 1
        log.batches.append(Batch(base, base + size - 1, epoch + 2 * log.node, 5000 + base))
    return ReplicaVerdict.TAIL, end


def _older(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """An older copy was put back, or it was away: its mark is as old as its log."""
    keep = draw(st.integers(0, len(log.batches) - 1))
    log.batches = log.batches[:keep]
    log.durable_end = log.committed = log.batches[-1].last + 1 if keep else 0
    return ReplicaVerdict.BEHIND, None


def _segments_gone(draw: st.DrawFn, log: Log) -> tuple[ReplicaVerdict, int | None]:
    """All of them, and the mark; other files say that the log was in use."""
    log.batches, log.refused = [], "its segments are gone"
    return ReplicaVerdict.DIVERGENT, 0


FAULTS: Final[tuple[Fault, ...]] = (
    _other,
    _cut_up,
    _other_epoch,
    _flip,
    _flip_of_what_was_synced,
    _torn,
    _hole,
    _cut_off,
    _overlap,
    _stale,
    _tail,
    _older,
    _segments_gone,
)


def _clean(draw: st.DrawFn, truth: list[Batch], log: Log, fault_offset: int) -> None:
    """Its first batches are gone, at most up to the fault that is to be found, and a snapshot is of them."""
    first = draw(st.integers(0, sum(each.base <= fault_offset for each in truth) - 1))
    if first:
        log.snapshots.append((truth[first].base, truth[first - 1].epoch))
        log.batches = log.batches[first:]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a cluster with a faulty minority of voters. All other voters but one may begin later; any replica may have
    copies."""
    truth = draw(truths())
    voters = list(range(1, draw(st.sampled_from([3, 5])) + 1))
    end = truth[-1].last + 1
    logs = [Log(node, f"/n{node}", list(truth)) for node in voters]
    expected: dict[str, tuple[ReplicaVerdict, int | None]] = {each.name: (ReplicaVerdict.SAME, None) for each in logs}
    for log in draw(st.lists(st.sampled_from(logs), max_size=len(voters) // 2, unique_by=lambda log: log.node)):
        expected[log.name] = draw(st.sampled_from(FAULTS))(draw, log)
    faults = [
        offset for verdict, offset in expected.values() if verdict is ReplicaVerdict.DIVERGENT and offset is not None
    ]
    same, *others = [log for log in logs if expected[log.name][0] is ReplicaVerdict.SAME]
    if draw(st.booleans()):
        same.durable_end, same.committed = end, draw(st.sampled_from([0, *(each.last + 1 for each in truth)]))
    for log in others:
        _clean(draw, truth, log, min(faults, default=end))
    for log in draw(st.lists(st.sampled_from(logs), max_size=4)):
        name = f"{log.name}-copy-{len(logs)}"
        logs.append(replace(log, name=name))
        expected[name] = expected[log.name]
    return World(voters, logs, end, expected)


@st.composite
def put_back(draw: st.DrawFn) -> World:
    """Older copies were put back on any number of the voters. One of the others, or an observer, knows how much was
    committed."""
    truth = draw(truths())
    voters = list(range(1, draw(st.sampled_from([1, 3, 5])) + 1))
    end = truth[-1].last + 1
    logs = [Log(node, f"/n{node}", list(truth)) for node in draw(st.permutations(voters))]
    older = logs[: draw(st.integers(0, len(voters)))]
    knowing = [*logs[len(older) :], Log(9, "/observer", list(truth))]
    logs = [*older, *(each for each in knowing if each.node in voters)]
    if len(older) == len(voters) or draw(st.booleans()):
        logs.append(knowing[-1])
    who = draw(st.sampled_from([each for each in knowing if each in logs]))
    who.durable_end = who.committed = end
    for each in older:
        _older(draw, each)
    is_lost = len(voters) - len(older) <= len(voters) // 2
    lacking = ReplicaVerdict.LACKING if is_lost else ReplicaVerdict.BEHIND
    expected = {each.name: (lacking if each in older else ReplicaVerdict.SAME, None) for each in logs}
    return World(voters, logs, end, expected)
