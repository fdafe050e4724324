"""Finding the leader of a quorum: whoever knows none asks one server after the other by Fetch.

Sources: KIP-595, KIP-853 (bootstrap servers); Kafka `KafkaRaftClient`.
"""

from typing import Final

from fastquorum.raft.core import Core
from fastquorum.raft.ports import LogView
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Endpoint, Epoch, NodeId, Offset
from fastquorum.wire.messages.fetch import FetchRequest

_BOOTSTRAP_ID_FIRST: Final = -2


def discover_leader(core: Core) -> None:
    """Ask one bootstrap server after the other by Fetch who leads; without bootstrap servers, the other voters."""
    busy_until = core.requests.busy_until(core.now_us)
    if busy_until > core.now_us:
        core.wake_at(busy_until)
        return
    nodes = _bootstrap_nodes(core)
    for step in range(len(nodes)):
        index = (core.next_bootstrap + step) % len(nodes)
        node_id, endpoint = nodes[index]
        ready_at = core.requests.ready_at(node_id, core.now_us)
        if ready_at <= core.now_us:
            core.next_bootstrap = (index + 1) % len(nodes)
            core.request(node_id, endpoint, discovery_fetch(core))
            core.wake_at(core.requests.busy_until(core.now_us))
            return
        core.wake_at(ready_at)


def _bootstrap_nodes(core: Core) -> list[tuple[NodeId, Endpoint]]:
    if core.bootstrap:
        return [(_BOOTSTRAP_ID_FIRST - index, endpoint) for index, endpoint in enumerate(core.bootstrap)]
    found = [(node_id, core.endpoint_of(node_id)) for node_id in core.other_voters]
    return [(node_id, endpoint) for node_id, endpoint in found if endpoint is not None]


def discovery_fetch(core: Core) -> FetchRequest:
    """A Fetch (15+) that asks who leads. It claims flushed bytes only; it does not wait, since its records are not
    used."""
    end = core.log.flushed_end
    partition = FetchRequest.FetchTopic.FetchPartition(
        current_leader_epoch=core.epoch,
        fetch_offset=end,
        last_fetched_epoch=_epoch_below(core.log, end),
        replica_directory_id=core.key.directory_id,
        high_watermark=core.high_watermark,
    )
    topic = FetchRequest.FetchTopic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(
        cluster_id=core.cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=core.key.id),
        max_bytes=core.config.fetch_bytes_max,
        topics=[topic],
    )


def _epoch_below(log: LogView, end: Offset) -> Epoch:
    """Return the epoch of the last record below `end`, which may be a snapshot's last; 0 if there is none."""
    if end > log.start_offset:
        return max(log.epoch_for(end - 1), 0)
    earliest = log.snapshots.earliest
    return earliest.epoch if earliest is not None and earliest.offset == end else 0
