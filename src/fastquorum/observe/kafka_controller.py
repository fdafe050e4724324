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


def _of_controller(name: str, help: str, read: Callable[[ControllerMetrics], float]) -> Metric:
    def value(view: NodeView) -> float | None:
        controller = view.node.controller
        return None if controller is None else read(controller)

    return gauge(name, help, value)


KAFKA_CONTROLLER_METRICS: Final = (
    _of_controller(
        CONTROLLER + "activecontrollercount",
        "1 on the active controller, 0 on the others.",
        lambda controller: int(controller.is_active),
    ),
    _of_controller(
        CONTROLLER + "activebrokercount",
        "Brokers that are registered and not fenced.",
        lambda controller: controller.active_brokers,
    ),
    _of_controller(
        CONTROLLER + "fencedbrokercount",
        "Brokers that are registered and fenced.",
        lambda controller: controller.fenced_brokers,
    ),
    _of_controller(
        CONTROLLER + "controlledshutdownbrokercount",
        "Brokers that are registered and in a controlled shutdown.",
        lambda controller: controller.leaving_brokers,
    ),
    _of_controller(CONTROLLER + "globaltopiccount", "Topics.", lambda controller: controller.topics),
    _of_controller(CONTROLLER + "globalpartitioncount", "Partitions.", lambda controller: controller.partitions),
    _of_controller(
        CONTROLLER + "offlinepartitionscount",
        "Partitions without a leader.",
        lambda controller: controller.offline_partitions,
    ),
    _of_controller(
        CONTROLLER + "preferredreplicaimbalancecount",
        "Partitions that their first replica does not lead.",
        lambda controller: controller.imbalanced_partitions,
    ),
    _of_controller(
        CONTROLLER + "lastappliedrecordoffset",
        "Offset of the last record that the controller's state holds: on the active one committed or not; -1 none.",
        lambda controller: controller.last_applied,
    ),
    _of_controller(
        CONTROLLER + "lastcommittedrecordoffset",
        "Offset of the last committed record that was read; -1 none.",
        lambda controller: controller.last_committed,
    ),
    _of_controller(
        CONTROLLER + "metadataerrorcount",
        "Requests and snapshots that failed by a fault of this node, since it was started.",
        lambda controller: controller.errors,
    ),
    _of_controller(
        CONTROLLER + "timedoutbrokerheartbeatcount",
        "Heartbeats refused because too much waited to be committed, since the node was started.",
        lambda controller: controller.timed_out_heartbeats,
    ),
    _of_controller(
        CONTROLLER + "newactivecontrollerscount",
        "New leaders that this node has learned of since it was started.",
        lambda controller: controller.new_leaders,
    ),
    _of_controller(
        SNAPSHOTS + "latestsnapshotgeneratedbytes",
        "Size of the latest snapshot that this node took; 0 if it has taken none since it was started.",
        lambda controller: controller.snapshot_bytes,
    ),
    _of_controller(
        SNAPSHOTS + "latestsnapshotgeneratedagems",
        "Milliseconds since this node took its latest snapshot, or was started.",
        lambda controller: controller.since_snapshot_us // _US_PER_MS,
    ),
)
