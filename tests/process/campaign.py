"""kill -9, again and again: at every named failpoint and at random instants, of one node, two or all, under load.

After each kill the nodes are started again and have to be ready by themselves. Then nothing acknowledged may be missing
from a majority's disks or from what a consumer reads, nothing may be there twice, and nobody may have voted twice.

    python -m tests.process.campaign kills --cycles 300 --report FILE

`chaos` is another campaign, of faults below TCP, of disks that lose power and of limits (`chaos/campaign.py`); `names`
is one of name servers and addresses (`names/campaign.py`); `injected` is one of what the system refuses a node
(`injected/campaign.py`).
"""

import argparse
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastquorum import log
from fastquorum.client.connection import Deadline
from fastquorum.errors import FastQuorumError, FatalError
from fastquorum.node.io.failpoints import NAMES
from tests.process.chaos import campaign as chaos
from tests.process.cluster import Cluster, cluster
from tests.process.history import History
from tests.process.injected import campaign as injected
from tests.process.load import Load, fetch_committed
from tests.process.names import campaign as names
from tests.process.processes import WAIT_S

ACKED_MAX = 40
"""A kill at random comes after up to this many more acknowledgements."""
STIMULUS_S = 0.3
"""How long each thing that may reach a failpoint is given, before the next is tried."""
READY_S = 5.0
"""An armed node is given this long to join, before it is led to its failpoint."""


_OFTEN = (
    "segment-write",
    "flush-submit",
    "flush-count",
    "send-fetch-request",
    "send-fetch-response",
    "send-produce-response",
)
"""Reached with every append: the crash comes at one of the first forty."""


PACE_S = 0.005
"""Between two appends of a writer: hundreds of cycles must not make a log whose recovery is all that is tested."""


@dataclass(slots=True)
class Report:
    """What a campaign did and found."""

    cycles: int = 0
    kills: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    """Crashes at each failpoint."""
    failed: Counter[str] = field(default_factory=Counter)
    """Errors of the disk there: the node stopped with a FatalError."""
    not_reached: Counter[str] = field(default_factory=Counter)
    """Armed, but the process was killed from outside after all was tried."""
    at_random: Counter[str] = field(default_factory=Counter)
    needed_hands: list[str] = field(default_factory=list)
    lost_or_doubled: list[str] = field(default_factory=list)
    double_votes: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return self.needed_hands + self.lost_or_doubled + self.double_votes


