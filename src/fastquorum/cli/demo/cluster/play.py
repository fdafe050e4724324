"""The demo of a cluster from curtain to verdict."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastquorum.cli.demo.cluster.acts import Acts
from fastquorum.cli.demo.cluster.client import ClusterClient
from fastquorum.cli.demo.cluster.ledger import Change, Created, FencedBroker, Left, Registered, as_json, count_of
from fastquorum.cli.demo.cluster.members import SESSION_MS, members_of
from fastquorum.cli.demo.cluster.verdict import ClusterVerdict, judge
from fastquorum.cli.demo.nodes import DemoNodes, caught_up_leader, start_nodes
from fastquorum.cli.demo.outcomes import ClusterOutcome
from fastquorum.cli.demo.screen import Screen
from fastquorum.cli.demo.stage import DemoEnded, on_stage
from fastquorum.cli.terminal.arguments import load_kernels
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels

CONTROLLERS: Final = 3
LEDGER: Final = "acknowledged.jsonl"


class ClusterOptions(NamedTuple):
    """What it is played with."""

    brokers: int
    keep: str | None = None
    kernels: str = "native"


def play_cluster(
    options: ClusterOptions, screen: Screen, before_verdict: Callable[[Sequence[str]], None] | None = None
) -> int:
    """Play it; 0 if the verdict is green, else 1. `before_verdict` is as that of `play.play`."""
    kernels = load_kernels("pure" if options.kernels == "pure" else "native")

    def act(root: str) -> DemoEnded:
        outcome = _play(root, options.brokers, kernels, screen, before_verdict)
        return DemoEnded(not outcome.problems, lambda kept: screen.cluster_verdict(outcome, kept))

    return on_stage(options.keep, act)


def _play(
    root: str,
    count: int,
    kernels: Kernels,
    screen: Screen,
    before_verdict: Callable[[Sequence[str]], None] | None,
) -> ClusterOutcome:
    screen.say(f"{CONTROLLERS} controllers and {count} broker{'s' if count > 1 else ''} in {root}")
    nodes = start_nodes(root, CONTROLLERS, kernels, session_timeout_ms=SESSION_MS)
    try:
        acts, problems = _act(root, count, nodes, kernels, screen)
    finally:
        nodes.kill()
    _keep_ledger(root, acts.ledger)
    if before_verdict is not None:
        before_verdict(nodes.directories)
    screen.say("every acknowledged change is looked up on every controller's disk")
    return _outcome(count, acts, judge(nodes.directories, acts.ledger, kernels), problems)


def _act(root: str, count: int, nodes: DemoNodes, kernels: Kernels, screen: Screen) -> tuple[Acts, list[str]]:
    """Play the acts, and stop the controllers; what went wrong."""
    members = members_of(root, count, nodes, kernels)
    problems = []
    try:
        with ClusterClient(nodes.endpoints, kernels) as client:
            acts = Acts(nodes, members, client, screen)
            try:
                acts.play()
            except FastQuorumError as error:
                problems.append(str(error))
        # First: each broker that leaves is one more change, and the last one has no broker to hand over to.
        screen.say("the controllers stop, and so do the remaining brokers")
        unwell = nodes.stop(caught_up_leader(nodes, kernels))
    finally:
        for member in members.values():
            member.kill()
    problems += [f"controller {node_id} did not stop gracefully: see its stderr in {root}" for node_id in unwell]
    return acts, problems


def _outcome(brokers: int, acts: Acts, verdict: ClusterVerdict, problems: list[str]) -> ClusterOutcome:
    problems = problems + verdict.problems
    return ClusterOutcome(
        controllers=CONTROLLERS,
        brokers=brokers,
        acknowledged=len(acts.ledger),
        lost=verdict.lost,
        registrations=count_of(acts.ledger, Registered),
        fencings=count_of(acts.ledger, FencedBroker),
        topics=count_of(acts.ledger, Created),
        partitions=verdict.partitions,
        elections=verdict.elections,
        kills=acts.kills,
        leaves=count_of(acts.ledger, Left),
        refusals=acts.refusals,
        fenced_after_s=round(acts.fenced_after_s, 3),
        taken_over_after_s=round(acts.taken_over_after_s, 3),
        fenced_leads=verdict.fenced_leads,
        end_offset=verdict.end_offset,
        images_equal=verdict.images_equal,
        verdict="red" if problems else "green",
        problems=problems,
    )


def _keep_ledger(root: str, ledger: Sequence[Change]) -> None:
    with open(os.path.join(root, LEDGER), "w", encoding="ascii") as file:
        for each in ledger:
            file.write(json.dumps(as_json(each)) + "\n")
