"""Three real nodes that serve their metrics: what they tell agrees with the quorum's own answers."""

from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.errors import NotLeader, RecordTooLarge
from fastquorum.observe.catalogue import dashboard
from fastquorum.sync import Quorum
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from tests.api.nodes import QUICK, WAIT_S, caught_up, trio
from tests.cli.conftest import wait_until
from tests.cli.controllers import ControllerClient
from tests.observe.builders import Strict, scrape
from tests.observe.test_dashboard import metrics_queried

RAFT = "kafka_server_raft_metrics_"
STEADY = {"metrics": "127.0.0.1:0", "fetch_timeout_us": 3_000_000, "request_timeout_us": 3_000_000}
"""Settings with which a leader keeps leading while the machine is busy."""


def state_of(page: Strict) -> str:
    states = [
        each.labels["current_state"] for each in page.samples if each.name == RAFT + "current_state" and each.value
    ]
    assert len(states) == 1
    return states[0]


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_pages_agree_with_what_the_quorum_says_of_itself(tmp_path: Path, kernels: str) -> None:
    with trio(tmp_path, **STEADY, kernels=kernels) as nodes:
        leader = nodes.leader
        for number in range(20):
            leader.append([b"%d" % number] * 3, timeout=WAIT_S)
        end = leader.end_offset
        for node in nodes.nodes.values():
            caught_up(node, end)
        none_lags(leader)
        described = leader.describe()
        pages = {node_id: scrape(node.metrics_endpoint) for node_id, node in nodes.nodes.items()}
        for node_id, page in pages.items():
            is_leader = node_id == leader.node_id
            assert page.value("fastquorum_up") == 1
            assert page.value("fastquorum_ready") == 1
            assert state_of(page) == ("leader" if is_leader else "follower")
            assert page.value(RAFT + "current_leader") == described.leader_id
            assert page.value(RAFT + "current_epoch") == described.epoch
            assert page.value(RAFT + "log_end_epoch") == described.epoch
            assert page.value(RAFT + "high_watermark") == described.high_watermark == end
            assert page.value(RAFT + "log_end_offset") == end
            assert page.value("kafka_log_log_logendoffset") == end
            assert page.value("fastquorum_flushed_end_offset") == end
            assert page.value("fastquorum_committed_records_total") == end
            assert page.value(RAFT + "number_of_voters") == 3
            assert page.value("fastquorum_syncs_total") > 0
            assert page.value("kafka_log_log_size") > 20 * 61
            assert page.value("fastquorum_info", node_id=str(node_id), kernels=kernels) == 1
            assert page.value("fastquorum_appended_records_total") == (60 if is_leader else 0)
            assert page.has("fastquorum_leader_contact_seconds") is not is_leader
            assert page.has("fastquorum_replica_lag_records") is is_leader
        for peer in described.replicas:
            lag = pages[leader.node_id].value("fastquorum_replica_lag_records", replica=str(peer.node_id), voter="true")
            assert lag == peer.lag == 0
        fetched = [pages[node.node_id].value("fastquorum_fetched_records_total") for node in nodes.followers]
        assert all(60 <= each <= end for each in fetched)


def test_a_deposed_leader_keeps_what_it_counted(tmp_path: Path) -> None:
    with trio(tmp_path, **STEADY) as nodes:
        old = nodes.leader
        for number in range(10):
            nodes.append(b"%d" % number)
        nodes.have_lead(nodes.followers[0])
        nodes.append(b"after")
        caught_up(old, nodes.leader.end_offset)
        page = scrape(old.metrics_endpoint)
        assert page.value("fastquorum_appended_records_total") == 10
        assert page.value("fastquorum_fetched_records_total") >= 1
        assert page.value("fastquorum_elections_won_total") >= 1
        assert scrape(nodes.leader.metrics_endpoint).value("fastquorum_appended_records_total") == 1


