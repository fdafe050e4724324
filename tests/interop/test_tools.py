"""Kafka's tools look at three live nodes and at the directories that they leave: each sees what it would of a Kafka.

One quorum serves the whole module; whoever kills a node starts it again and waits until it has caught up.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fastquorum.kernels import load
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import Uuid
from fastquorum.wire.records.metadata import decode_metadata_record
from fastquorum.wire.records.topics import RemoveTopicRecord, TopicRecord

from .directories import CLUSTER, fastquorum, golden_values
from .kafka import Kafka
from .metadata_shell import SHELL_TRIES, printed
from .nodes import CLUSTER_ID, DIRECTORY_IDS, TOPIC, Description, Nodes, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
LAG_TIME = "MaxFollowerLagTimeMs"
STATUS = [
    "ClusterId", "LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag", LAG_TIME, "CurrentVoters",
    "CurrentObservers",
]  # fmt: skip
COLUMNS = ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("tools")) as started:
        started.append(*(b"value %d" % number for number in range(20)))
        yield started


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- kafka-metadata-quorum --------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One line of `describe --replication`."""

    node_id: int
    directory_id: str
    end_offset: int
    lag: int
    fetched: str
    caught_up: str
    status: str


def status_of(text: str) -> dict[str, str]:
    values = dict(line.split(":", 1) for line in text.splitlines())
    assert list(values) == STATUS
    assert {len(line) - len(line.split(":", 1)[1].lstrip()) for line in text.splitlines()} == {24}, "one column"
    return {name: value.strip() for name, value in values.items()}


def our_status_of(text: str) -> dict[str, str]:
    """What Kafka's tool prints, too; a last line says why leadership changed last, which it does not know."""
    lines = text.splitlines()
    assert re.fullmatch(r"LastLeaderChange: {7}[a-z_]+: .*a majority voted for this node", lines[-1])
    return status_of("\n".join(lines[:-1]))


def rows_of(text: str) -> list[Row]:
    """The rows; every cell is as wide as its column, and a tab ends it."""
    lines = [line.split("\t") for line in text.splitlines()]
    assert all(line[-1] == "" for line in lines)
    assert [cell.strip() for cell in lines[0][:-1]] == COLUMNS
    assert all(len({len(cell) for cell in column}) == 1 for column in zip(*lines, strict=True))
    rows = []
    for line in lines[1:]:
        node_id, directory_id, end_offset, lag, fetched, caught_up, status = (cell.strip() for cell in line[:-1])
        rows.append(Row(int(node_id), directory_id, int(end_offset), int(lag), fetched, caught_up, status))
    return rows


def without_times(rows: list[Row]) -> list[Row]:
    return [row._replace(fetched="", caught_up="") for row in rows]