class Campaign:
    """One cluster that is hurt over and over. Deterministic in what it chooses, not in what comes of it."""

    def __init__(self, quorum: Cluster, load: Load, seed: int, names: tuple[str, ...] = NAMES) -> None:
        self.quorum = quorum
        self.load = load
        self.history = load.history
        self.report = Report()
        self._random = random.Random(seed)
        self._names = list(names)
        self._random.shuffle(self._names)
        self._next_name = 0
        self._checked_to = 0

    def cycle(self) -> None:
        """One kill, one recovery, one look."""
        number = self.report.cycles
        what = self._kill_at_random() if number % 3 == 2 else self._kill_at_failpoint()
        self._recover(f"cycle {number}: {what}")
        self._check(f"cycle {number}: {what}")
        self.report.cycles += 1

    # --- killing ------------------------------------------------------------------------------------------------------

    def _kill_at_random(self) -> str:
        quorum = self.quorum
        leader = quorum.leader()
        followers = [node_id for node_id in quorum.ids if node_id != leader]
        who, victims = self._random.choice(
            [
                ("leader", [leader]),
                ("follower", self._random.sample(followers, 1)),
                ("both followers", followers),
                ("leader and a follower", [leader, self._random.choice(followers)]),
                ("all", list(quorum.ids)),
            ]
        )
        self.history.wait_acked(self._random.randrange(ACKED_MAX), STIMULUS_S)
        quorum.kill(*victims)
        self.report.kills += len(victims)
        self.report.at_random[who] += 1
        return who

    def _kill_at_failpoint(self) -> str:
        """Restart a node with a failpoint armed; then do what may lead it there."""
        quorum, name = self.quorum, self._names[self._next_name % len(self._names)]
        self._next_name += 1
        victim = self._random.choice(quorum.ids)
        quorum.kill(victim)
        self.report.kills += 1
        if "-recovery-" in name:
            self._tear(victim)
        nth = self._random.randrange(1, 40) if name.endswith(_OFTEN) else 1
        # Every fourth time the disk fails there instead: the node has to stop, with the exit code that says so.
        fails = self._next_name % 4 == 0 and "-send-" not in name
        armed = f"{name}={'eio' if fails else 'crash'}@{nth}"
        quorum.start(victim, failpoints=armed)
        wanted = FatalError.exit_code if fails else -signal.SIGKILL
        if any(self._dies(victim, stimulus, wanted) for stimulus in self._stimuli(victim)):
            (self.report.failed if fails else self.report.fired)[name] += 1
        else:
            self.report.not_reached[name] += 1
            quorum.kill(victim)
        quorum.note_state(victim)
        self.report.kills += 1
        return f"{armed} in node {victim}"

    def _stimuli(self, victim: int) -> Iterator[Callable[[], None]]:
        """What leads a node to where it writes, votes, leads, is deposed, and closes; each if it still lives."""
        others = [node_id for node_id in self.quorum.ids if node_id != victim]
        yield lambda: self._join(victim)
        yield lambda: self._transfer(victim)
        yield lambda: self._transfer(others[0])
        yield lambda: self._transfer(others[1])
        yield lambda: self._lead_over_the_dead(victim, others[0])
        yield lambda: self._bereave(victim)
        yield lambda: self.quorum.nodes[victim].signal(signal.SIGTERM)

    def _join(self, victim: int) -> None:
        with contextlib.suppress(AssertionError):
            self.quorum.nodes[victim].wait_event("ready", timeout_s=READY_S)

    def _transfer(self, heir: int) -> None:
        """Have the leader resign for another: Vote, BeginQuorumEpoch and EndQuorumEpoch go around."""
        leader = self.quorum.leader()
        if leader not in (-1, heir) and self.quorum.nodes[leader].is_alive:
            with contextlib.suppress(BrokenPipeError):
                self.quorum.nodes[leader].tell(f"transfer {heir}")

    def _lead_over_the_dead(self, victim: int, other: int) -> None:
        """A new leader that somebody does not fetch from announces itself: BeginQuorumEpoch."""
        self.quorum.kill(other)
        self.report.kills += 1
        with contextlib.suppress(AssertionError):
            self.quorum.wait_leader(not_in=[other], timeout_s=READY_S)
        self._transfer(victim)

    def _tear(self, node_id: int) -> None:
        """Garbage behind the last batch of a dead node, where a power loss leaves a torn write."""
        directory = self.quorum.path(node_id) / "__cluster_metadata-0"
        last = max(directory.glob("*.log"))
        end = 0
        for batch in log.open(str(self.quorum.path(node_id))).batches():
            if batch.segment_base == int(last.stem):
                end = batch.info.position + batch.info.size_bytes
        with last.open("r+b") as file:
            file.seek(end)
            file.write(self._random.randbytes(self._random.randrange(1, 300)))

    def _bereave(self, victim: int) -> None:
        """Take the leader away without a word."""
        leader = self.quorum.leader()
        if leader not in (-1, victim) and self.quorum.nodes[leader].is_alive:
            self.quorum.kill(leader)
            self.report.kills += 1

    def _dies(self, victim: int, stimulus: Callable[[], None], wanted: int) -> bool:
        """Did it end as the failpoint wants it? A graceful end is not that; any other is a bug."""
        process = self.quorum.nodes[victim]
        if process.is_alive:
            stimulus()
        if not process.wait_ended(STIMULUS_S):
            return False
        code = process.ended()
        if code not in (wanted, 0, -signal.SIGTERM):  # SIGTERM kills a process that has not come to its handler yet
            self._note_bad_end(victim, f"ended with {code}")
        return code == wanted

    def _note_bad_end(self, node_id: int, how: str) -> None:
        process = self.quorum.nodes[node_id]
        self.report.needed_hands.append(f"node {node_id} {how}: {process.events[-3:]} {process.stderr}")

    # --- looking ------------------------------------------------------------------------------------------------------

    def _recover(self, what: str) -> None:
        quorum = self.quorum
        dead = [node_id for node_id in quorum.ids if not quorum.nodes[node_id].is_alive]
        self._random.shuffle(dead)
        quorum.start(*dead)
        try:
            quorum.ready()
        except AssertionError as error:
            self.report.needed_hands.append(f"{what}: {error}")
            raise
        self.history.wait_acked(1, WAIT_S)

    def _check(self, what: str) -> None:
        self.load.pause()
        quorum, start = self.quorum, self._checked_to
        disks = {node_id: quorum.records(node_id, start) for node_id in quorum.ids}
        problems = self.history.not_on_a_majority(disks, start)
        read = self._read_committed(start)
        problems += self.history.judge(read, start).problems
        self.report.lost_or_doubled += [f"{what}: {problem}" for problem in problems]
        self.report.double_votes += [f"{what}: {problem}" for problem in quorum.ballots.violations]
        assert not self.report.problems, self.report.problems
        if read:
            self._checked_to = read[-1][0] + 1
        self.load.resume()

    def _read_committed(self, start: int) -> list[tuple[int, bytes]]:
        """Read from whoever leads; that may change meanwhile, and a new leader may not know yet what is committed."""
        deadline = Deadline(WAIT_S)
        while True:
            try:
                return fetch_committed(self.quorum.kernels, self.quorum.endpoint(self.quorum.leader()), start)
            except AssertionError as refused:
                if deadline.is_over:
                    raise AssertionError(f"no leader answers a consumer within {WAIT_S:g} s: {refused}") from refused
                self.quorum.wait_leader(after_epoch=self.quorum.epoch() - 1)

    def finish(self) -> dict[str, Any]:
        """Stop all; look at whole logs; the report's figures."""
        quorum = self.quorum
        self.load.pause()
        whole = self._read_committed(0)
        problems = self.history.judge(whole).problems
        codes = quorum.stop()
        for node_id, code in codes.items():
            if code:
                self._note_bad_end(node_id, f"ended its graceful stop with {code}")
        disks = {node_id: quorum.records(node_id) for node_id in quorum.ids}
        problems += self.history.not_on_a_majority(disks)
        for node_id in quorum.ids:
            found = log.open(str(quorum.path(node_id))).verify()
            problems += [f"node {node_id}: {finding}" for finding in found.findings if finding.severity == "corrupt"]
            if disks[node_id][: len(whole)] != whole[: len(disks[node_id])]:
                problems.append(f"node {node_id} holds another log than the committed one")
        self.report.lost_or_doubled += problems
        self.report.double_votes = quorum.ballots.violations
        assert not self.report.problems, self.report.problems
        return self.figures()

    def figures(self) -> dict[str, Any]:
        report, history = self.report, self.history
        return {
            "cycles": report.cycles,
            "kills": report.kills,
            "acknowledged": history.count("acked"),
            "unknown": history.count("unknown"),
            "refused": history.count("refused"),
            "votes_seen": self.quorum.ballots.vote_count,
            "epochs_with_leader": len(self.quorum.ballots.epochs),
            "failpoints_fired": dict(sorted(report.fired.items())),
            "failpoints_failed": dict(sorted(report.failed.items())),
            "failpoints_not_reached": dict(sorted(report.not_reached.items())),
            "at_random": dict(sorted(report.at_random.items())),
            "lost_or_doubled": report.lost_or_doubled,
            "double_votes": report.double_votes,
            "needed_hands": report.needed_hands,
        }


