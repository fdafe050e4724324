"""Data directories of one cluster, written by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines.choosing import LOG_KIND
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY, segment_name

CLUSTER = "a-cluster"


class Replicas:
    """A directory each."""

    def __init__(self, root: Path, *node_ids: int, kind: str = "user") -> None:
        self.root = root
        self.kind = kind
        for node_id in node_ids:
            self.add(node_id)

    def add(self, node_id: int) -> None:
        directory = self.root / f"n{node_id}"
        (directory / LOG_DIRECTORY).mkdir(parents=True)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id={node_id}\n")
        (directory / "fastquorum.properties").write_text(f"log.kind={self.kind}\n")
        self.roll(0, node_id)

    def path(self, node_id: int) -> str:
        return str(self.root / f"n{node_id}")

    def segments(self, node_id: int) -> list[Path]:
        return sorted((self.root / f"n{node_id}" / LOG_DIRECTORY).glob("*.log"))

    def roll(self, base_offset: int, *node_ids: int) -> None:
        for node_id in node_ids:
            (self.root / f"n{node_id}" / LOG_DIRECTORY / segment_name(base_offset)).touch()

    def append(self, data: bytes, *node_ids: int) -> None:
        for node_id in node_ids:
            with self.segments(node_id)[-1].open("ab") as file:
                file.write(data)


def batches_at(path: str) -> pa.Table:
    """What `audit-replicas` reads of batches."""
    columns = ",".join(auditing.BATCH_COLUMNS)
    return read_table(path, "batches", mode="quarantine", columns=columns, fromOffset="earliest")


def known_at(path: str) -> pa.Table:
    """Return what else it reads, as one table."""
    snapshots = read_table(path, "checkpoints", mode="quarantine", columns=",".join(auditing.SNAPSHOT_COLUMNS))
    snapshots = snapshots.filter(pc.and_(snapshots["is_good"], pc.greater(snapshots["offset"], 0)))
    tables = [
        read_table(path, "voters", mode="quarantine", columns=",".join(auditing.VOTER_COLUMNS)),
        read_table(path, "quorum_state", mode="quarantine", columns=",".join((*auditing.PRESENT_COLUMNS, LOG_KIND))),
        snapshots.rename_columns({"offset": "snapshot_offset", "epoch": "snapshot_epoch"}).drop_columns("is_good"),
    ]
    return pa.concat_tables(tables, promote_options="default")