class Described:
    """What Kafka's tool and our command say of the quorum of one moment, in which nothing is appended."""

    def __init__(self, kafka: Kafka, nodes: Nodes, server: int, *, ages: bool = True) -> None:
        def theirs(*words: str) -> str:
            return kafka.run(QUORUM, "--bootstrap-controller", nodes.address(server), "describe", *words)

        def ours(*words: str) -> str:
            return fastquorum("quorum", "describe", "--bootstrap", nodes.address(server), *words)

        self.status = status_of(theirs("--status"))
        self.our_status = our_status_of(ours("--status"))
        self.began_ms = now_ms()
        self.rows = rows_of(theirs("--replication"))
        self.our_rows = rows_of(ours("--replication"))
        self.ended_ms = now_ms()
        self.ages = rows_of(theirs("--replication", "--human-readable")) if ages else []
        self.our_ages = rows_of(ours("--replication", "--human-readable")) if ages else []
        self.over_ms = now_ms()

    def check(self, expected: Description, silent: tuple[int, ...] = ()) -> None:
        """Both say the same, and what the leader itself says. `silent`: who has not been heard since it leads."""
        partition, leader = expected.partition, expected.leader_id
        leaders_end = expected.end_offsets[leader]
        lags = {node_id: leaders_end - end for node_id, end in expected.end_offsets.items()}
        voters = ", ".join(
            f'{{"id": {row.replica_id}, "directoryId": "{DIRECTORY_IDS[row.replica_id]}", '
            f'"endpoints": ["CONTROLLER://{node.listeners[0].host}:{node.listeners[0].port}"]}}'
            for row, node in zip(partition.current_voters, expected.response.nodes, strict=True)
        )
        assert {**self.status, LAG_TIME: ""} == {**self.our_status, LAG_TIME: ""}
        assert {**self.status, LAG_TIME: ""} == {
            "ClusterId": CLUSTER_ID,
            "LeaderId": str(leader),
            "LeaderEpoch": str(expected.epoch),
            "HighWatermark": str(partition.high_watermark),
            "MaxFollowerLag": str(max(lags.values())),
            LAG_TIME: "",
            "CurrentVoters": f"[{voters}]",
            "CurrentObservers": "[]",
        }
        assert (int(self.status[LAG_TIME]) == -1) == (int(self.our_status[LAG_TIME]) == -1) == bool(silent)
        followers = [row.replica_id for row in partition.current_voters if row.replica_id != leader]
        plain = [
            Row(node_id, DIRECTORY_IDS[node_id], expected.end_offsets[node_id], lags[node_id], "", "", status)
            for node_id, status in [(leader, "Leader"), *((each, "Follower") for each in followers)]
        ]
        for rows in (self.rows, self.our_rows, self.ages or self.rows, self.our_ages or self.rows):
            assert without_times(rows) == plain
        self._check_times(leader, silent)

    def _check_times(self, leader: int, silent: tuple[int, ...]) -> None:
        for row in (*self.rows, *self.our_rows):
            fetched, caught_up = int(row.fetched), int(row.caught_up)
            if row.node_id in silent:
                assert (fetched, caught_up) == (-1, -1)
            else:
                assert 0 < caught_up <= fetched <= self.ended_ms
            if row.node_id == leader:  # as of now
                assert self.began_ms <= fetched == caught_up
        # An age is of a time no earlier than the one seen before, and looked at no later than now.
        earlier = {row.node_id: row for row in self.our_rows}
        for row in (*self.ages, *self.our_ages):
            for age, seen in (
                (row.fetched, earlier[row.node_id].fetched),
                (row.caught_up, earlier[row.node_id].caught_up),
            ):
                if row.node_id in silent:
                    assert age == "-1"
                else:
                    assert age.endswith(" ms ago")
                    assert 0 <= int(age.removesuffix(" ms ago")) <= self.over_ms - int(seen)


def test_kafka_metadata_quorum_describes_the_nodes_before_and_after_the_leader_is_killed(
    kafka: Kafka, nodes: Nodes
) -> None:
    before = nodes.wait_caught_up()
    Described(kafka, nodes, server=1).check(before)

    nodes.kill(before.leader_id)
    after = nodes.wait_epoch(before.epoch)
    assert after.leader_id != before.leader_id
    nodes.append(b"after the leader is dead")
    after = nodes.describe()
    found = Described(kafka, nodes, server=after.leader_id)
    found.check(after, silent=(before.leader_id,))
    assert found.status["MaxFollowerLag"] == str(after.end_offsets[after.leader_id] + 1)  # nothing is known of it: -1

    nodes.start(before.leader_id)
    back = nodes.wait_caught_up()
    Described(kafka, nodes, server=before.leader_id).check(back)


def test_kafka_metadata_quorum_tells_how_far_a_dead_follower_is_behind(kafka: Kafka, nodes: Nodes) -> None:
    whole = nodes.wait_caught_up()
    dead = next(node_id for node_id in nodes.ids if node_id != whole.leader_id)
    nodes.kill(dead)
    for number in range(3):
        nodes.append(b"without node %d %d" % (dead, number))
    first, second = (Described(kafka, nodes, server=whole.leader_id, ages=False) for _ in range(2))
    now = nodes.describe()
    assert now.end_offsets[whole.leader_id] - now.end_offsets[dead] == 3
    for found in (first, second):
        found.check(now)
    # When it was last heard, and last had everything, stays; but for what the leader's two clocks differ by.
    dead_rows = [row for row in (*first.rows, *second.rows, *second.our_rows) if row.node_id == dead]
    for times in ([int(row.fetched) for row in dead_rows], [int(row.caught_up) for row in dead_rows]):
        assert max(times) - min(times) < (second.began_ms - first.began_ms) // 2
    # How long ago that is grows, in either one's words.
    lag_times = [int(each[LAG_TIME]) for each in (first.status, first.our_status, second.status, second.our_status)]
    assert lag_times == sorted(lag_times)
    assert lag_times[1] <= first.began_ms - int(dead_rows[0].caught_up) <= lag_times[2]
    nodes.start(dead)
    nodes.wait_caught_up()


