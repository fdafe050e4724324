"""Data directories of one cluster, written by hand."""

from pathlib import Path

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
