"""A node that runs, alone or as one of three, and is refused one system call while clients append, segments roll and
the lead changes hands; then the call works again.

It either goes on or ends with the exit code that says so, and starts again. Nothing acknowledged is lost, nobody waits
for long, and nothing is said without end.
"""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from fastquorum import log
from fastquorum.errors import FatalError
from tests.process.chaos.ends import CRASHES
from tests.process.cluster import Cluster
from tests.process.command import fastquorum
from tests.process.history import History
from tests.process.injected.injection import Fault, injected, met
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S, NodeProcess

Place = Literal["alone", "leader", "follower"]
VICTIM: Final = 1
VALUE_BYTES: Final = 4096
"""A segment of 128 KiB is full after thirty of them."""
PACE_S: Final = 0.01
STRUCK_S: Final = 3.0
"""How long a node is refused what it asks, if it does not end before: some rolls of its log."""
ROLL_ACKS: Final = 70
_INTERNAL: Final = "internal error"
"""What a node says of a fault that nobody has thought of."""
PRINTED_BYTES_MAX: Final = 1 << 16
"""A fault of some seconds is worth so much on a node's log."""


class Case(NamedTuple):
    place: Place
    fault: Fault
    kernels: str = "native"

    def __str__(self) -> str:
        return f"{self.place}/{self.kernels}/{self.fault}"


class CommandCluster(Cluster):
    """Its nodes are `fastquorum run`, which says all in JSON lines."""

    def spawn(self, node_id: int, *, prefix: Sequence[str] = (), **_: Any) -> NodeProcess:
        data, config = str(self.path(node_id)), str(self.config(node_id))
        if not self.path(node_id).exists():
            made = fastquorum("format", "--data", data, "--config", config)
            assert made.returncode == 0, made.stderr
        both = ["sh", "-c", 'exec "$@" 2>&1', "sh"]
        process = NodeProcess(
            node_id,
            ["run", "--data", data, "--config", config, "--log-format", "json"],
            errors=self.root / f"node{node_id}.stderr",
            prefix=[*both, *prefix],
            module="fastquorum.cli",
        )
        self._all.append(process)
        return process


class Outcome(NamedTuple):
    """`problems` have to be empty."""

    problems: list[str]
    met: int
    """How often the fault was met."""
    end: str
    """How it ended, or what it did instead."""


def strike(case: Case, root: Path) -> Outcome:
    """One case from beginning to end."""
    alone = case.place == "alone"
    kind, size = (CommandCluster, 1) if alone else (Cluster, 3)
    quorum = kind(root, size, kernels=dict.fromkeys(range(1, size + 1), case.kernels))
    problems: list[str] = []
    history = History()
    trace = root / "strace.log"
    try:
        quorum.start(*quorum.ids)
        quorum.ready()
        if case.place == "leader":
            quorum.make_leader(VICTIM)
        elif case.place == "follower":
            quorum.make_leader(2)
        victim = quorum.nodes[VICTIM]
        endpoints = {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}
        with Load(endpoints, history, value_bytes=VALUE_BYTES, pace_s=PACE_S) as load:
            assert history.wait_acked(20, WAIT_S)
            with injected(victim.pid, case.fault, trace):
                problems += _endure(quorum, case, history)
            problems += _recover(quorum, history)
            load.pause()
        problems += wrong_lines(victim)
        if not problems:  # otherwise it may not run
            problems += _judge(quorum, history, alone)
        failed = " ".join(str(each.get("text", each.get("message"))) for each in victim.reported("failed"))
        end = f"went on{_hindrances(victim)}" if victim.signals else f"ended with {victim.code}: {failed}"
        return Outcome(problems, met(trace), end)
    finally:
        quorum.close()


def _endure(quorum: Cluster, case: Case, history: History) -> list[str]:
    """What happens meanwhile; the fault is there."""
    victim = quorum.nodes[VICTIM]
    until_s = time.monotonic() + STRUCK_S
    while victim.is_alive and time.monotonic() < until_s and not history.wait_acked(ROLL_ACKS, 0.25):
        pass
    if case.place == "alone":
        return []
    problems = []
    if case.place == "leader":
        heir = next(node_id for node_id in quorum.ids if node_id != VICTIM)
        if victim.is_alive:
            _tell(victim, f"transfer {heir}")
    elif victim.is_alive:
        leader = quorum.leader()
        if leader in quorum.alive and leader != VICTIM:
            _tell(quorum.nodes[leader], f"transfer {VICTIM}")
    if not history.wait_acked(ROLL_ACKS, WAIT_S):
        problems.append(f"nothing was acknowledged for {WAIT_S} s while the fault lasted: {_state(quorum)}")
    return problems


def _tell(node: NodeProcess, line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # it has just ended
        node.tell(line)


def _recover(quorum: Cluster, history: History) -> list[str]:
    """The fault is over: whoever ends of it, perhaps only now, is started again, and the quorum works."""
    problems: list[str] = []
    wanted = history.count("acked") + 2 * ROLL_ACKS
    until_s = time.monotonic() + WAIT_S
    while history.count("acked") < wanted and time.monotonic() < until_s:
        history.wait_acked(wanted - history.count("acked"), 0.5)
        victim = quorum.nodes[VICTIM]
        if not victim.is_alive:
            code = victim.ended()
            if code != FatalError.exit_code:
                problems.append(f"ended with {code}: {victim.events[-4:]} {victim.own_stderr[-2000:]}")
            quorum.start(VICTIM)
            until_s = time.monotonic() + WAIT_S
    if history.count("acked") < wanted:
        problems.append(f"nothing was acknowledged for {WAIT_S} s afterwards: {_state(quorum)}")
    try:
        quorum.ready(VICTIM)
    except AssertionError as error:
        problems.append(f"is not ready again: {error}")
    return problems


def _judge(quorum: Cluster, history: History, alone: bool) -> list[str]:
    """What a consumer reads and what the disks hold, and how the processes stop."""
    leader = VICTIM if alone else quorum.wait_leader(after_epoch=quorum.epoch() - 1)
    problems = history.judge(fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)).problems
    codes = {node_id: process.stop() for node_id, process in quorum.nodes.items()}
    if set(codes.values()) != {0}:
        problems.append(f"exit codes of a graceful stop: {codes}")
    problems += history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids})
    for node_id in quorum.ids:
        found = log.open(str(quorum.path(node_id))).verify().findings
        problems += [f"node {node_id}: {each}" for each in found if each.severity == "corrupt"]
    return problems + quorum.ballots.violations


def wrong_lines(victim: NodeProcess) -> list[str]:
    """What no node says, and more than one should."""
    printed = victim.own_stderr + "".join(f"{each}\n" for each in victim.events if each["event"] not in ("appended",))
    problems = [f"wrote {each!r}: {printed[-3000:]}" for each in (*CRASHES, _INTERNAL) if each in printed]
    if len(printed) > PRINTED_BYTES_MAX:
        problems.append(f"said {len(printed)} bytes: {printed[-1000:]}")
    return problems


def _hindrances(victim: NodeProcess) -> str:
    names = [each["event"] for each in victim.events if each.get("level") == "error"]
    return f", said {sorted(set(names))}" if names else ""


def _state(quorum: Cluster) -> str:
    return "; ".join(
        f"node {node_id} {'runs' if process.is_alive else process.code}: {process.events[-3:]}"
        for node_id, process in quorum.nodes.items()
    )