def test_kafka_metadata_quorum_describes_the_nodes_as_brokers(kafka: Kafka, nodes: Nodes) -> None:
    """Brokers pass such requests on, so a follower does."""
    whole = nodes.wait_caught_up()
    follower = next(node_id for node_id in nodes.ids if node_id != whole.leader_id)
    command = (QUORUM, "--bootstrap-server", nodes.address(follower), "describe")
    ours = fastquorum("quorum", "describe", "--bootstrap", nodes.bootstrap, "--status")
    status = status_of(kafka.run(*command, "--status"))
    assert {**status, LAG_TIME: ""} == {**our_status_of(ours), LAG_TIME: ""}
    rows = without_times(rows_of(kafka.run(*command, "--replication")))
    assert rows[0] == Row(
        whole.leader_id, DIRECTORY_IDS[whole.leader_id], whole.partition.high_watermark, 0, "", "", "Leader"
    )


# --- who and what -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["--bootstrap-server", "--bootstrap-controller"])
def test_kafka_cluster_tells_the_cluster_id_and_the_endpoints(kafka: Kafka, nodes: Nodes, how: str) -> None:
    tool = "org.apache.kafka.tools.ClusterTool"
    assert kafka.run(tool, "cluster-id", how, nodes.bootstrap) == f"Cluster ID: {CLUSTER_ID}\n"
    lines = [line.split() for line in kafka.run(tool, "list-endpoints", how, nodes.address(2)).splitlines()[1:]]
    assert [(line[0], line[1], line[2]) for line in lines] == [
        (str(node_id), "127.0.0.1", str(nodes.ports[node_id])) for node_id in nodes.ids
    ]


def test_kafka_broker_api_versions_can_use_all_that_is_offered(kafka: Kafka, nodes: Nodes) -> None:
    printed = kafka.run("org.apache.kafka.tools.BrokerApiVersionsCommand", "--bootstrap-server", nodes.address(1))
    for node_id in nodes.ids:
        assert f"{nodes.address(node_id)} (id: {node_id} rack: null isFenced: false) -> (" in printed
    offered = [line.strip().rstrip(",") for line in printed.splitlines() if "[usable: " in line]
    assert len(offered) % 3 == 0
    usable = set(offered)
    assert len(usable) == len(offered) // 3, "the nodes offer the same"
    # Kafka's tool uses the newest of each; ours are as new as its own.
    for line in usable:
        newest, _, used = line.partition(": ")[2].rstrip("]").partition(" [usable: ")  # "4 to 18", or "0" alone
        assert newest.split()[-1] == used, line
    assert {
        "Produce(0): 0 to 13 [usable: 13]",
        "Fetch(1): 4 to 18 [usable: 18]",
        "Vote(52): 0 to 2 [usable: 2]",
    } <= usable


@pytest.mark.parametrize("how", ["--bootstrap-controller", "--bootstrap-server"])
def test_kafka_features(kafka: Kafka, nodes: Nodes, how: str) -> None:
    printed = kafka.run("org.apache.kafka.tools.FeatureCommand", how, nodes.bootstrap, "describe").split()
    shown = dict(zip(printed[::2], printed[1::2], strict=True))
    assert shown["Feature:"] == "kraft.version"
    assert (shown["SupportedMinVersion:"], shown["SupportedMaxVersion:"]) == ("0", "1")
    assert shown["FinalizedVersionLevel:"] == "1"
    assert int(shown["Epoch:"]) < nodes.describe().partition.high_watermark


@pytest.mark.long
def test_kafka_get_offsets(kafka: Kafka, nodes: Nodes) -> None:
    def offset(when: str | int) -> str:
        printed = kafka.run(
            "org.apache.kafka.tools.GetOffsetShell",
            *("--bootstrap-server", nodes.bootstrap, "--topic", TOPIC, "--time", str(when)),
        )
        return printed.removeprefix(f"{TOPIC}:0:").strip()

    earlier = nodes.append(b"earlier")
    between_ms = now_ms() + 1
    while now_ms() <= between_ms:  # the next record's timestamp is a later one
        nodes.describe()
    last = nodes.append(b"last")
    assert offset(-1) == str(last + 1)
    assert offset(-2) == offset("earliest-local") == "0"
    assert offset(-3) == str(last)
    assert earlier < last
    assert offset(between_ms) == str(last)
    assert offset(now_ms() + 60_000) == ""


