"""The entries of the list, one for each planted fault or story, to check findings against."""

from dataclasses import dataclass
from typing import Any

from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.instant_controller import InstantController
from fastquorum.generate.kinds import FINDERS, Kind
from fastquorum.types import Epoch, NodeId, Offset


@dataclass(slots=True, kw_only=True)
class Planted:
    """One planted fault or story of one cluster."""

    kind: Kind
    offset: Offset
    """The offset where it is, or begins."""
    end_offset: Offset
    """The offset where it ends; exclusive."""
    time_ms: int
    """Wall clock at its beginning, in milliseconds."""
    end_ms: int
    epoch: Epoch | None = None
    """The epoch of the batch there, or of the checkpoint."""
    node_id: NodeId | None = None
    """The node with the damaged directory; None: all have the fault."""
    broker: NodeId | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    segment: str | None = None
    """The name of the file, if a file is wrong."""

    def name(self, controller: InstantController, key: PartitionKey) -> None:
        """Name the partition that it is about."""
        self.topic, self.topic_id = controller.image.topics.by_id[key.topic_id].name, str(key.topic_id)
        self.partition = key.partition_id

    def as_json(self, cluster_id: str, directory: str) -> dict[str, Any]:
        """Return the entry as JSON; `directory` is the cluster's, `replica` one below it."""
        finder = FINDERS[self.kind]
        return {
            "cluster_id": cluster_id,
            "cluster": directory,
            "kind": str(self.kind),
            "directory": None if self.node_id is None else f"{directory}/{replica_name(self.node_id)}",
            "node_id": self.node_id,
            "offset": self.offset,
            "end_offset": self.end_offset,
            "epoch": self.epoch,
            "time_ms": self.time_ms,
            "end_ms": self.end_ms,
            "broker": self.broker,
            "topic": self.topic,
            "topic_id": self.topic_id,
            "partition": self.partition,
            "segment": self.segment,
            "pipeline": finder.pipeline,
            "finds": finder.finds,
        }


def replica_name(node_id: NodeId) -> str:
    """Return the name of a replica's directory."""
    return f"controller-{node_id}"


def begun(controller: InstantController, kind: Kind) -> Planted:
    """Begin an entry here and now; `ended` completes it."""
    return Planted(
        kind=kind,
        offset=controller.end_offset,
        end_offset=-1,
        time_ms=controller.now_ms,
        end_ms=controller.now_ms,
        epoch=controller.epoch,
    )


def ended(controller: InstantController, planted: Planted) -> None:
    """Complete an entry: it ends here and now."""
    planted.end_offset, planted.end_ms = controller.end_offset, controller.now_ms
