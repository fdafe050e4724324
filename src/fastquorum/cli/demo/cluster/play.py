"""The demo of a cluster from curtain to verdict."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastquorum.cli.demo.cluster.acts import Acts
from fastquorum.cli.demo.cluster.client import ClusterClient
from fastquorum.cli.demo.cluster.ledger import Created, FencedBroker, Left, Registered, as_json, count_of
from fastquorum.cli.demo.cluster.members import SESSION_MS, members_of
from fastquorum.cli.demo.cluster.verdict import ClusterVerdict, judge
from fastquorum.cli.demo.nodes import DemoNodes, caught_up_leader, start_nodes
from fastquorum.cli.demo.screen import DemoEnded, Screen
from fastquorum.cli.demo.stage import keep_ledger, on_stage
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels

CONTROLLERS: Final = 3


class ClusterOutcome(NamedTuple):
    """All there is to tell of it. The fields are the keys of --format json."""

    controllers: int
    brokers: int
    acknowledged: int
    """Registrations, topics, fencings and leaves."""
    lost: int
    registrations: int
    topics: int
    fencings: int
    """Acknowledged fencings of killed brokers."""
    leaves: int
    """Acknowledged leaves of brokers that got SIGTERM, and handed over their leads first."""
    partitions: int
    elections: int
    kills: int
    refusals: list[str]
    """Error names that requests under outdated tokens got."""
    fenced_after_s: float
    taken_over_after_s: float
    fenced_leads: int
    end_offset: int
    """The images at this one were compared."""
    images_equal: bool
    verdict: str
    problems: list[str]


def play_cluster(
    brokers: int,
    keep: str | None,
    kernels: Kernels,
    screen: Screen,
    before_verdict: Callable[[Sequence[str]], None] | None = None,
) -> int:
    """Play it with so many brokers; 0 if the verdict is green, else 1. `before_verdict` is as that of `play.play`."""
    return on_stage(keep, screen, lambda root: _play(root, brokers, kernels, screen, before_verdict))


def _play(
    root: str,
    count: int,
    kernels: Kernels,
    screen: Screen,
    before_verdict: Callable[[Sequence[str]], None] | None,
) -> DemoEnded:
    screen.say(f"{CONTROLLERS} controllers and {count} broker{'s' if count > 1 else ''} in {root}")
    nodes = start_nodes(root, CONTROLLERS, kernels, session_timeout_ms=SESSION_MS)
    try:
        acts, problems = _act(root, count, nodes, kernels, screen)
    finally:
        nodes.kill()
    keep_ledger(root, map(as_json, acts.ledger))
    if before_verdict is not None:
        before_verdict(nodes.directories)
    screen.say("every acknowledged change is looked up on every controller's disk")
    return ended(_outcome(count, acts, judge(nodes.directories, acts.ledger, kernels), problems))


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


def ended(outcome: ClusterOutcome) -> DemoEnded:
    acknowledged = (
        f"registrations {outcome.registrations}, topics {outcome.topics}, fencings {outcome.fencings}, "
        f"leaves {outcome.leaves}"
    )
    images = f"equal at offset {outcome.end_offset}" if outcome.images_equal else "they differ"
    rows = (
        ("acknowledged", acknowledged),
        ("lost", str(outcome.lost)),
        ("kill -9", f"{outcome.kills}, elections {outcome.elections}"),
        ("fenced", f"{outcome.fenced_after_s:.2f} s after a broker's death"),
        ("taken over", f"{outcome.taken_over_after_s:.2f} s after the active controller's"),
        ("refused", ", ".join(outcome.refusals)),
        ("images", f"{images}, {outcome.partitions} partitions"),
        ("fenced leads", f"{outcome.fenced_leads}, at any offset"),
    )
    promise = "Nothing was lost, and no fenced broker ever led."
    return DemoEnded(outcome._asdict(), rows, outcome.problems, promise)
