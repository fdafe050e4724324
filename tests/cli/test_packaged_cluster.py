"""The cluster that `fastquorum spark demo` reads."""

from pathlib import Path

from fastquorum.data import unpack_cluster
from tests.cli import packaged_cluster


def test_the_packaged_cluster_is_the_golden_one(tmp_path: Path) -> None:
    replicas = unpack_cluster(tmp_path)
    assert [path.name for path in replicas] == list(packaged_cluster.REPLICAS)
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == packaged_cluster.files()
