"""One history: writers and readers while the nemesis strikes, then everything heals, and the history is judged."""

import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastquorum import log
from fastquorum.node.causes import WORDS
from fastquorum.raft.transitions import Cause
from tests.process.chaos import ends, linearizable
from tests.process.chaos.hosts import Hosts, hosts
from tests.process.chaos.linearizable import Barrier, Operation
from tests.process.chaos.nemesis import Nemesis
from tests.process.history import Append, History
from tests.process.load import Load, fetch_committed
from tests.process.processes import NodeProcess

WRITERS = 4
PACE_S = 0.002
BARRIER_S = 2.0
HEALED_S = 60.0
"""How long a healed quorum is given to commit again. It needs a second or two; a busy machine more."""
HEALED_ACKS = 20


@dataclass(slots=True)
class Report:
    """One history, and what is wrong with it: `problems` has to be empty."""

    seed: int
    operations: int = 0
    acknowledged: int = 0
    unknown: int = 0
    barriers: int = 0
    epochs: int = 0
    given_up: int = 0
    """How often a leader found that it had been given up, as its interpreter was held."""
    faults: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Readers:
    """A thread a node, which asks for read barriers there, one after the other, through every restart."""

    def __init__(self, quorum: Hosts) -> None:
        self._quorum = quorum
        self._over = threading.Event()
        self.barriers: list[Barrier] = []
        self._threads = [
            threading.Thread(target=self._read, args=(node_id,), name=f"reader-{node_id}", daemon=True)
            for node_id in quorum.ids
        ]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(4 * BARRIER_S)

    def _read(self, node_id: int) -> None:
        while not self._over.wait(PACE_S):
            process = self._quorum.nodes[node_id]
            barrier = _barrier(process)
            if barrier is not None:
                self.barriers.append(barrier)


def _barrier(process: NodeProcess) -> Barrier | None:
    """One read barrier at a node; None if it was refused, or the node ended or was silent."""
    after = len(process.events)
    began_s = time.monotonic()
    try:
        process.tell(f"barrier {BARRIER_S}")
        answer = process.wait(lambda each: each["event"] in ("barrier", "refused"), after=after)
    except (AssertionError, BrokenPipeError, ValueError):
        return None  # it is down, or was frozen; its pipe may be closed already
    ended_s = answer["at_s"]
    return Barrier(began_s, ended_s, answer["offset"]) if "offset" in answer else None


def one_history(root: Path, seed: int, seconds: float) -> Report:
    """Play it. Problems are in the report; a machine that cannot do it fails or skips the test."""
    report = Report(seed)
    history = History()
    with hosts(root, seed) as quorum:
        nemesis = Nemesis(quorum, seed)
        endpoints = {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}
        with (
            Readers(quorum) as readers,
            Load(
                endpoints, history, writers=WRITERS, value_bytes=200, pace_s=PACE_S, enter=quorum.enter_clients
            ) as load,
        ):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                nemesis.strike()
            nemesis.heal()
            report.faults = dict(sorted(nemesis.done.items()))
            if not history.wait_acked(HEALED_ACKS, HEALED_S):
                report.problems.append(f"nothing is committed {HEALED_S:g} s after everything healed")
            load.pause()
        if not report.problems:
            _judge(quorum, history, readers.barriers, report)
        report.problems += ends.problems(map(ends.end_of, quorum.processes), nemesis.struck)
        report.given_up = sum(map(_times_given_up, quorum.processes))
    return report


def _times_given_up(process: NodeProcess) -> int:
    reason = WORDS[Cause.INTERPRETER_HELD]
    return sum(each["reason"].startswith(reason) for each in process.reported("leadership"))


def _judge(quorum: Hosts, history: History, barriers: list[Barrier], report: Report) -> None:
    read = _read_committed(quorum)
    for node_id in quorum.ids:
        try:
            quorum.nodes[node_id].wait_status(
                lambda status: status["high_watermark"] > read[-1][0], timeout_s=HEALED_S
            )  # until then it may hold what was never committed
        except (AssertionError, BrokenPipeError) as error:
            report.problems.append(f"node {node_id} does not follow {HEALED_S:g} s after everything healed: {error}")
    quorum.stop()
    appends = list(history.by_value.values())
    operations: list[Operation] = [_as_operation(each) for each in appends]
    operations += barriers
    report.operations = len(operations)
    report.acknowledged, report.unknown = history.count("acked"), history.count("unknown")
    report.barriers, report.epochs = len(barriers), len(quorum.ballots.epochs)
    report.problems += history.judge(read).problems
    report.problems += linearizable.violations(operations, {value: offset for offset, value in read})
    disks = {node_id: quorum.records(node_id) for node_id in quorum.ids}
    report.problems += history.not_on_a_majority(disks)
    for node_id in quorum.ids:
        if disks[node_id] != read[: len(disks[node_id])]:
            report.problems.append(f"node {node_id} holds another log than the committed one")
        findings = log.open(str(quorum.path(node_id))).verify().findings
        report.problems += [f"node {node_id}: {each}" for each in findings if each.severity == "corrupt"]
    report.problems += quorum.ballots.violations


def _as_operation(append: Append) -> linearizable.Append:
    if append.fate == "acked":
        return linearizable.Append(append.value, append.began_s, append.settled_s, append.offset)
    return linearizable.Append(append.value, append.began_s)


def _read_committed(quorum: Hosts) -> list[tuple[int, bytes]]:
    """All that is committed, as a consumer on the clients' host reads it from the leader."""
    found: list[list[tuple[int, bytes]]] = []

    def read() -> None:
        quorum.enter_clients()
        leader = quorum.wait_leader(after_epoch=quorum.epoch() - 1)
        found.append(fetch_committed(quorum.kernels, quorum.endpoint(leader), 0))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    return found[0]
