"""What a node's controller knows of itself and of the committed metadata at one moment, as plain numbers.

Taken on the replica's thread: nothing is counted but brokers, all else is kept up with what is committed. Source: Kafka
`QuorumControllerMetrics`, `ControllerMetadataMetrics`, `SnapshotEmitterMetrics`.
"""

from dataclasses import dataclass

from fastquorum.node.metadata.controller import MetadataController
from fastquorum.types import Micros, Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerMetrics:
    """Counts are since the node was started; all that is said of the metadata is committed."""

    is_active: bool
    active_brokers: int
    """Registered and not fenced, those among them that are shutting down."""
    fenced_brokers: int
    leaving_brokers: int
    """In a controlled shutdown, fenced or not."""
    topics: int
    partitions: int
    offline_partitions: int
    """Nobody leads them."""
    imbalanced_partitions: int
    """Not led by their first replica."""
    last_applied: Offset
    """The last offset that the active controller decided, committed or not; elsewhere last_committed. -1: none."""
    last_committed: Offset
    """The last offset that was read of the committed log; -1 if there is none."""
    errors: int
    """Requests, and snapshots, that came to nothing by a fault of this node."""
    timed_out_heartbeats: int
    """Refused as too much waited to be committed."""
    new_leaders: int
    """Epochs of which a leader was known here."""
    snapshot_bytes: int
    """Bytes of the latest snapshot of its own; 0 if it has taken none."""
    since_snapshot_us: Micros
    """Since that was taken, or since the node was started."""


def measure_controller(role: MetadataController, now_us: Micros) -> ControllerMetrics:
    """Everything, at one moment. On the replica's thread."""
    replay, taken, tally = role.replay, role.keeper.taken, role.tally
    image, counts = replay.image, replay.counts
    brokers = image.brokers.values()
    fenced = sum(each.fenced for each in brokers)
    last_committed = replay.next_offset - 1
    return ControllerMetrics(
        is_active=role.state is not None,
        active_brokers=len(image.brokers) - fenced,
        fenced_brokers=fenced,
        leaving_brokers=sum(each.in_controlled_shutdown for each in brokers),
        topics=len(image.topics.by_id),
        partitions=counts.partitions,
        offline_partitions=counts.offline,
        imbalanced_partitions=counts.imbalanced,
        last_applied=last_committed if role.state is None else role.state.next_offset - 1,
        last_committed=last_committed,
        errors=tally.errors + taken.failures,
        timed_out_heartbeats=tally.timed_out_heartbeats,
        new_leaders=tally.new_leaders,
        snapshot_bytes=taken.size_bytes,
        since_snapshot_us=max(now_us - taken.at_us, 0) if taken.at_us >= 0 else 0,
    )