@contextmanager
def campaign(root: Path, seed: int) -> Iterator[Campaign]:
    """Three nodes behind proxies that watch the votes, one of them on the pure kernels, and two writers."""
    small = {"metadata.log.segment.bytes": 65536, "log.preallocate.bytes": 32768}
    with cluster(root, links=True, kernels={3: "pure"}, settings=small) as quorum:
        history = History()
        with Load(
            {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history, value_bytes=400, pace_s=PACE_S
        ) as load:
            yield Campaign(quorum, load, seed)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--directory", type=Path, help="keep the nodes' directories here")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.process.campaign")
    commands = parser.add_subparsers(required=True, metavar="CAMPAIGN")
    for name, description, add_arguments, run in (
        ("kills", __doc__, _add_arguments, kills),
        ("chaos", chaos.__doc__, chaos.add_arguments, chaos.run),
        ("names", names.__doc__, names.add_arguments, names.run),
        ("injected", injected.__doc__, injected.add_arguments, injected.run),
    ):
        command = commands.add_parser(
            name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_arguments(command)
        command.set_defaults(run=run)
    arguments = parser.parse_args()
    code: int = arguments.run(arguments)
    return code


def kills(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fastquorum-campaign-") as temporary,
        campaign(arguments.directory or Path(temporary), arguments.seed) as running,
    ):
        failure = ""
        try:
            for number in range(arguments.cycles):
                running.cycle()
                _progress(number + 1, arguments.cycles, running.history)
            figures = running.finish()
        except (AssertionError, FastQuorumError) as error:
            failure = f"{type(error).__name__}: {error}"
            figures = running.figures()
        figures |= {"seed": arguments.seed, "took_s": round(time.monotonic() - began, 1), "failure": failure}
    text = json.dumps(figures, indent=2)
    print(f"\n{text}")
    if arguments.report is not None:
        arguments.report.write_text(text + "\n")
    return 1 if failure else 0


def _progress(done: int, cycles: int, history: History) -> None:
    """One line that changes on a terminal; elsewhere one in ten cycles."""
    text = f"{done}/{cycles} cycles, {history.count('acked')} acknowledged, none lost"
    if sys.stdout.isatty():
        print(f"\r{text}", end="", flush=True)
    elif done % 10 == 0:
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
