"""What was planted: one entry for each fault or story, for whoever checks what was found."""

from dataclasses import dataclass
from typing import Any

from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.kinds import FINDERS, Kind
from fastquorum.generate.lead import Lead
from fastquorum.types import Epoch, NodeId, Offset


@dataclass(slots=True, kw_only=True)
class Planted:
    """One of them, in one cluster."""

    kind: Kind
    offset: Offset
    """Where it is, or begins."""
    end_offset: Offset
    """Where it is over; exclusive."""
    time_ms: int
    """Wall clock, when it begins."""
    end_ms: int
    epoch: Epoch | None = None
    """The batch's there, or the checkpoint's."""
    node_id: NodeId | None = None
    """Whose directory; None: all have it."""
    broker: NodeId | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    segment: str | None = None
    """The name of the file, of what is wrong with one."""

    def name(self, lead: Lead, key: PartitionKey) -> None:
        """Which partition it is about."""
        self.topic, self.topic_id = lead.image.topics.by_id[key.topic_id].name, str(key.topic_id)
        self.partition = key.partition_id

    def as_json(self, cluster_id: str, directory: str) -> dict[str, Any]:
        """`directory` is the cluster's, `replica` one below it."""
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
    """Of its directory."""
    return f"controller-{node_id}"


def begun(lead: Lead, kind: Kind) -> Planted:
    """Here and now: its end is to be told."""
    return Planted(
        kind=kind, offset=lead.end_offset, end_offset=-1, time_ms=lead.now_ms, end_ms=lead.now_ms, epoch=lead.epoch
    )


def ended(lead: Lead, planted: Planted) -> None:
    """It is over."""
    planted.end_offset, planted.end_ms = lead.end_offset, lead.now_ms
