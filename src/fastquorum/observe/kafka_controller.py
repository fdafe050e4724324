"""Kafka's metrics of a controller, in the names that its JMX exporter gives them; told by nodes that are controllers.

`kafka.controller:type=KafkaController,name=ActiveControllerCount` becomes
`kafka_controller_kafkacontroller_activecontrollercount`. Every node tells what it has read of the committed metadata,
leader or not. Sources: Kafka `QuorumControllerMetrics`, `ControllerMetadataMetrics`, `SnapshotEmitterMetrics`.
"""

from collections.abc import Callable
from typing import Final

from fastquorum.node.metadata.metrics import ControllerMetrics
from fastquorum.observe.families import Metric, NodeView, gauge

CONTROLLER: Final = "kafka_controller_kafkacontroller_"
SNAPSHOTS: Final = "kafka_server_snapshotemitter_"
_US_PER_MS: Final = 1_000

_COUNTS: Final[tuple[tuple[str, str, Callable[[ControllerMetrics], float]], ...]] = (
    ("activecontrollercount", "1 on the active controller, 0 on the others.", lambda its: int(its.is_active)),
    ("activebrokercount", "Brokers that are registered and not fenced.", lambda its: its.active_brokers),
    ("fencedbrokercount", "Brokers that are registered and fenced.", lambda its: its.fenced_brokers),
    (
        "controlledshutdownbrokercount",
        "Brokers that are registered and in a controlled shutdown.",
        lambda its: its.leaving_brokers,
    ),
    ("globaltopiccount", "Topics.", lambda its: its.topics),
    ("globalpartitioncount", "Partitions.", lambda its: its.partitions),
    ("offlinepartitionscount", "Partitions without a leader.", lambda its: its.offline_partitions),
    (
        "preferredreplicaimbalancecount",
        "Partitions that their first replica does not lead.",
        lambda its: its.imbalanced_partitions,
    ),
    (
        "lastappliedrecordoffset",
        "Offset of the last record that the controller's state holds: on the active one committed or not; -1 none.",
        lambda its: its.last_applied,
    ),
    (
        "lastcommittedrecordoffset",
        "Offset of the last committed record that was read; -1 none.",
        lambda its: its.last_committed,
    ),
    (
        "metadataerrorcount",
        "Requests and snapshots that failed by a fault of this node, since it was started.",
        lambda its: its.errors,
    ),
    (
        "timedoutbrokerheartbeatcount",
        "Heartbeats refused because too much waited to be committed, since the node was started.",
        lambda its: its.timed_out_heartbeats,
    ),
    (
        "newactivecontrollerscount",
        "New leaders that this node has learned of since it was started.",
        lambda its: its.new_leaders,
    ),
)


def _of_controller(name: str, meaning: str, read: Callable[[ControllerMetrics], float]) -> Metric:
    def value(view: NodeView) -> float | None:
        controller = view.node.controller
        return None if controller is None else read(controller)

    return gauge(name, meaning, value)


KAFKA_CONTROLLER_METRICS: Final = (
    *(_of_controller(CONTROLLER + name, meaning, read) for name, meaning, read in _COUNTS),
    _of_controller(
        SNAPSHOTS + "latestsnapshotgeneratedbytes",
        "Size of the latest snapshot that this node took; 0 if it has taken none since it was started.",
        lambda its: its.snapshot_bytes,
    ),
    _of_controller(
        SNAPSHOTS + "latestsnapshotgeneratedagems",
        "Milliseconds since this node took its latest snapshot, or was started.",
        lambda its: its.since_snapshot_us // _US_PER_MS,
    ),
)
