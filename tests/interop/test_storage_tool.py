"""kafka-storage takes a directory that we formatted for its own."""

from pathlib import Path

import pytest

from .directories import fastquorum
from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CLUSTER_ID = "usACA5tBSrKS64DhDt4jig"
STATIC = "1@127.0.0.1:19091,2@127.0.0.1:19092,3@127.0.0.1:19093"
DYNAMIC = (
    "1@127.0.0.1:19091:vvU4x29PSmGr6cl_yWjBGQ,2@127.0.0.1:19092:MzGshnxlQ8CWUREFNVsnEw,"
    "3@127.0.0.1:19093:9vYZaEs_QvG4c-Lp2Qh1qA"
)


@pytest.mark.parametrize("voters", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_info_accepts_a_formatted_directory(kafka: Kafka, tmp_path: Path, voters: str) -> None:
    data = tmp_path / "data"
    fastquorum(
        "format", "--data", data, "--node-id", "1", "--cluster-id", CLUSTER_ID, "--voters", voters, "--log", "metadata"
    )
    server = tmp_path / "server.properties"
    server.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:19091\ncontroller.quorum.bootstrap.servers=127.0.0.1:19091\nlog.dirs={data}\n"
    )
    printed = kafka.storage("info", "-c", server)
    assert f"Found log directory:\n  {data}" in printed
    assert f"cluster.id={CLUSTER_ID}" in printed
    assert "node.id=1" in printed
    assert "Found problem" not in printed
