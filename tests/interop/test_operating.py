"""The commands for those who run a cluster, on our controller and on Kafka's own: both are started with one file."""

import json
import sys
from pathlib import Path

import pytest

from fastquorum.node.io.directory import new_directory_id
from tests.cli.conftest import Ran, in_process
from tests.process.cluster import fixed_ports

from .brokers import jvm_broker, wait_for
from .directories import fastquorum
from .kafka import Kafka
from .mixed import Member, jvm_controller
from .nodes import CLUSTER_ID

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400), pytest.mark.long]


def controller_of(kafka: Kafka, directory: Path, port: int, *, is_ours: bool) -> Member:
    """A quorum of one; ours takes the file that Kafka's is started with as it is."""
    voters = f"1@127.0.0.1:{port}:{new_directory_id()}"
    at = f"127.0.0.1:{port}"
    kafkas = jvm_controller(kafka, directory, 1, port, CLUSTER_ID, voters=voters, bootstrap=at, formatted=is_ours)
    if not is_ours:
        return kafkas
    fastquorum("format", "--config", kafkas.config, "--cluster-id", CLUSTER_ID, "--voters", voters)
    command = [sys.executable, "-m", "fastquorum.cli", "run", "--config", str(kafkas.config), "--verbose"]
    return Member(1, port, directory, command, kafkas.config, is_ours=True)


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "kafkas"])
def test_brokers_and_topics_by_our_commands(kafka: Kafka, tmp_path: Path, is_ours: bool) -> None:
    port, *ports = fixed_ports(3)
    at = f"127.0.0.1:{port}"

    def run(*words: object) -> Ran:
        return in_process(*words, "--bootstrap", at)

    def shown(*words: object) -> list[dict[str, object]]:
        return [json.loads(line) for line in run(*words, "--format", "json").out.splitlines()]

    controller = controller_of(kafka, tmp_path / "controller", port, is_ours=is_ours)
    brokers = [jvm_broker(kafka, tmp_path, number, each, at) for number, each in zip((11, 12), ports, strict=True)]
    members = [controller, *brokers]
    try:
        for each in members:
            each.start()
        wait_for("both brokers", lambda: [each["fenced"] for each in shown("broker", "list")] == [False, False])
        created = run("topic", "create", "t", "--assignment", "11:12", "--config", "min.insync.replicas=1")
        assert (created.code, created.err) == (0, "")
        fenced = run("broker", "fence", 11)
        assert (fenced.code, fenced.err) == (0, "")
        wait_for("broker 11 to be back", lambda: not any(each["fenced"] for each in shown("broker", "list")))
        partition = {"topic": "t", "partition": 0, "replicas": [12], "log_dirs": ["any"]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        assert run("topic", "reassign", plan).code == 0
        wait_for("the replica to be moved", lambda: run("topic", "reassign", "--status", plan).code == 0)
        assert run("topic", "delete", "t").code == 0
        assert shown("topic", "list") == []
        brokers[0].kill()
        run("broker", "fence", 11)
        assert run("broker", "unregister", 11).code == 0
        assert [each["id"] for each in shown("broker", "list")] == [12]
    finally:
        for each in reversed(members):
            each.stop()
