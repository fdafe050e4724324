"""Apache Kafka's brokers on our controllers, with no controller of Kafka's anywhere: started, killed, looked at."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    PartitionMetadata,
    ResourcePatternType,
    ResourceType,
)

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from tests.process.cluster import fixed_ports

from .directories import fastquorum
from .kafka import Kafka
from .mixed import LOGGING, Member, Settings, jvm_controller, properties
from .nodes import CLUSTER_ID, DIRECTORY_IDS, Description
from .tools import CONFIGS, FEATURES, LEADER_ELECTION, METADATA_QUORUM, REASSIGN_PARTITIONS, TOPICS, Tools

WAIT_S: Final = 90.0
LOOK_S: Final = 0.1
QUIET: Final = {"log_level": 2}
"""For clients: that a broker is away is no news here."""
BROKER_HEAP: Final = "-Xmx512m"
BROKERS: Final = (11, 12, 13)
SETTINGS: Final = {
    # A few brokers keep what Kafka would keep on more, and the first rebalance need not wait for others.
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
}
OURS: Final = {
    # So small that whoever starts has to begin with a snapshot of ours.
    "metadata.log.max.record.bytes.between.snapshots": 4_000,
    "metadata.log.segment.bytes": 4_096,
    "metadata.max.retention.bytes": 12_000,
}


def wait_for(what: str, is_so: Callable[[], object], within_s: float = WAIT_S) -> None:
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, f"still waiting for {what}"
        time.sleep(LOOK_S)


def our_controller(root: Path, node_id: int, port: int, voters: str, settings: Settings = OURS) -> Member:
    directory = root / f"controller-{node_id}"
    fastquorum(
        "format", "--data", directory, "--node-id", str(node_id), "--cluster-id", CLUSTER_ID, "--voters", voters,
        "--controller",
    )  # fmt: skip
    config = properties(directory.with_suffix(".properties"), settings)
    command = [sys.executable, "-m", "fastquorum.cli", "run", "--data", str(directory), "--verbose", "--controller"]
    command += ["--listen", f"127.0.0.1:{port}", "--config", str(config)]
    return Member(node_id, port, directory, command, config, is_ours=True)


def jvm_broker(
    kafka: Kafka, root: Path, node_id: int, port: int, bootstrap: str, replicas: int = len(BROKERS)
) -> Member:
    """`replicas`: of each partition of Kafka's own topics."""
    directory = root / f"broker-{node_id}"
    config = properties(
        directory.with_suffix(".properties"),
        {
            "process.roles": "broker",
            "node.id": node_id,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.quorum.bootstrap.servers": bootstrap,
            "log.dirs": directory,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            **SETTINGS,
        },
    )
    kafka.storage("format", "-t", CLUSTER_ID, "-c", config)
    logging = root / "log4j2.properties"
    logging.write_text(LOGGING)
    command = [
        "java",
        BROKER_HEAP,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={logging}",
    ]
    command += ["-cp", kafka.class_path(), "kafka.Kafka", str(config)]
    return Member(node_id, port, directory, command, config, is_ours=False)