def test_refused_appends_are_counted_by_reason(tmp_path: Path) -> None:
    with trio(tmp_path, **STEADY, batch_bytes_max=4096) as nodes:
        follower = nodes.followers[0]
        for _ in range(3):
            with pytest.raises(NotLeader):
                follower.append(b"x")
        with pytest.raises(RecordTooLarge):
            nodes.leader.append(b"x" * 5000)
        refused = "fastquorum_appends_refused_total"
        assert scrape(follower.metrics_endpoint).value(refused, reason="not_leader") == 3
        assert scrape(nodes.leader.metrics_endpoint).value(refused, reason="too_large") == 1


def test_appends_that_wait_are_seen_and_a_follower_that_is_gone_lags(tmp_path: Path) -> None:
    with trio(tmp_path, **STEADY) as nodes:
        leader, gone = nodes.leader, nodes.followers[0]
        nodes.append(b"all are here")
        caught_up(gone, leader.end_offset)
        none_lags(leader)
        nodes.crash(gone.node_id)
        for number in range(5):
            nodes.append(b"%d" % number)
        assert _lag(leader, gone.node_id) == 5
        nodes.open(gone.node_id)
        caught_up(nodes.nodes[gone.node_id], leader.end_offset)
        wait_until(lambda: _lag(leader, gone.node_id) == 0)


def none_lags(leader: Quorum) -> None:
    """A follower may know of a commit before its leader knows that it has the records."""
    wait_until(lambda: [each.lag for each in leader.describe().replicas] == [0, 0], WAIT_S)


def _lag(leader: Quorum, node_id: int) -> float:
    return scrape(leader.metrics_endpoint).value("fastquorum_replica_lag_records", replica=str(node_id), voter="true")


def test_every_metric_that_the_dashboard_asks_for_is_served(tmp_path: Path) -> None:
    queried, served = metrics_queried(dashboard()), set[str]()
    assert len(queried) > 20
    keeps = {"log": "metadata", "controller": True, "idle_us_max": 2_000, "snapshot_log_bytes": 1_000}
    with (
        trio(tmp_path, **STEADY) as nodes,
        sync.open(tmp_path / "c", node_id=1, **QUICK, metrics=STEADY["metrics"], **keeps) as controller,
    ):
        nodes.append(b"x")

        def all_were_seen() -> bool:
            """Some only a leader tells, and the lead may move on between two looks; some only a controller, once it has
            taken a snapshot."""
            for node in (*nodes.nodes.values(), controller):
                served.update(each.name for each in scrape(node.metrics_endpoint).samples)
            return queried <= served

        wait_until(all_were_seen, WAIT_S)


CONTROLLER = "kafka_controller_kafkacontroller_"


def test_controllers_tell_what_is_committed(tmp_path: Path) -> None:
    """C16: every node's page is as its committed image."""
    with trio(tmp_path, **STEADY, log="metadata", controller=True, idle_us_max=20_000) as nodes:
        client = ControllerClient(nodes.ports[nodes.leader.node_id - 1])
        client.join(1, 2)
        client.register(3)
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=5, replication_factor=2)
        made = client.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
        assert made.topics[0].error_code == 0
        wait_until(lambda: all(_controller_page(each)["globalpartitioncount"] == 5 for each in nodes.nodes.values()))
        for node in nodes.nodes.values():
            served = _controller_page(node)
            assert served["activecontrollercount"] == float(node is nodes.leader)
            assert (served["activebrokercount"], served["fencedbrokercount"]) == (2, 1)
            assert (served["globaltopiccount"], served["globalpartitioncount"]) == (1, 5)
            assert (served["offlinepartitionscount"], served["preferredreplicaimbalancecount"]) == (0, 0)
            assert served["lastappliedrecordoffset"] >= served["lastcommittedrecordoffset"] > 0
            assert (served["metadataerrorcount"], served["timedoutbrokerheartbeatcount"]) == (0, 0)
            assert served["newactivecontrollerscount"] >= 1


def _controller_page(node: Quorum) -> dict[str, float]:
    samples = scrape(node.metrics_endpoint).samples
    return {each.name.removeprefix(CONTROLLER): each.value for each in samples if each.name.startswith(CONTROLLER)}