def test_kafka_topics_and_kafka_configs_describe_the_topic(kafka: Kafka, nodes: Nodes) -> None:
    whole = nodes.describe()
    topics = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", nodes.bootstrap)
    assert kafka.run(*topics, "--list") == f"{TOPIC}\n"
    described = kafka.run(*topics, "--describe", "--topic", TOPIC).splitlines()
    assert "PartitionCount: 1\tReplicationFactor: 3" in described[0]
    assert f"Partition: 0\tLeader: {whole.leader_id}\tReplicas: 1,2,3\tIsr: 1,2,3" in described[1]
    configs = kafka.run(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", nodes.bootstrap, "--entity-type", "topics", "--entity-name", TOPIC),
        *("--describe", "--all"),
    )
    assert "min.insync.replicas=2 " in configs
    assert "retention.ms=-1 " in configs


# --- what the nodes leave ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    """Three nodes that committed the metadata log of a Kafka, while their leader was killed, and that stopped."""
    values = [value for batch in golden_values(load()) for value in batch]
    half = len(values) // 2
    with running(tmp_path_factory.mktemp("left"), log="metadata") as nodes:
        nodes.append(*values[:half])
        before = nodes.wait_caught_up()
        nodes.kill(before.leader_id)
        nodes.start(before.leader_id)
        nodes.wait_epoch(before.epoch)
        nodes.append(*values[half:])
        nodes.wait_caught_up()
        nodes.stop()
        return nodes


def topic_names() -> list[str]:
    """Return the names of the topics that remain when all of that log is applied."""
    names: dict[Uuid, str] = {}
    for batch in golden_values(load()):
        for value in batch:
            match decode_metadata_record(value)[0]:
                case TopicRecord(name=name, topic_id=topic_id):
                    names[topic_id] = name
                case RemoveTopicRecord(topic_id=topic_id):
                    del names[topic_id]
    return sorted(names.values())


def shell_sees(kafka: Kafka, file: Path, words: tuple[str, ...], expected: list[str]) -> None:
    """kafka-metadata-shell answers as soon as the first batch of a file is applied, and may see no more than that; or
    it waits for ever for a batch that came before it looked. So it is asked more than once, about Kafka's own files
    too."""
    found: list[list[str]] = []
    while expected not in found:
        assert len(found) < SHELL_TRIES, (file, found)
        found.append((printed(kafka, file, *words) or "nothing").split())


@pytest.mark.long
def test_kafka_metadata_shell_sees_in_our_segments_what_it_sees_in_kafkas(kafka: Kafka, left: Nodes) -> None:
    expected = topic_names()
    assert len(expected) > 50
    for directory in (CLUSTER / "c1", *(left.data(node_id) for node_id in left.ids)):
        segment = directory / LOG_DIRECTORY / "00000000000000000000.log"
        shell_sees(kafka, segment, ("ls", "/image/topics/byName"), expected)


def test_kafka_metadata_shell_reads_our_checkpoint(kafka: Kafka, left: Nodes) -> None:
    """The one with records: in the other, which holds voters only, it finds nothing to show, nor in Kafka's."""
    version = ("cat", "/image/features/metadataVersion")
    shell_sees(kafka, left.data(1) / "bootstrap.checkpoint", version, ["Optional[4.3-IV0]"])


def test_kafka_storage_takes_the_directories_of_nodes_that_ran(kafka: Kafka, left: Nodes, tmp_path: Path) -> None:
    server = tmp_path / "server.properties"
    for node_id in left.ids:
        server.write_text(
            f"process.roles=controller\nnode.id={node_id}\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=CONTROLLER://{left.address(node_id)}\n"
            f"controller.quorum.bootstrap.servers={left.bootstrap}\nlog.dirs={left.data(node_id)}\n"
        )
        printed = kafka.storage("info", "-c", server)
        assert f"Found log directory:\n  {left.data(node_id)}" in printed
        for line in (f"cluster.id={CLUSTER_ID}", f"node.id={node_id}", f"directory.id={DIRECTORY_IDS[node_id]}"):
            assert line in printed
        assert "Found problem" not in printed
