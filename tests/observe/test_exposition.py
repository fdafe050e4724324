"""The page that Prometheus reads: its format, its names, and our own reading of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.node.causes import CAUSES
from fastquorum.node.lane.tallies import Moved
from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.catalogue import METRICS
from fastquorum.observe.exposition import page, parse
from fastquorum.raft.tally import Elections, EndedElection
from fastquorum.types import TOPIC_NAME
from tests.observe.builders import LEADER, STAGES, Stages, Strict, Times, node, strictly, view

RAFT = "kafka_server_raft_metrics_"


def written(metrics: NodeMetrics = LEADER, before: NodeMetrics | None = None, added: Stages = STAGES) -> Strict:
    return strictly(page(view(metrics, before, added=added)))


def test_a_leader_tells_everything_there_is() -> None:
    kinds = written().kinds
    # The parser takes a counter's `_total` off its family's name.
    expected = {each.name.removesuffix("_total") if each.kind == "counter" else each.name for each in METRICS}
    assert expected - kinds.keys() == {"fastquorum_leader_contact_seconds"}
    assert kinds.keys() - expected == {"fastquorum_up"}


def test_kafka_s_raft_group() -> None:
    page = written()
    assert page.value(RAFT + "current_state", current_state="leader") == 1
    assert page.value(RAFT + "current_state", current_state="follower") == 0
    assert page.value(RAFT + "current_leader") == 1
    assert page.value(RAFT + "current_vote") == 1
    assert page.value(RAFT + "current_vote_directory_id", current_vote_directory_id=LEADER.directory_id) == 1
    assert page.value(RAFT + "current_epoch") == 7
    assert page.value(RAFT + "high_watermark") == 90
    assert page.value(RAFT + "log_end_offset") == 100
    assert page.value(RAFT + "log_end_epoch") == 7
    assert page.value(RAFT + "number_unknown_voter_connections") == 0
    assert page.value(RAFT + "number_of_voters") == 3
    assert page.value(RAFT + "number_of_observers") == 1
    assert page.value(RAFT + "uncommitted_voter_change") == 0


def test_kafka_s_log_group() -> None:
    page = written()
    of_partition = {"topic": TOPIC_NAME, "partition": "0"}
    assert page.value("kafka_log_log_logstartoffset", **of_partition) == 0
    assert page.value("kafka_log_log_logendoffset", **of_partition) == 100
    assert page.value("kafka_log_log_size", **of_partition) == 12_345
    assert page.value("kafka_log_log_numlogsegments", **of_partition) == 2
    flush = "kafka_log_logflushstats_logflushrateandtimems"
    assert page.value(flush + "_count") == 3
    assert page.value(flush + "_sum") == pytest.approx(0.6)
    assert 0.15 <= page.value(flush, quantile="0.5") <= 0.2
    unmeasured = written(added={})
    assert unmeasured.value(flush + "_count") == LEADER.sync_count
    assert not unmeasured.has(flush)


def test_kafka_s_controller_group() -> None:
    page = written()
    controller = "kafka_controller_kafkacontroller_"
    values = {
        each.name.removeprefix(controller): each.value for each in page.samples if each.name.startswith(controller)
    }
    assert values == {
        "activecontrollercount": 1,
        "activebrokercount": 3,
        "fencedbrokercount": 2,
        "controlledshutdownbrokercount": 1,
        "globaltopiccount": 10,
        "globalpartitioncount": 300,
        "offlinepartitionscount": 4,
        "preferredreplicaimbalancecount": 30,
        "lastappliedrecordoffset": 99,
        "lastcommittedrecordoffset": 89,
        "metadataerrorcount": 5,
        "timedoutbrokerheartbeatcount": 6,
        "newactivecontrollerscount": 7,
    }
    assert page.value("kafka_server_snapshotemitter_latestsnapshotgeneratedbytes") == 8_000
    assert page.value("kafka_server_snapshotemitter_latestsnapshotgeneratedagems") == 9_000


def test_a_node_without_a_controller_tells_nothing_of_one() -> None:
    names = {each.name for each in written(node(controller=None)).samples}
    assert not [name for name in names if name.startswith(("kafka_controller_", "kafka_server_snapshotemitter_"))]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"role": "follower"}, "follower"),
        ({"role": "follower", "is_voter": False}, "observer"),
        ({"role": "unattached", "voted_id": -1}, "unattached"),
        ({"role": "unattached"}, "unattached-voted"),
        ({"role": "prospective", "voted_id": -1}, "prospective"),
        ({"role": "prospective"}, "prospective-voted"),
        ({"role": "candidate"}, "candidate"),
        ({"role": "resigned"}, "resigned"),
    ],
)
def test_a_state_has_kafka_s_name_and_excludes_the_others(changes: dict[str, object], state: str) -> None:
    page = written(node(**changes))
    states = {each.labels["current_state"]: each.value for each in page.samples if each.name.endswith("current_state")}
    assert [name for name, value in states.items() if value] == [state]


def test_every_cause_of_a_change_of_leadership_is_told_though_it_began_none() -> None:
    samples = [each for each in written(LEADER).samples if each.name == "fastquorum_leadership_changes_total"]
    assert [each.labels["cause"] for each in samples] == list(CAUSES)
    assert {each.labels["cause"]: each.value for each in samples if each.value} == {"fetch_timeout": 2, "votes_won": 3}


def test_what_only_a_leader_knows_others_do_not_tell() -> None:
    page = written(node(role="follower", replicas=(), since_leader_contact_us=250_000, high_watermark=-1))
    for name in ("number_of_observers", "uncommitted_voter_change"):
        assert not page.has(RAFT + name)
    assert not page.has("fastquorum_replica_lag_records")
    assert page.value("fastquorum_leader_contact_seconds") == 0.25
    assert page.value(RAFT + "high_watermark") == -1
    assert not page.has("fastquorum_committed_records_total")  # it would look as if the counter began anew


def test_rates_are_those_of_the_last_half_minute() -> None:
    elections = Elections(2, 1, 5, 2, 500_000, (EndedElection(1_000_000, 400_000), EndedElection(40_000_000, 100_000)))
    now = node(
        at_us=41_000_000,
        moved=Moved(60 + 400, 40 + 80),
        replica_cpu_us=12_000 + 10_000_000,
        elections=elections,
    )
    added = {"append_told": Times((*STAGES["append_told"].times, 4_000.0, 6_000.0))}
    page = written(now, LEADER, added)
    assert page.value(RAFT + "append_records_rate") == 10
    assert page.value(RAFT + "fetch_records_rate") == 2
    assert page.value(RAFT + "poll_idle_ratio_avg") == pytest.approx(0.75)
    assert page.value(RAFT + "commit_latency_avg") == pytest.approx(5)
    assert page.value(RAFT + "commit_latency_max") == 7  # the bound above 6 ms
    assert page.value(RAFT + "election_latency_avg") == 100
    assert page.value(RAFT + "election_latency_max") == 100


def test_where_nothing_happened_latencies_are_no_numbers() -> None:
    page = written(node(at_us=9_000_000), LEADER)
    for name in ("commit_latency_avg", "commit_latency_max", "election_latency_avg", "election_latency_max"):
        assert math.isnan(page.value(RAFT + name))
    assert page.value(RAFT + "append_records_rate") == 0


def test_stages_are_histograms_in_seconds() -> None:
    page = written()
    name = "fastquorum_commit_stage_seconds"
    assert page.value(f"{name}_bucket", stage="append_told", le="0.001") == 1
    assert page.value(f"{name}_bucket", stage="append_told", le="10") == 2
    assert page.value(f"{name}_bucket", stage="append_told", le="+Inf") == 3
    assert page.value(f"{name}_sum", stage="append_told") == pytest.approx(22.001)


def test_refusals_and_replicas_are_labelled() -> None:
    page = written()
    assert page.value("fastquorum_appends_refused_total", reason="overloaded") == 3
    assert page.value("fastquorum_appends_refused_total", reason="not_leader") == 1
    assert page.value("fastquorum_replica_lag_records", replica="2", voter="true") == 2
    assert page.value("fastquorum_replica_lag_records", replica="9", voter="false") == 50
    assert page.value("fastquorum_replica_caught_up_seconds", replica="2") == pytest.approx(0.0009)
    assert len([each for each in page.samples if each.name == "fastquorum_replica_caught_up_seconds"]) == 1


def test_a_replica_that_does_not_answer_is_down() -> None:
    silent = strictly(page(None))
    assert [(each.name, each.value) for each in silent.samples] == [("fastquorum_up", 0)]
    assert written().value("fastquorum_up") == 1


def test_a_page_is_read_back_as_it_was_written() -> None:
    text = page(view())
    ours = parse(text)
    for theirs in strictly(text).samples:
        found = [each.value for each in ours.all(theirs.name) if each.labels == theirs.labels]
        assert found == [theirs.value] or (math.isnan(found[0]) and math.isnan(theirs.value))
    stage = ours.stage("fastquorum_commit_stage_seconds", "append_told")
    original = next(each for each in view().stages if each.name == "append_told")
    assert stage.buckets == original.buckets
    assert (stage.count, stage.sum_us) == (original.count, pytest.approx(original.sum_us))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=20))
def test_any_word_may_be_a_label(word: str) -> None:
    text = page(view(node(cluster_id=word)))
    assert parse(text).all("fastquorum_info")[0].labels["cluster_id"] == word
    assert strictly(text).value("fastquorum_info", cluster_id=word) == 1


@pytest.mark.parametrize("line", ["a b c", "{} 1", "name", "name{x=1", "name x", '{, ="x" \\=\\'])
def test_a_page_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a page of metrics"):
        parse(f"good 1\n{line}\n")
