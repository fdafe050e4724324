"""Kafka's raft and log metrics, in the names that its JMX exporter gives them.

`kafka.server:type=raft-metrics` has attributes like `current-epoch`; the exporter makes
`kafka_server_raft_metrics_current_epoch` of it, and of `kafka.log:type=Log,name=LogEndOffset` the metric
`kafka_log_log_logendoffset` with topic and partition as labels. Attributes that are words, which the exporter leaves
out or turns into a label by a rule, are labels of a series that is 1. Sources: Kafka `KafkaRaftMetrics`, `UnifiedLog`,
`LogFlushStats`; jmx_exporter.
"""

from collections.abc import Iterable
from typing import Final

from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.families import Labels, Metric, MetricPoint, NodeView, gauge
from fastquorum.observe.stages import SYNC, named
from fastquorum.types import NO_NODE, TOPIC_NAME

RAFT: Final = "kafka_server_raft_metrics_"
LOG: Final = "kafka_log_log_"
FLUSH: Final = "kafka_log_logflushstats_logflushrateandtimems"
STATES: Final = (
    "leader",
    "prospective",
    "prospective-voted",
    "candidate",
    "unattached-voted",
    "unattached",
    "follower",
    "observer",
    "resigned",
)
"""Kafka's, and `resigned`, which it calls unattached."""
_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_PARTITION: Final[Labels] = (("topic", TOPIC_NAME), ("partition", "0"))


def state_of(node: NodeMetrics) -> str:
    """The role in Kafka's words."""
    if node.role in ("unattached", "prospective") and node.voted_id != NO_NODE:
        return f"{node.role}-voted"
    return "observer" if node.role == "follower" and not node.is_voter else node.role


def _states(view: NodeView) -> Iterable[MetricPoint]:
    current = state_of(view.node)
    return (MetricPoint(float(state == current), (("current_state", state),)) for state in STATES)


def _voted_directory(view: NodeView) -> Iterable[MetricPoint]:
    if view.node.voted_id != NO_NODE:
        yield MetricPoint(1.0, (("current_vote_directory_id", view.node.voted_directory_id),))


def _flushes(view: NodeView) -> Iterable[MetricPoint]:
    syncs = named(view.stages, SYNC)
    if syncs.count:
        for fraction in _QUANTILES:
            yield MetricPoint(syncs.quantile_us(fraction) / 1000, (("quantile", str(fraction)),))
        yield MetricPoint(syncs.sum_us / 1000, suffix="_sum")
    yield MetricPoint(syncs.count or view.node.sync_count, suffix="_count")


def _of_partition(metric: Metric) -> Metric:
    return metric._replace(points=lambda view: [each._replace(labels=_PARTITION) for each in metric.points(view)])


_RAFT_METRICS: Final = (
    Metric(RAFT + "current_state", "gauge", "1 for the state that this replica is in, 0 for the others.", _states),
    gauge(RAFT + "current_leader", "The leader's id as known here; -1 unknown.", lambda view: view.node.leader_id),
    gauge(RAFT + "current_vote", "This replica's vote in this epoch; -1 none.", lambda view: view.node.voted_id),
    Metric(RAFT + "current_vote_directory_id", "gauge", "1 for the directory id that was voted for.", _voted_directory),
    gauge(RAFT + "current_epoch", "The quorum's epoch as known here.", lambda view: view.node.epoch),
    gauge(
        RAFT + "high_watermark",
        "Exclusive end of the committed records, as known here; -1 unknown.",
        lambda view: view.node.high_watermark,
    ),
    gauge(RAFT + "log_end_offset", "Exclusive end of this replica's log.", lambda view: view.node.log_end),
    gauge(RAFT + "log_end_epoch", "Epoch of the last record in the log.", lambda view: view.node.log_end_epoch),
    gauge(
        RAFT + "number_unknown_voter_connections",
        "Voters without a known endpoint.",
        lambda view: view.node.unreachable_voters,
    ),
    gauge(RAFT + "number_of_voters", "Voters of the quorum.", lambda view: view.node.voter_count),
    gauge(
        RAFT + "number_of_observers",
        "Observers that fetch; on the leader only.",
        lambda view: view.node.observer_count if view.node.is_leader else None,
    ),
    gauge(
        RAFT + "uncommitted_voter_change",
        "1 while a change of the voters is not committed; on the leader only.",
        lambda view: float(view.node.is_voter_change_pending) if view.node.is_leader else None,
    ),
    gauge(
        RAFT + "commit_latency_avg",
        "Milliseconds from append to commit, average of the last half minute.",
        lambda view: view.recent.commit_avg_ms,
    ),
    gauge(
        RAFT + "commit_latency_max",
        "Milliseconds from append to commit, slowest of the last half minute: the upper bound of its bucket.",
        lambda view: view.recent.commit_max_ms,
    ),
    gauge(
        RAFT + "election_latency_avg",
        "Milliseconds from becoming a candidate until a leader was known, average of the last half minute.",
        lambda view: view.recent.election_avg_ms,
    ),
    gauge(
        RAFT + "election_latency_max",
        "Milliseconds from becoming a candidate until a leader was known, longest of the last half minute.",
        lambda view: view.recent.election_max_ms,
    ),
    gauge(
        RAFT + "fetch_records_rate",
        "Records fetched from the leader per second, over the last half minute.",
        lambda view: view.recent.fetch_records_per_s,
    ),
    gauge(
        RAFT + "append_records_rate",
        "Records appended as the leader per second, over the last half minute.",
        lambda view: view.recent.append_records_per_s,
    ),
    gauge(
        RAFT + "poll_idle_ratio_avg",
        "Part of the last half minute in which the replica's thread took no processor time.",
        lambda view: view.recent.idle_ratio,
    ),
)

_LOG_METRICS: Final = (
    gauge(LOG + "logstartoffset", "First offset of the log.", lambda view: view.node.log_start),
    gauge(LOG + "logendoffset", "Exclusive end of the log.", lambda view: view.node.log_end),
    gauge(LOG + "size", "Bytes of batches in the log's segments.", lambda view: view.node.log_bytes),
    gauge(LOG + "numlogsegments", "Segments of the log.", lambda view: view.node.segment_count),
)

KAFKA_METRICS: Final = (
    *_RAFT_METRICS,
    *map(_of_partition, _LOG_METRICS),
    Metric(FLUSH, "summary", "Syncs of the log, and milliseconds that they took.", _flushes),
)
