"""Is a node alive, and is it ready to serve? With the reason, if not: for probes, and for readers of their answer.

Alive means that a restart would not help. A leader that cannot be found, or a slow disk, is no reason for one;
a failed disk is, and a replica's thread that does not come back.
"""

from typing import NamedTuple

from fastquorum.node.io.running import RunningNode
from fastquorum.node.metrics import NodeMetrics
from fastquorum.node.network.reachability import unreachable_text
from fastquorum.types import NO_NODE, Micros

STARTING = "the node is starting: it reads its log"


class HealthVerdict(NamedTuple):
    """Good or not, and why."""

    is_good: bool
    reason: str


def health(node: RunningNode | None, silent_us: Micros) -> HealthVerdict:
    """Does the replica live? `silent_us`: how long its thread has not answered. None: it is still starting."""
    if node is None:
        return HealthVerdict(True, STARTING)
    if node.error is not None:
        return HealthVerdict(False, f"the replica has stopped: {node.error}")
    if node.has_disk_failed:
        return HealthVerdict(False, "the disk has failed: the replica stops")
    if silent_us > node.config.disk_stall_us_max:
        return HealthVerdict(False, f"the replica's thread has not answered for {silent_us / 1e6:.0f} s")
    return HealthVerdict(True, "the replica lives")


def readiness(node: RunningNode | None, metrics: NodeMetrics | None, silent_us: Micros) -> HealthVerdict:
    """May it be asked to serve: does it lead, or hear its leader, and has it caught up with that leader's epoch?
    `metrics` of this moment; None: its thread did not answer."""
    alive = health(node, silent_us)
    if node is None or not alive.is_good:
        return HealthVerdict(False, alive.reason)
    if not node.is_running:
        return HealthVerdict(False, "the node is stopping")
    if metrics is None:
        return HealthVerdict(False, "the replica's thread does not answer at the moment")
    if metrics.is_disk_full:
        return HealthVerdict(False, node.log.hindrance)
    leadership, limits = node.leadership, node.config
    if leadership.leader_id == NO_NODE:
        alone = unreachable_text(metrics.unreachable, metrics.at_us)
        return HealthVerdict(False, f"no leader is known (epoch {leadership.epoch})" + (f"; {alone}" if alone else ""))
    leader = f"node {leadership.leader_id} leads epoch {leadership.epoch}"
    if not node.is_ready:
        return HealthVerdict(False, f"{leader}, but no commit of that epoch is known here yet")
    if metrics.syncing_us > limits.disk_stall_us_max:
        return HealthVerdict(False, f"the disk has not answered for {metrics.syncing_us / 1e6:.0f} s")
    if metrics.role not in ("leader", "follower"):
        return HealthVerdict(False, f"{leader} as far as known, but this one is {metrics.role}")
    if metrics.role == "follower" and not 0 <= metrics.since_leader_contact_us <= limits.fetch_timeout_us:
        return HealthVerdict(False, f"{leader} as far as known, but has not answered for a fetch timeout")
    return HealthVerdict(True, leader)
