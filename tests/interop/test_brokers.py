"""Apache Kafka 4.3.0's brokers live on our controllers: no controller of Kafka's runs anywhere."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from .brokers import Cluster, cluster, wait_for
from .brokers_campaign import SHORT, Run, play
from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(400)]


def test_clients_lose_and_double_nothing_while_brokers_and_our_controllers_are_killed_and_restarted(
    kafka: Kafka, tmp_path: Path
) -> None:
    """The short form of `campaign brokers`."""
    with cluster(kafka, tmp_path) as kafkas:
        run = Run(kafkas, SHORT, lambda _: None)
        run.create()
        described = kafkas.topics("--describe", "--topic", run.topics[0])
        assert "PartitionCount: 3\tReplicationFactor: 3\tConfigs: min.insync.replicas=2" in described
        assert sorted(leader for leader, _, _ in kafkas.partitions(run.topics[0])) == [11, 12, 13]
        report = play(run)
    assert report["problems"] == []
    assert min(report[each] for each in ("acknowledged", "committed_in_transactions", "aborted")) > 0
    assert report["last_epoch"] > 1
    assert min(report["log_starts"]) > 0, "what began there began with a snapshot"


def test_replicas_are_moved_taken_back_and_led_by_whom_they_are_meant_for(kafka: Kafka, tmp_path: Path) -> None:
    with cluster(kafka, tmp_path) as kafkas:
        for topic, brokers in (("moved", "11"), ("led", "11:12")):
            kafkas.topics("--create", "--topic", topic, "--replica-assignment", brokers)
        writer = kafkas.producer()
        writer.write("moved", [b"%d" % number for number in range(200)])

        topic = ("--entity-type", "topics", "--entity-name", "moved")
        kafkas.configure("--alter", *topic, "--add-config", "retention.ms=90000000,cleanup.policy=[compact,delete]")
        kafkas.configure("--alter", *topic, "--delete-config", "cleanup.policy")
        wait_for(
            "the configuration",
            lambda: (
                "Configs: min.insync.replicas=1,retention.ms=90000000"
                in kafkas.topics("--describe", "--topic", "moved")
            ),
        )
        with pytest.raises(AssertionError, match="Invalid value soon"):  # the tool ends with an error
            kafkas.configure("--alter", *topic, "--add-config", "retention.ms=soon")
        every = ("--entity-type", "brokers", "--entity-default")
        kafkas.configure("--alter", *every, "--add-config", "log.retention.ms=80000000")
        wait_for("the default", lambda: "log.retention.ms=80000000" in kafkas.configure("--describe", *every))

        what_is_set_of_clients_groups_and_features_is_so(kafkas)
        target = kafkas.brokers[13]
        target.kill()
        assert "Successfully started partition reassignment for moved-0" in kafkas.reassign(
            "--execute", target={"moved": [13]}
        )
        wait_for("the move to be told", lambda: kafkas.partitions("moved") == [(11, [11, 13], [11])])
        assert "still in progress" in kafkas.reassign("--verify", "--preserve-throttles", target={"moved": [13]})
        assert "Successfully cancelled" in kafkas.reassign("--cancel", "--preserve-throttles", target={"moved": [13]})
        wait_for("the move to be taken back", lambda: kafkas.partitions("moved") == [(11, [11], [11])])

        kafkas.start(target)
        kafkas.reassign("--execute", target={"moved": [13]})
        wait_for("the move", lambda: kafkas.partitions("moved") == [(13, [13], [13])])
        assert "is completed" in kafkas.reassign("--verify", "--preserve-throttles", target={"moved": [13]})
        assert kafkas.consumed("moved", "readers", 200) == set(writer.acknowledged)

        led = ("--topic", "led", "--partition", "0")
        first = kafkas.brokers[11]
        first.kill()
        wait_for("broker 11 to be fenced", lambda: kafkas.partitions("led") == [(12, [11, 12], [12])])
        kafkas.start(first)
        wait_for("broker 11 to be in sync again", lambda: kafkas.is_whole("led"))
        assert kafkas.partitions("led")[0][0] == 12
        assert "Successfully completed leader election (PREFERRED)" in kafkas.elect_preferred(*led)
        wait_for("broker 11 to lead", lambda: kafkas.partitions("led")[0][0] == 11)
        assert "Valid replica already elected" in kafkas.elect_preferred(*led)


def what_is_set_of_clients_groups_and_features_is_so(kafkas: Cluster) -> None:
    """By Kafka's tools, by way of brokers."""
    for kind, name, config, expected in (
        ("clients", "app", "producer_byte_rate=1024", "producer_byte_rate=1024.0"),
        ("users", "alice", "request_percentage=12.5", "request_percentage=12.5"),
        ("users", "alice", "SCRAM-SHA-256=[iterations=8192,password=pencil]", "SCRAM-SHA-256=iterations=8192"),
        ("ips", "10.0.0.1", "connection_creation_rate=7", "connection_creation_rate=7.0"),
        ("groups", "readers", "consumer.session.timeout.ms=50000", "consumer.session.timeout.ms=50000"),
        ("client-metrics", "seen", "interval.ms=30000,match=[client_id=app.*]", "interval.ms=30000"),
    ):
        entity = ("--entity-type", kind, "--entity-name", name)
        kafkas.configure("--alter", *entity, "--add-config", config)
        wait_for(f"{config} of {name}", lambda e=entity, t=expected: t in kafkas.configure("--describe", *e))
    for kind, name, config, why in (
        ("clients", "app", "producer_byte_rate=0", "must be greater than 0"),
        ("groups", "readers", "consumer.session.timeout.ms=1", "Invalid value 1"),
        ("client-metrics", "seen", "interval.ms=1", "Invalid value 1"),
    ):
        with pytest.raises(AssertionError, match=why):
            kafkas.configure("--alter", "--entity-type", kind, "--entity-name", name, "--add-config", config)
    with pytest.raises(KafkaException, match="No authorizer is configured here"):
        kafkas.allow("User:alice", "moved")

    assert "streams.version was downgraded to 0." in kafkas.features("downgrade", "--feature", "streams.version=0")
    wait_for("the lower level", lambda: kafkas.level("streams.version") == "0")
    assert kafkas.level("streams.version", at_controllers=True) == "0"
    assert "streams.version was upgraded to 1." in kafkas.features("upgrade", "--feature", "streams.version=1")
    wait_for("the higher level", lambda: kafkas.level("streams.version") == "1")
    assert kafkas.level("metadata.version", at_controllers=True) == "4.3-IV0"
    with pytest.raises(AssertionError, match="Could not downgrade metadata"):
        kafkas.features("downgrade", "--metadata", "4.2")
    status = " ".join(kafkas.quorum("describe", "--status").split())
    assert f"LeaderId: {kafkas.active_controller().id} LeaderEpoch:" in status
