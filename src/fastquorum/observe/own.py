"""What Kafka has no name for: under `fastquorum_`, and of the process under Prometheus' own `process_`."""

from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.node.metrics import ReplicaMetrics
from fastquorum.observe.families import US_PER_S, Metric, MetricPoint, NodeView, counter, gauge
from fastquorum.version import __version__

OWN: Final = "fastquorum_"
UP: Final = OWN + "up"
"""The one metric that is there even while the replica does not answer."""
UP_HELP: Final = "1 if the replica's thread answered; while it is 0, no other metric of the replica is reported."


def _info(view: NodeView) -> Iterable[MetricPoint]:
    node = view.node
    labels = (
        ("version", __version__),
        ("kernels", node.kernels),
        ("node_id", str(node.node_id)),
        ("cluster_id", node.cluster_id),
        ("directory_id", node.directory_id),
    )
    return (MetricPoint(1.0, labels),)


def _of_replica(each: ReplicaMetrics) -> tuple[tuple[str, str], ...]:
    return ("replica", str(each.node_id)), ("voter", str(each.is_voter).lower())


def _of_replicas(name: str, meaning: str, read: Callable[[ReplicaMetrics], float | None]) -> Metric:
    """A gauge of each replica, without those of which it is None. Only a leader knows of replicas."""

    def points(view: NodeView) -> Iterable[MetricPoint]:
        found = ((each, read(each)) for each in view.node.replicas)
        return (MetricPoint(value, _of_replica(each)) for each, value in found if value is not None)

    return Metric(OWN + name, "gauge", f"{meaning}; on the leader only.", points)


def _unreachable(view: NodeView) -> Iterable[MetricPoint]:
    now_us = view.node.at_us
    return (
        MetricPoint(max(now_us - each.since_us, 0) / US_PER_S, (("peer", str(each.node_id)), ("reason", each.reason)))
        for each in view.node.unreachable
    )


def _elections(view: NodeView) -> Iterable[MetricPoint]:
    elections = view.node.elections
    return MetricPoint(elections.latency_us / US_PER_S, suffix="_sum"), MetricPoint(elections.timed, suffix="_count")


def _leadership_changes(view: NodeView) -> Iterable[MetricPoint]:
    return (MetricPoint(count, (("cause", cause),)) for cause, count in view.node.leadership_changes.items())


def _refused(view: NodeView) -> Iterable[MetricPoint]:
    return (MetricPoint(count, (("reason", reason),)) for reason, count in view.node.refused._asdict().items())


def _stages(view: NodeView) -> Iterable[MetricPoint]:
    return (MetricPoint(each, (("stage", each.name),)) for each in view.stages)


def _known(number: int) -> int | None:
    """Unless it is -1."""
    return number if number >= 0 else None


def _seconds(us: int) -> float | None:
    return us / US_PER_S if us >= 0 else None


_REPLICATION: Final = (
    Metric(OWN + "info", "gauge", "1; its labels say which node this is, and what it runs on.", _info),
    gauge(
        OWN + "ready",
        "1 while the node leads, or its leader answers, and a record of that epoch is committed: as /readyz says.",
        lambda view: float(view.is_ready),
    ),
    counter(
        OWN + "committed_records_total",
        "Records of the log that are known to be committed; absent while none is known.",
        lambda view: _known(view.node.high_watermark),
    ),
    counter(OWN + "appended_records_total", "Records appended as the leader.", lambda view: view.node.moved.appended),
    counter(OWN + "fetched_records_total", "Records fetched from a leader.", lambda view: view.node.moved.fetched),
    _of_replicas("replica_lag_records", "Records that a replica lacks", lambda its: its.lag),
    _of_replicas("replica_contact_seconds", "Since a replica's last Fetch", lambda its: _seconds(its.since_contact_us)),
    _of_replicas(
        "replica_caught_up_seconds",
        "Since a replica had the whole log",
        lambda its: _seconds(its.since_caught_up_us),
    ),
    Metric(
        OWN + "peer_unreachable_seconds",
        "gauge",
        "How long another node of the quorum cannot be reached from here, and why; absent while it can.",
        _unreachable,
    ),
    gauge(
        OWN + "leader_contact_seconds",
        "Since the leader's last good response; reported by the nodes that fetch from it.",
        lambda view: _seconds(view.node.since_leader_contact_us),
    ),
    counter(
        OWN + "elections_total",
        "Elections in which this replica was a candidate.",
        lambda view: view.node.elections.stood,
    ),
    counter(OWN + "elections_won_total", "Elections that it won.", lambda view: view.node.elections.won),
    counter(OWN + "role_changes_total", "Changes of its role.", lambda view: view.node.elections.role_changes),
    Metric(
        OWN + "leadership_changes_total",
        "counter",
        "Changes of the leader, or to no known leader, as seen here, by their cause; causes are a fixed list.",
        _leadership_changes,
    ),
    Metric(OWN + "election_seconds", "summary", "From becoming a candidate until a leader was known.", _elections),
)

_WORK: Final = (
    gauge(OWN + "flushed_end_offset", "Exclusive end of the records synced here.", lambda view: view.node.flushed_end),
    counter(OWN + "syncs_total", "Syncs of the log begun.", lambda view: view.node.sync_count),
    gauge(
        OWN + "sync_under_way_seconds",
        "How long the present sync has lasted; 0 if there is none.",
        lambda view: max(view.node.syncing_us, 0) / US_PER_S,
    ),
    gauge(
        OWN + "disk_full",
        "1 while the file system has no room for appends, and this replica therefore does not lead; else 0.",
        lambda view: int(view.node.is_disk_full),
    ),
    Metric(
        OWN + "commit_stage_seconds",
        "histogram",
        "How long the stages of commits took; append_told is the whole time, sync one sync.",
        _stages,
    ),
    gauge(
        OWN + "appends_waiting_records", "Records that wait for their commit.", lambda view: view.node.waiting_records
    ),
    gauge(OWN + "appends_waiting_bytes", "Bytes that wait for their commit.", lambda view: view.node.waiting_bytes),
    Metric(OWN + "appends_refused_total", "counter", "Appends that were refused, with nothing appended.", _refused),
    gauge(OWN + "connections", "Open connections, of replicas and clients.", lambda view: view.node.connections),
    counter(OWN + "connections_accepted_total", "Connections accepted.", lambda view: view.node.accepted),
    counter(
        OWN + "replica_thread_cpu_seconds_total",
        "Processor time of the replica's thread.",
        lambda view: view.node.replica_cpu_us / US_PER_S,
    ),
)

_PROCESS: Final = (
    counter("process_cpu_seconds_total", "Processor time of the process.", lambda view: view.process.cpu_s),
    gauge("process_resident_memory_bytes", "Resident memory.", lambda view: view.process.resident_bytes),
    gauge("process_open_fds", "Open file descriptors.", lambda view: view.process.open_files),
    gauge("process_max_fds", "Most file descriptors that may be open.", lambda view: view.process.open_files_max),
    gauge("process_start_time_seconds", "When the process started, since 1970.", lambda view: view.process.started_s),
)

OWN_METRICS: Final = (*_REPLICATION, *_WORK, *_PROCESS)
