"""Kafka's own file for a controller: what it means here, what it does not, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from fastquorum.errors import ConfigError
from fastquorum.node.io.sources import read_settings
from fastquorum.node.io.starting import controller_settings
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.types import Endpoint

STOCK = """
process.roles=controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=CONTROLLER://:9093
advertised.listeners=CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-controller-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""The keys and values of config/controller.properties, Kafka 4.3."""

BROKERS_ONLY = [
    "log.retention.check.interval.ms",
    "log.retention.hours",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
]
"""Keys of the file that have no effect here."""


def read(root: Path, text: str) -> tuple[NodeSettings, list[str]]:
    """The settings, and what was ignored."""
    file = root / "controller.properties"
    file.write_text(text)
    ignored: list[str] = []
    return read_settings({}, str(file), {}, lambda _, keys: ignored.extend(keys)), ignored


def test_the_file_that_kafka_ships_does_as_it_is(tmp_path: Path) -> None:
    settings, ignored = read(tmp_path, STOCK)
    assert ignored == BROKERS_ONLY
    assert settings.controller
    assert (settings.node_id, settings.path) == (1, "/tmp/kraft-controller-logs")
    assert settings.listen == Endpoint("CONTROLLER", "", 9093)
    assert settings.advertise == Endpoint("CONTROLLER", "localhost", 9093)
    assert settings.bootstrap == (Endpoint("CONTROLLER", "localhost", 9093),)
    assert settings.quorum.segment_bytes == 1 << 30
    plain = tmp_path / "controller.properties"
    assert read_settings({}, str(plain), {}) == settings
    assert not read_settings({"controller": False}, str(plain), {}).controller


def test_what_means_nothing_here_is_named(tmp_path: Path) -> None:
    settings, ignored = read(tmp_path, STOCK + "log.retention.ms=1\nauto.create.topics.enable=true\n")
    assert ignored == sorted([*BROKERS_ONLY, "auto.create.topics.enable", "log.retention.ms"])
    assert settings.controller


def test_what_means_nothing_in_a_file_of_our_own_is_named_too(tmp_path: Path) -> None:
    _, ignored = read(tmp_path, "node.id=1\nnum.io.threads=8\nlistener.security.protocol.map=C:PLAINTEXT\n")
    assert ignored == ["listener.security.protocol.map", "num.io.threads"]


def test_what_holds_for_topics_is_read_as_kafkas_controllers_read_it(tmp_path: Path) -> None:
    settings, ignored = read(
        tmp_path,
        "process.roles=controller\nnum.partitions=6\ndefault.replication.factor=3\nmin.insync.replicas=2\n"
        "unclean.leader.election.enable=true\n",
    )
    assert (settings.num_partitions, settings.default_replication_factor) == (6, 3)
    assert (settings.min_insync_replicas, settings.unclean_leader_election) == (2, True)
    assert ignored == []


def test_what_a_controller_looks_after_is_read_too(tmp_path: Path) -> None:
    settings, ignored = read(
        tmp_path,
        "process.roles=controller\nauto.leader.rebalance.enable=false\nleader.imbalance.check.interval.seconds=60\n"
        "unclean.leader.election.interval.ms=5000\ndelete.topic.enable=false\n",
    )
    assert (settings.preferred_leaders, settings.delete_topics) == (False, False)
    assert (settings.imbalance_check_us, settings.unclean_check_us) == (60_000_000, 5_000_000)
    assert ignored == []
    values = controller_settings("c", settings)
    assert (values.leader_imbalance_check_us, values.unclean_election_check_us) == (0, 5_000_000)
    assert not values.delete_topics
    assert controller_settings("c", replace(settings, preferred_leaders=None)).leader_imbalance_check_us == 60_000_000


def test_whoever_does_not_listen_is_told_by_an_error(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("process.roles=controller\ncontroller.quorum.fetch.timeout=5\n")
    with pytest.raises(ConfigError, match=r"did you mean controller\.quorum\.fetch\.timeout\.ms"):
        read_settings({}, str(file), {})


def test_the_controllers_listener_is_found_by_its_name(tmp_path: Path) -> None:
    settings, _ = read(
        tmp_path,
        "process.roles=controller\ncontroller.listener.names=ctrl,OTHER\nlisteners=PLAINTEXT://:9092, CTRL://h:9094\n"
        "advertised.listeners=PLAINTEXT://h:9092\nlistener.security.protocol.map=CTRL:PLAINTEXT,PLAINTEXT:PLAINTEXT\n",
    )
    assert settings.listen == Endpoint("CTRL", "h", 9094)
    assert settings.advertise is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("log.dirs=/a,/b", "/a"),
        ("log.dirs=/a\nmetadata.log.dir=/m", "/m"),
        ("log.dir=/c\nlog.dirs=/a , /b", "/a"),
        ("node.id=1", None),
    ],
)
def test_the_metadata_has_one_directory(tmp_path: Path, text: str, path: str | None) -> None:
    assert read(tmp_path, f"process.roles=controller\n{text}\n")[0].path == path


@pytest.mark.parametrize(
    ("text", "key", "complaint"),
    [
        ("process.roles=broker", "process.roles", "this node is not a broker"),
        ("process.roles=broker,controller", "process.roles", "only controllers here"),
        ("process.roles=", "process.roles", "expected controller"),
        ("process.roles=controler", "process.roles", "'controler' cannot be used: expected controller"),
        ("process.roles=controller\ncontroller.enable=false", "controller.enable", "contradicts process.roles"),
        (
            "process.roles=controller\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "authorizer.class.name",
            "nobody is authorized here",
        ),
        (
            "process.roles=controller\ncreate.topic.policy.class.name=com.example.Policy",
            "create.topic.policy.class.name",
            "no policy can be asked here: every topic is made",
        ),
        (
            "process.roles=controller\nalter.config.policy.class.name=com.example.Policy",
            "alter.config.policy.class.name",
            "no policy can be asked here: every configuration is taken",
        ),
        (
            "process.roles=controller\nlistener.security.protocol.map=CONTROLLER:SASL_SSL",
            "listener.security.protocol.map",
            "listener CONTROLLER is to speak SASL_SSL; there is no TLS and no SASL here",
        ),
        (
            "process.roles=controller\ncontroller.listener.names=SSL\nlisteners=SSL://h:1",
            "controller.listener.names",
            "listener SSL is to speak SSL",
        ),
        (
            "process.roles=controller\ncontroller.listener.names=C\nlisteners=D://h:1",
            "listeners",
            "has no listener C, which is the controllers'",
        ),
        ("process.roles=controller\nnum.partitions=0", "num.partitions", "above 0"),
        ("process.roles=controller\ndefault.replication.factor=32768", "default.replication.factor", "1..32767"),
        (
            "process.roles=controller\nunclean.leader.election.enable=2",
            "unclean.leader.election.enable",
            "true or false",
        ),
        ("process.roles=controller\nnode.id=x", "node.id", "expected a whole number"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(tmp_path: Path, text: str, key: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text + "\n")
    assert refused.value.key == key
    assert complaint in str(refused.value)
