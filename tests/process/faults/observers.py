"""Observers of a cluster, embedded in this very process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastquorum import sync
from fastquorum.cli.main import main
from tests.process.cluster import CLUSTER_ID, Cluster


@contextmanager
def observer(quorum: Cluster, path: Path, node_id: int) -> Iterator[sync.Quorum]:
    """Formatted and opened; it may not have fetched anything yet."""
    format_words = ["--data", str(path), "--node-id", str(node_id), "--cluster-id", CLUSTER_ID]
    assert main(["format", *format_words, "--voters", quorum.voters, "--observer"]) == 0
    with sync.open(str(path), node_id=node_id, preallocate_bytes=256 * 1024) as opened:
        yield opened
