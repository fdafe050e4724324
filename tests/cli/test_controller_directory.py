"""format and run of a controller: by arguments, and by Kafka's own file as it is."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from fastquorum.kernels import load
from fastquorum.node.io.directory import new_directory_id
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.checkpoint import data_values, read_checkpoint
from fastquorum.storage.names import BOOTSTRAP_CHECKPOINT, ZERO_CHECKPOINT
from fastquorum.types import Uuid
from tests.api.nodes import CLUSTER_ID
from tests.cli.conftest import Ran, RunningCommand, free_port, in_process
from tests.cli.controllers import ControllerClient
from tests.wire.golden import CLUSTER

Run = Callable[..., Ran]
Start = Callable[..., RunningCommand]


def kafka_file(root: Path, port: int, *lines: str) -> Path:
    """Write a file like those of Kafka's controllers."""
    path = root / "controller.properties"
    config = {
        "process.roles": "controller",
        "node.id": 1,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": root / "data",
        "num.partitions": 1,
    }
    path.write_text(
        "".join(f"{key}={value}\n" for key, value in config.items()) + "".join(f"{each}\n" for each in lines)
    )
    return path


def formatted(fastquorum: Run, *words: object) -> dict[str, Any]:
    ran = fastquorum("format", *words, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    report: dict[str, Any] = json.loads(ran.out)
    return report


def test_a_controllers_directory_begins_as_kafkas_own(fastquorum: Run, tmp_path: Path) -> None:
    data, directory_id = tmp_path / "n1", new_directory_id()
    words = ("--controller", "--data", data, "--node-id", 1, "--voters", f"1@127.0.0.1:9093:{directory_id}")
    report = formatted(fastquorum, *words, "--cluster-id", CLUSTER_ID)
    assert (report["log"], report["topic"], report["kraftVersion"]) == ("metadata", "__cluster_metadata", 1)
    assert report["directoryId"] == str(directory_id)
    assert (data / ZERO_CHECKPOINT).exists()
    kernels = load("native")
    ours, kafkas = (RealDisk(str(each), kernels) for each in (data, CLUSTER / "c1"))
    assert data_values(ours, kernels, BOOTSTRAP_CHECKPOINT) == data_values(kafkas, kernels, BOOTSTRAP_CHECKPOINT)


def test_kafkas_own_file_formats_and_runs_a_controller(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    port = free_port()
    config = kafka_file(tmp_path, port)
    voters = f"1@127.0.0.1:{port}:{new_directory_id()}"
    report = formatted(fastquorum, "--config", config, "--cluster-id", CLUSTER_ID, "--voters", voters)
    assert (report["data"], report["nodeId"], report["voters"]) == (str(tmp_path / "data"), 1, voters)
    node = running(None, "--config", str(config))
    assert f"node 1 of cluster {CLUSTER_ID} listens, reached at CONTROLLER://127.0.0.1:{port}" in node.line
    cluster = ControllerClient(port)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in fastquorum("topic", "delete", "t", *cluster.at).err, "it decides"
    cluster.join(11)
    assert fastquorum("topic", "create", "t", *cluster.at).code == 0
    features = json.loads(fastquorum("image", *cluster.at, "--format", "json").out)["features"]
    assert features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert node.end(signal.SIGTERM).code == 0


def test_a_controllers_directory_remembers_that_it_is_one(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    data, port = tmp_path / "n1", free_port()
    formatted(fastquorum, "--controller", "--data", data, "--node-id", 1, "--voters", f"1@127.0.0.1:{port}")
    node = running(data)
    assert node.line.endswith(f"data {data}, as a controller\n")
    assert (
        "the controller refuses: UNKNOWN_TOPIC_OR_PARTITION"
        in fastquorum("topic", "delete", "t", *ControllerClient(port).at).err
    ), "it decides"
    assert node.end(signal.SIGTERM).code == 0
    named = tmp_path / "told.properties"
    named.write_text("controller.enable=false\n")
    assert running(data, "--config", str(named)).line.endswith(f"data {data}\n"), "it may be told otherwise"


def test_a_directory_is_not_made_a_controllers_afterwards(fastquorum: Run, tmp_path: Path) -> None:
    words = ("--data", tmp_path / "n1", "--node-id", 1, "--voters", "1@h:1", "--cluster-id", "c")
    formatted(fastquorum, *words, "--log", "metadata")
    ran = fastquorum("format", *words, "--controller")
    assert ran.code == 2
    assert "it is formatted already, with controller no, not yes" in ran.err


def test_static_voters_stand_in_the_file(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    port = free_port()
    config = kafka_file(tmp_path, port, f"controller.quorum.voters=1@127.0.0.1:{port}")
    report = formatted(fastquorum, "--config", config, "--cluster-id", CLUSTER_ID)
    assert (report["kraftVersion"], report["voters"]) == (0, f"1@127.0.0.1:{port}")
    running(None, "--config", str(config))
    ran = fastquorum("topic", "delete", "t", *ControllerClient(port).at)
    assert "the controller refuses: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


def test_a_listener_of_another_name_is_the_voters_own(fastquorum: Run, tmp_path: Path) -> None:
    config = kafka_file(tmp_path, 9093)
    config.write_text(config.read_text().replace("CONTROLLER", "CTRL"))
    formatted(fastquorum, "--config", config, "--cluster-id", "c", "--voters", f"1@127.0.0.1:9093:{new_directory_id()}")
    own = (tmp_path / "data" / "fastquorum.properties").read_text()
    assert "listener.name=CTRL" in own
    kernels = load("native")
    state = read_checkpoint(RealDisk(str(tmp_path / "data"), kernels), kernels, ZERO_CHECKPOINT)
    assert state.voters is not None
    assert [each.endpoints[0].name for each in state.voters] == ["CTRL"]


def test_a_key_that_is_nearly_one_that_is_heeded_is_asked_after(
    fastquorum: Run, running: Start, tmp_path: Path
) -> None:
    port = free_port()
    lines = ("log.retention.hours=168", "min.insync.replica=2", f"controller.quorum.voters=1@127.0.0.1:{port}")
    config = kafka_file(tmp_path, port, *lines)
    printed = (
        f"{config}: without effect here: log.retention.hours, min.insync.replica (is min.insync.replicas meant?)\n"
    )
    ran = fastquorum("format", "--config", config, "--cluster-id", CLUSTER_ID)
    assert (ran.code, ran.err) == (0, printed)
    assert without_time(running(None, "--config", str(config)).end(signal.SIGTERM).err) == f"fastquorum: {printed}"
    as_json = running(None, "--config", str(config), "--log-format", "json").end(signal.SIGTERM).err
    assert json.loads(as_json.splitlines()[0])["keys"] == ["log.retention.hours", "min.insync.replica"]


def without_time(line: str) -> str:
    """A line of a node's log, which begins with the time in UTC."""
    time, _, rest = line.partition(" ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time), line
    return rest


def first_line(stderr: IO[str]) -> str:
    """Behind what is said while the others are not there yet."""
    lines = (without_time(line) for line in iter(stderr.readline, ""))
    return next(line for line in lines if not line.startswith("fastquorum: no leader is known: "))


def test_a_directory_of_another_cluster_at_a_voters_place_is_named_on_both_sides(
    fastquorum: Run, running: Start, tmp_path: Path
) -> None:
    ports = [free_port(), free_port()]
    voters = ",".join(f"{number}@127.0.0.1:{port}:{new_directory_id()}" for number, port in enumerate(ports, 1))
    for number, cluster_id in enumerate((CLUSTER_ID, "another"), 1):
        words = ("--controller", "--data", tmp_path / f"n{number}", "--node-id", number, "--voters", voters)
        formatted(fastquorum, *words, "--cluster-id", cluster_id)
    nodes = [running(tmp_path / f"n{number}") for number in (1, 2)]
    for node, other, port, own in ((nodes[0], 2, ports[1], CLUSTER_ID), (nodes[1], 1, ports[0], "another")):
        assert node.process.stderr is not None
        assert first_line(node.process.stderr) == (
            f"fastquorum: node {other} at 127.0.0.1:{port} is of another cluster than {own} (INCONSISTENT_CLUSTER_ID): "
            "nothing comes of it until the right data directory runs there, or here\n"
        )


def test_a_voters_place_without_its_directory_is_told_of_by_who_stands_there(
    fastquorum: Run, running: Start, tmp_path: Path
) -> None:
    """So it is after a disk was replaced: the node follows, and only this line tells that it has no vote."""
    ports = [free_port() for _ in range(3)]
    ids = [new_directory_id() for _ in range(4)]

    def voters(*directory_ids: Uuid) -> str:
        each = zip(ports, directory_ids, strict=True)
        return ",".join(f"{number}@127.0.0.1:{port}:{own}" for number, (port, own) in enumerate(each, 1))

    known, another = voters(*ids[:3]), voters(*ids[:2], ids[3])
    for number, listed in enumerate((known, known, another), 1):
        words = ("--controller", "--data", tmp_path / f"n{number}", "--node-id", number, "--voters", listed)
        formatted(fastquorum, *words, "--cluster-id", CLUSTER_ID)
    nodes = [running(tmp_path / f"n{number}") for number in (1, 2)]
    # Whoever is elected first writes down the voters that it knows: that is to be one of these two.
    assert fastquorum("topic", "list", "--bootstrap", f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}").code == 0
    nodes.append(running(tmp_path / "n3"))
    assert nodes[2].process.stderr is not None
    assert first_line(nodes[2].process.stderr) == (
        f"fastquorum: the quorum knows node 3 by directory id {ids[2]}, and {tmp_path / 'n3'} has {ids[3]}: it follows "
        "as an observer, without a vote, until the directory with that id runs here\n"
    )
    for node in nodes:
        lines = [without_time(line) for line in node.end(signal.SIGTERM).err.splitlines()]
        usual = ("fastquorum: no leader is known: ", "fastquorum: node ")  # while the others began or ended
        assert [line for line in lines if not line.startswith(usual)] == []


def test_what_means_nothing_here_is_named(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    port = free_port()
    config = kafka_file(
        tmp_path, port, "auto.create.topics.enable=true", f"controller.quorum.voters=1@127.0.0.1:{port}"
    )
    ran = fastquorum("format", "--config", config, "--cluster-id", CLUSTER_ID)
    assert (ran.code, ran.err) == (0, f"{config}: without effect here: auto.create.topics.enable\n")
    node = running(None, "--config", str(config))
    ended = node.end(signal.SIGTERM)
    assert without_time(ended.err) == f"fastquorum: {config}: without effect here: auto.create.topics.enable\n"
    as_json = running(None, "--config", str(config), "--log-format", "json").end(signal.SIGTERM).err
    first = json.loads(as_json.splitlines()[0])
    assert (first["event"], first["level"], first["keys"]) == (
        "settings_ignored",
        "warning",
        ["auto.create.topics.enable"],
    )


def test_an_unformatted_controller_is_not_made_up(fastquorum: Run, tmp_path: Path) -> None:
    config = kafka_file(tmp_path, free_port())
    ran = in_process("run", "--config", config)
    assert ran.code == 2
    assert f"{tmp_path / 'data'}: the directory is not formatted; if it was formatted before, find" in ran.err
    assert "else format it, once: `fastquorum format`" in ran.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "lines", "complaint"),
    [
        ((), (), "--voters is missing; or name controller.quorum.voters in --config FILE"),
        (("--voters", "1@h:1", "--log", "user"), (), "a controller keeps Kafka's metadata; leave out --log user"),
        (("--voters", "1@h:1", "--no-bootstrap"), (), "--no-bootstrap is not for controllers"),
        (("--voters", "1@h:1", "--topic-name", "t"), (), "--topic-name is for user logs"),
        (("--voters", "1@h:1"), ("controller.quorum.voters=1@h:2",), "--voters says 1@h:1, and "),
        ((), ("controller.quorum.voters=1@h:1,2@h:2",), "--cluster-id is required with more than one voter"),
        ((), ("controller.quorum.voters=2@h:2",), "node 1 is not among the voters"),
        ((), ("controller.quorum.voters=1",), "controller.quorum.voters"),
        ((), ("authorizer.class.name=X",), "authorizer.class.name"),
    ],
)
def test_bad_controllers_make_nothing(
    fastquorum: Run, tmp_path: Path, words: tuple[object, ...], lines: tuple[str, ...], complaint: str
) -> None:
    ran = fastquorum("format", "--config", kafka_file(tmp_path, 9093, *lines), *words)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("roles", ["broker", "broker,controller"])
def test_a_broker_is_not_for_this_command(fastquorum: Run, tmp_path: Path, roles: str) -> None:
    config = kafka_file(tmp_path, 9093)
    config.write_text(config.read_text().replace("process.roles=controller", f"process.roles={roles}"))
    for ran in (fastquorum("format", "--config", config), in_process("run", "--config", config)):
        assert ran.code == 2
        assert f"process.roles ({config}): this node is not a broker; run Apache Kafka's brokers" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("run",), "--data is missing; or name the directory in --config FILE, as log.dirs"),
        (("format",), "--data is missing; or name log.dirs in --config FILE"),
        (("format", "--data", "x"), "--node-id is missing; or name node.id in --config FILE"),
        (("format", "--data", "x", "--node-id", 1), "--voters is missing"),
        (("format", "--config", "/nowhere.properties"), "/nowhere.properties"),
    ],
)
def test_what_is_missing_is_named(fastquorum: Run, words: tuple[object, ...], complaint: str) -> None:
    ran = in_process(*words)
    assert ran.code == 2
    assert complaint in ran.err
