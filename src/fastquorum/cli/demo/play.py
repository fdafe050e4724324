"""The demo from curtain to verdict."""

import base64
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastquorum.cli.demo.appender import Appender
from fastquorum.cli.demo.killer import Killer
from fastquorum.cli.demo.nodes import DemoNodes, caught_up_leader, start_nodes
from fastquorum.cli.demo.screen import DemoEnded, Screen
from fastquorum.cli.demo.stage import keep_ledger, on_stage
from fastquorum.cli.demo.verdict import DemoVerdict, judge
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.data import carried_records
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels

KILLS: Final = 2
HELD_BACK: Final = 3
"""Records that wait for the last kill: those before it may be appended sooner than the leader is found and killed."""
APPEND_S: Final = 120.0


class DemoOutcome(NamedTuple):
    """All there is to tell of it. The fields are the keys of --format json."""

    records: int
    acknowledged: int
    lost: int
    duplicated: int
    elections: int
    kills: int
    settled: int
    """Appends that had no answer at first, and were looked up before anything was sent again."""
    commit_p50_us: int
    commit_p99_us: int
    commits_per_s: float
    replicas_identical: bool
    topics: int
    partitions: int
    brokers: int
    verdict: str
    problems: list[str]


def play(
    nodes: int,
    keep: str | None,
    kernels: Kernels,
    screen: Screen,
    before_verdict: Callable[[Sequence[str]], None] | None = None,
) -> int:
    """Play it with so many nodes; 0 if the verdict is green, else 1.

    `before_verdict` is called with the data directories when the nodes have stopped: tests damage one there.
    """
    return on_stage(keep, screen, lambda root: _play(root, nodes, kernels, screen, before_verdict))


def _play(
    root: str,
    count: int,
    kernels: Kernels,
    screen: Screen,
    before_verdict: Callable[[Sequence[str]], None] | None,
) -> DemoEnded:
    records = carried_records()
    screen.say(f"{len(records)} records of a real Apache Kafka 4.3.0 metadata log, {count} nodes in {root}")
    nodes = start_nodes(root, count, kernels)
    try:
        appender, kills, seconds, error = _append(nodes, records, kernels, screen)
        screen.say("the nodes stop")
        unwell = nodes.stop(caught_up_leader(nodes, kernels))
    finally:
        nodes.kill()
    values = ((each.offset, base64.b64encode(each.value).decode("ascii")) for each in appender.ledger)
    keep_ledger(root, ({"offset": offset, "value": value} for offset, value in values))
    if before_verdict is not None:
        before_verdict(nodes.directories)
    screen.say("every acknowledged record is looked up on every disk")
    verdict = judge(nodes.directories, appender.ledger, kernels)
    problems = [f"node {node_id} did not stop gracefully: see its stderr in {root}" for node_id in unwell]
    problems += [str(error)] if error is not None else []
    if len(appender.ledger) != len(records):
        problems.append(f"only {len(appender.ledger)} of {len(records)} records were acknowledged")
    if kills != KILLS:
        problems.append(f"the leader was killed {kills} times, not {KILLS}: this run shows less than it should")
    verdict = verdict._replace(problems=problems + verdict.problems)
    return ended(_outcome(len(records), appender, kills, seconds, verdict), verdict.image)


def _append(
    nodes: DemoNodes, records: list[bytes], kernels: Kernels, screen: Screen
) -> tuple[Appender, int, float, FastQuorumError | None]:
    """Append everything while the leader is killed; how many kills, how long it took, what stopped it."""
    screen_lock = threading.Lock()

    def say(text: str) -> None:
        with screen_lock:
            screen.say(text)

    error: FastQuorumError | None = None
    with QuorumClient(nodes.endpoints, kernels) as client, QuorumClient(nodes.endpoints, kernels) as watching:
        deadline = Deadline(APPEND_S)
        leader = client.leader(deadline)
        say(f"node {leader.id} leads epoch {leader.epoch}")
        appender = Appender(client, deadline)
        moments = [len(records) * number // (KILLS + 1) for number in range(1, KILLS + 1)]
        killer = Killer(nodes, watching, moments, lambda: len(appender.ledger), say)
        killer.start()
        began = time.monotonic()
        try:
            with screen.progress(len(records)) as advance:
                for left, value in zip(range(len(records), 0, -1), records, strict=True):
                    if left == HELD_BACK:
                        killer.struck.wait(deadline.left_s)
                    appender.append(value)
                    advance()
        except FastQuorumError as failed:
            error = failed
        finally:
            seconds = time.monotonic() - began
            killer.stop()
    return appender, killer.kills, seconds, error or killer.error


def _outcome(records: int, appender: Appender, kills: int, seconds: float, verdict: DemoVerdict) -> DemoOutcome:
    times = sorted(appender.commit_us)
    return DemoOutcome(
        records=records,
        acknowledged=len(appender.ledger),
        lost=verdict.lost,
        duplicated=verdict.duplicated,
        elections=verdict.elections,
        kills=kills,
        settled=appender.settled,
        commit_p50_us=_percentile(times, 50),
        commit_p99_us=_percentile(times, 99),
        commits_per_s=round(len(times) / seconds, 1) if seconds else 0.0,
        replicas_identical=verdict.replicas_identical,
        topics=len(verdict.image.topics.ids),
        partitions=sum(len(topic.partitions) for topic in verdict.image.topics.sorted()),
        brokers=len(verdict.image.brokers),
        verdict="red" if verdict.problems else "green",
        problems=verdict.problems,
    )


def _percentile(ordered: list[int], percent: int) -> int:
    """The smallest value that `percent` of all do not exceed; 0 if there are none."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0


def ended(outcome: DemoOutcome, image: Image) -> DemoEnded:
    led_by = Counter(partition.leader for topic in image.topics.sorted() for partition in topic.partitions)
    brokers = ", ".join(
        f"{broker.id} leads {led_by[broker.id]}{' (fenced)' if broker.fenced else ''}"
        for _, broker in sorted(image.brokers.items())
    )
    rows = (
        ("records", f"{outcome.records} appended, {outcome.acknowledged} acknowledged"),
        ("lost", str(outcome.lost)),
        ("duplicated", str(outcome.duplicated)),
        ("kill -9", f"{outcome.kills}, elections {outcome.elections}, appends settled {outcome.settled}"),
        ("commit", f"p50 {outcome.commit_p50_us} us, p99 {outcome.commit_p99_us} us, one at a time"),
        ("rate", f"{outcome.commits_per_s:.0f} commits per s, elections included"),
        ("logs", "identical, byte by byte" if outcome.replicas_identical else "they differ"),
        ("contents", f"{outcome.topics} topics, {outcome.partitions} partitions, {outcome.brokers} brokers"),
        ("brokers", brokers),
    )
    return DemoEnded(outcome._asdict(), rows, outcome.problems, "Nothing was lost.")