class Cluster:
    """Three controllers of ours, or some of them Kafka's, and brokers of Kafka's. Use as `with cluster(...) as c`."""

    def __init__(
        self,
        kafka: Kafka,
        tools: Tools,
        root: Path,
        *,
        theirs: Sequence[int] = (),
        brokers: Sequence[int] = BROKERS,
        is_static: bool = False,
        settings: Settings | None = None,
    ) -> None:
        """`theirs`: the controllers that are Kafka's. `is_static`: voters without directory ids (kraft.version 0).
        `settings`: of every controller; else OURS for ours, and none for Kafka's."""
        ports = dict(zip((*DIRECTORY_IDS, *brokers), fixed_ports(len(DIRECTORY_IDS) + len(brokers)), strict=True))
        places = {each: f"{each}@127.0.0.1:{ports[each]}" for each in DIRECTORY_IDS}
        voters = ",".join(at if is_static else f"{at}:{DIRECTORY_IDS[each]}" for each, at in places.items())
        at = ",".join(f"127.0.0.1:{ports[each]}" for each in DIRECTORY_IDS)
        self.tools = tools
        self.voters = voters
        self._root = root
        self.controllers = {
            each: jvm_controller(
                kafka,
                root / f"controller-{each}",
                each,
                ports[each],
                CLUSTER_ID,
                voters=voters,
                bootstrap=at,
                static=is_static,
                settings=settings,
            )
            if each in theirs
            else our_controller(root, each, ports[each], voters, OURS if settings is None else settings)
            for each in DIRECTORY_IDS
        }
        self.brokers = {each: jvm_broker(kafka, root, each, ports[each], at, len(brokers)) for each in brokers}
        self.bootstrap = ",".join(f"127.0.0.1:{ports[each]}" for each in brokers)
        self.bootstrap_controllers = at
        self.endpoints = tuple(Endpoint("CONTROLLER", "127.0.0.1", ports[each]) for each in DIRECTORY_IDS)

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})

    @property
    def members(self) -> list[Member]:
        return [*self.controllers.values(), *self.brokers.values()]

    def start(self, *members: Member) -> None:
        """Returns when they are up."""
        for each in members:
            each.start()
        for each in members:
            wait_for(f"{each} to be up", lambda each=each: each.check() or each.is_up)

    def stop(self) -> None:
        """Brokers first: they ask the controllers to let them go."""
        for each in (*self.brokers.values(), *self.controllers.values()):
            each.stop()

    def active_controller(self) -> Member:
        with QuorumClient(self.endpoints, load("pure")) as client:
            return self.controllers[Description(client.describe(Deadline(WAIT_S))).leader_id]

    def high_watermark(self) -> int:
        """Return the end of the committed records."""
        with QuorumClient(self.endpoints, load("pure")) as client:
            return Description(client.describe(Deadline(WAIT_S))).partition.high_watermark

    def brokers_caught_up(self) -> None:
        """Wait until each broker has fetched what is committed now."""
        with QuorumClient(self.endpoints, load("pure")) as client:
            target = Description(client.describe(Deadline(WAIT_S))).partition.high_watermark

            def reached() -> bool:
                rows = Description(client.describe(Deadline(WAIT_S))).partition.observers
                return {row.replica_id for row in rows if row.log_end_offset >= target} >= {*self.brokers}

            wait_for(f"the brokers to have all below {target}", reached)

    def caught_up(self, within_s: float = WAIT_S) -> None:
        """Wait until each of the three controllers has what was committed when somebody led at last."""
        with QuorumClient(self.endpoints, load("pure")) as client:
            target = Description(client.describe(Deadline(within_s))).partition.high_watermark

            def reached() -> bool:
                ends = Description(client.describe(Deadline(within_s))).end_offsets
                return all(ends[each] >= target for each in self.controllers)

            wait_for(f"the controllers to have all below {target}", reached, within_s)

    def topics(self, *words: str) -> str:
        """kafka-topics."""
        return self.tools.run(TOPICS, "--bootstrap-server", self.bootstrap, *words)

    def topics_in_time(self, *words: str) -> None:
        """kafka-topics, again until it succeeds: the broker that it asks may not have heard of the topic yet."""
        command = (TOPICS, "--bootstrap-server", self.bootstrap, *words)
        wait_for(" ".join(words), lambda: self.tools.call(*command).code == 0)

    def configure(self, *words: str) -> str:
        """kafka-configs."""
        return self.tools.run(CONFIGS, "--bootstrap-server", self.bootstrap, *words)

    def allow(self, principal: str, topic: str) -> None:
        """An access control entry, which kafka-acls would make only if it could see those that are there."""
        pattern = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
        entry = AclBinding(*pattern, principal, "*", AclOperation.READ, AclPermissionType.ALLOW)
        self._admin.create_acls([entry])[entry].result()

    def features(self, *words: str, at_controllers: bool = False) -> str:
        """kafka-features."""
        where = ("--bootstrap-server", self.bootstrap)
        if at_controllers:
            where = ("--bootstrap-controller", self.bootstrap_controllers)
        return self.tools.run(FEATURES, *where, *words)

    def level(self, feature: str, *, at_controllers: bool = False) -> str:
        """Where it is finalized, as kafka-features tells it."""
        lines = [line.split() for line in self.features("describe", at_controllers=at_controllers).splitlines()]
        [level] = [words[words.index("FinalizedVersionLevel:") + 1] for words in lines if feature in words]
        return level

    def quorum(self, *words: str) -> str:
        """kafka-metadata-quorum."""
        return self.tools.run(METADATA_QUORUM, "--bootstrap-server", self.bootstrap, *words)

    def reassign(self, *words: str, target: dict[str, list[int]]) -> str:
        """kafka-reassign-partitions; the target is of partition 0 of each topic."""
        plan = [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in target.items()]
        path = self._root / "plan.json"
        path.write_text(json.dumps({"version": 1, "partitions": plan}))
        where = ("--bootstrap-server", self.bootstrap, "--reassignment-json-file", path)
        return self.tools.run(REASSIGN_PARTITIONS, *where, *words)

    def elect_preferred(self, *partitions: str) -> str:
        """kafka-leader-election."""
        where = ("--bootstrap-server", self.bootstrap, *partitions)
        return self.tools.run(LEADER_ELECTION, *where, "--election-type", "PREFERRED")

    def partitions(self, topic: str) -> list[tuple[int, list[int], list[int]]]:
        """(leader, replicas, ISR) of each, as a client is told."""
        found = self._partitions(topic)
        return [(each.leader, sorted(each.replicas), sorted(each.isrs)) for each in found]

    def is_out(self, broker: Member) -> bool:
        """It is in sync with nobody, and so leads nothing: it is fenced, or has let go."""
        return all(broker.id not in (each.leader, *each.isrs) for each in self._partitions(None))

    def is_led_as_preferred(self) -> bool:
        """Every partition of every topic, by the first of its replicas."""
        return all(each.leader == each.replicas[0] for each in self._partitions(None))

    def _partitions(self, topic: str | None) -> list[PartitionMetadata]:
        topics = self._admin.list_topics(topic, timeout=WAIT_S).topics
        return [each for name in sorted(topics) for each in topics[name].partitions.values()]

    def is_whole(self, topic: str | None = None) -> bool:
        """Every partition, of one topic or of all, has a leader, and all its replicas in sync."""
        return all(each.leader >= 0 and sorted(each.replicas) == sorted(each.isrs) for each in self._partitions(topic))

    def producer(self, **settings: Any) -> "Writer":
        return Writer(self.bootstrap, settings)

    def consumed(self, topic: str, group: str, count: int) -> set[bytes]:
        """What a group reads from the beginning, until it has so many."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        values: set[bytes] = set()
        try:
            until = time.monotonic() + WAIT_S
            while len(values) < count:
                assert time.monotonic() < until, f"{len(values)} of {count} were read"
                message = consumer.poll(1.0)
                if message is not None and message.error() is None:
                    values.add(message.value())
        finally:
            consumer.close()
        return values


class Writer:
    """An idempotent producer with acks=all; what it was told is kept."""

    def __init__(self, bootstrap: str, settings: dict[str, Any]) -> None:
        wanted = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": int(WAIT_S * 1000), **settings}
        self._producer = Producer({"bootstrap.servers": bootstrap, **wanted})
        self.acknowledged: list[bytes] = []
        self.errors: list[str] = []

    def write(self, topic: str, values: list[bytes]) -> None:
        """Returns when all are acknowledged, or failed."""
        for value in values:
            self._producer.produce(topic, value=value, on_delivery=self._on_delivered)
            self._producer.poll(0)
        self._producer.flush(WAIT_S)

    def _on_delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.append(message.value())


@contextmanager
def cluster(
    kafka: Kafka,
    root: Path,
    *,
    theirs: Sequence[int] = (),
    brokers: Sequence[int] = BROKERS,
    is_static: bool = False,
    settings: Settings | None = None,
) -> Iterator[Cluster]:
    """Controllers and brokers, up. The arguments are those of Cluster."""
    with Tools(kafka, root) as tools:
        made = Cluster(kafka, tools, root, theirs=theirs, brokers=brokers, is_static=is_static, settings=settings)
        try:
            # Ours first: they are the majority, and one of them leads.
            for is_ours in (True, False):
                made.start(*(each for each in made.controllers.values() if each.is_ours is is_ours))
            made.start(*made.brokers.values())
            yield made
        finally:
            made.stop()
