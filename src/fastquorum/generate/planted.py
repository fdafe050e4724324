"""The entries of the list, one for each planted fault or story, to check findings against."""

import dataclasses
from typing import Any

from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.instant_controller import InstantController
from fastquorum.generate.kinds import FINDERS, Kind
from fastquorum.types import Epoch, NodeId, Offset


@dataclasses.dataclass(slots=True, kw_only=True)
class Planted:
    """One planted fault or story of one cluster."""

    kind: Kind
    node_id: NodeId | None = None
    """The node with the damaged directory; None: all have the fault."""
    offset: Offset
    """The offset where it is, or begins."""
    end_offset: Offset
    """The offset where it ends; exclusive."""
    epoch: Epoch | None = None
    """The epoch of the batch there, or of the checkpoint."""
    time_ms: int
    """Wall clock at its beginning, in milliseconds."""
    end_ms: int
    broker: NodeId | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    segment: str | None = None
    """The name of the file, if a file is wrong."""

    def as_json(self, cluster_id: str, directory: str) -> dict[str, Any]:
        """Return the entry as JSON, with the fields in their order; `directory` is the cluster's."""
        fields = dataclasses.asdict(self)
        return {
            "cluster_id": cluster_id,
            "cluster": directory,
            "kind": str(fields.pop("kind")),
            "directory": None if self.node_id is None else f"{directory}/{replica_name(self.node_id)}",
            **fields,
            **FINDERS[self.kind]._asdict(),
        }


def replica_name(node_id: NodeId) -> str:
    return f"controller-{node_id}"


def begun(controller: InstantController, kind: Kind, key: PartitionKey | None = None) -> Planted:
    """Begin an entry here and now; `ended` completes it. `key`: the partition that it is about."""
    return Planted(
        kind=kind,
        offset=controller.end_offset,
        end_offset=-1,
        time_ms=controller.now_ms,
        end_ms=controller.now_ms,
        epoch=controller.epoch,
        topic=None if key is None else controller.image.topics.by_id[key.topic_id].name,
        topic_id=None if key is None else str(key.topic_id),
        partition=None if key is None else key.partition_id,
    )


def ended(controller: InstantController, planted: Planted) -> None:
    """Complete an entry: it ends here and now."""
    planted.end_offset, planted.end_ms = controller.end_offset, controller.now_ms
