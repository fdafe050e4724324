"""topic create, list, describe, delete and reassign, as those who run a cluster meet them."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastquorum.cli.topic.reassignment_plan import Planned, parse_plan
from tests.cli.conftest import free_port
from tests.cli.controllers import Controller, Run, controller


def described(fastquorum: Run, cluster: Controller, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fastquorum("topic", "describe", name, *cluster.at, "--format", "json").out)
    return found


def plan_file(root: Path, *partitions: tuple[str, int, list[int]]) -> Path:
    path = root / "plan.json"
    listed = [{"topic": topic, "partition": number, "replicas": nodes} for topic, number, nodes in partitions]
    path.write_text(json.dumps({"version": 1, "partitions": listed}))
    return path


def test_a_topic_is_created_described_and_deleted(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12, 13)
        ran = fastquorum(
            "topic", "create", "t", "--partitions", 4, "--replication-factor", 3, "--config", "retention.ms=60000",
            "--config", "min.insync.replicas=2", *cluster.at,
        )  # fmt: skip
        assert (ran.code, ran.out, ran.err) == (0, "Created topic t.\n", "")
        topic = described(fastquorum, cluster, "t")
        assert (topic["name"], topic["configs"]) == ("t", {"min.insync.replicas": "2", "retention.ms": "60000"})
        assert [sorted(each["replicas"]) for each in topic["partitions"].values()] == [[11, 12, 13]] * 4
        first, configs, header, *rows = fastquorum("topic", "describe", "t", *cluster.at).out.splitlines()
        assert first == f"Topic t, id {topic['id']}"
        assert configs == "Configs: min.insync.replicas=2,retention.ms=60000"
        assert header.split()[:5] == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR"]
        assert [row.split()[1] for row in rows] == [str(each["leader"]) for each in topic["partitions"].values()]
        assert fastquorum("topic", "delete", "t", *cluster.at).out == "Deleted topic t.\n"
        assert fastquorum("topic", "list", *cluster.at, "--format", "json").out == ""


def test_what_is_not_said_is_the_controllers_choice(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12)
        shown = json.loads(fastquorum("topic", "create", "t", *cluster.at, "--format", "json").out)
        topic = described(fastquorum, cluster, "t")
        assert shown == {"name": "t", "id": topic["id"], "partitionCount": 1, "replicationFactor": 1, "configs": {}}
        gone = json.loads(fastquorum("topic", "delete", "t", *cluster.at, "--format", "json").out)
        assert gone == {"name": "t", "id": topic["id"], "deleted": True}


def test_a_topic_without_numbers_has_the_controllers(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path, num_partitions=6, default_replication_factor=2) as cluster:
        cluster.join(11, 12, 13)
        created = json.loads(fastquorum("topic", "create", "t", *cluster.at, "--format", "json").out)
        assert (created["partitionCount"], created["replicationFactor"]) == (6, 2)


def test_partitions_go_where_they_are_put(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12)
        assert fastquorum("topic", "create", "t", "--assignment", "11:12,12:11,12", *cluster.at).code == 2
        assert fastquorum("topic", "create", "t", "--assignment", "11:12,12:11", *cluster.at).code == 0
        partitions = described(fastquorum, cluster, "t")["partitions"]
        assert [each["replicas"] for each in partitions.values()] == [[11, 12], [12, 11]]


def test_topics_are_listed(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        epochs = cluster.join(11, 12)
        fastquorum("topic", "create", "b", "--assignment", "11:12,12:11", *cluster.at)
        fastquorum("topic", "create", "a", "--assignment", "12", *cluster.at)
        assert cluster.beat(12, epochs[12], want_fence=True).is_fenced
        rows = [line.split() for line in fastquorum("topic", "list", *cluster.at).out.splitlines()]
        assert rows[0] == ["TOPIC", "ID", "PARTITIONS", "LEADERLESS", "UNDER_REPLICATED"]
        assert [(row[0], *row[2:]) for row in rows[1:]] == [("a", "1", "1", "1"), ("b", "2", "0", "2")], (
            "broker 12 is eligible to lead a, and not in its ISR"
        )
        shown = [
            json.loads(line) for line in fastquorum("topic", "list", *cluster.at, "--format", "json").out.splitlines()
        ]
        assert [(each["name"], each["leaderlessCount"], each["underReplicatedCount"]) for each in shown] == [
            ("a", 1, 1),
            ("b", 0, 2),
        ]
        every = fastquorum("topic", "describe", *cluster.at).out
        assert [line.split(",")[0] for line in every.splitlines() if line.startswith("Topic")] == ["Topic a", "Topic b"]
        objects = fastquorum("topic", "describe", *cluster.at, "--format", "json").out.splitlines()
        assert [json.loads(line)["name"] for line in objects] == ["a", "b"]


# --- reassignments ----------------------------------------------------------------------------------------------------


def test_replicas_begin_to_move_and_are_called_back(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12, 13)
        fastquorum("topic", "create", "t", "--assignment", "11:12,12:11", *cluster.at)
        plan = plan_file(tmp_path, ("t", 1, [12, 11]), ("t", 0, [13, 12]))
        begun = fastquorum("topic", "reassign", plan, *cluster.at)
        assert (begun.code, begun.err) == (0, "")
        assert [line.split() for line in begun.out.splitlines()] == [
            ["TOPIC", "PARTITION", "FROM", "TO", "RESULT"],
            ["t", "0", "11,12", "13,12", "begun"],
            ["t", "1", "12,11", "12,11", "begun"],
        ]
        status = fastquorum("topic", "reassign", "--status", plan, *cluster.at)
        assert status.code == 3
        assert [line.split() for line in status.out.splitlines()[1:]] == [
            ["t", "0", "in_progress", "13,12,11", "13", "11", "13,12"],
            ["t", "1", "completed", "12,11", "-", "-", "12,11"],
        ]
        everything = fastquorum("topic", "reassign", "--status", *cluster.at, "--format", "json")
        assert everything.code == 3
        assert [json.loads(line) for line in everything.out.splitlines()] == [
            {
                "topic": "t",
                "partition": 0,
                "state": "in progress",
                "replicas": [13, 12, 11],
                "addingReplicas": [13],
                "removingReplicas": [11],
                "planned": [],
            }
        ]
        cancelled = fastquorum("topic", "reassign", "--cancel", plan, *cluster.at, "--format", "json")
        assert cancelled.code == 1
        answers = [json.loads(line) for line in cancelled.out.splitlines()]
        assert [(each["partition"], each["to"], each["error"]) for each in answers] == [
            (0, None, None),
            (1, None, "NO_REASSIGNMENT_IN_PROGRESS"),
        ]
        assert cancelled.err == "the controller refused 1 of 2 partitions\n"
        assert fastquorum("topic", "reassign", "--status", plan, *cluster.at).code == 1
        assert fastquorum("topic", "reassign", "--status", *cluster.at).code == 0
        assert described(fastquorum, cluster, "t")["partitions"]["0"]["replicas"] == [12, 11]


def test_what_is_refused_stands_beside_what_is_begun(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12)
        fastquorum("topic", "create", "t", "--assignment", "11", *cluster.at)
        plan = plan_file(tmp_path, ("t", 0, [12]), ("t", 9, [12]), ("gone", 0, [12]))
        ran = fastquorum("topic", "reassign", plan, *cluster.at)
        assert ran.code == 1
        assert [line.split()[:4] for line in ran.out.splitlines()[1:]] == [
            ["gone", "0", "-", "12"],
            ["t", "0", "11", "12"],
            ["t", "9", "-", "12"],
        ]
        assert ran.out.count("UNKNOWN_TOPIC_OR_PARTITION: ") == 2
        assert ran.err == "the controller refused 2 of 3 partitions\n"
        status = fastquorum("topic", "reassign", "--status", plan, *cluster.at)
        assert status.code == 1
        assert [line.split()[2] for line in status.out.splitlines()[1:]] == [
            "does_not_exist",
            "in_progress",
            "does_not_exist",
        ]


def test_a_plan_as_kafkas_tool_makes_it() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"foo","partition":1,"replicas":[2,3],"log_dirs":["any","any"]},'
        '{"topic":"foo","partition":0,"replicas":[1,2]}]}'
    )
    assert parse_plan(text) == [Planned("foo", 0, (1, 2)), Planned("foo", 1, (2, 3))]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Expecting value"),
        ("[1]", "it is not a JSON object"),
        ("[" * 100_000, "recursion"),
        ("{}", "it lists no partitions"),
        ('{"partitions":[]}', "it lists no partitions"),
        ('{"version":2,"partitions":[]}', "version 2 is not 1"),
        ('{"partitions":[7]}', "partitions[0] is not a JSON object"),
        ('{"partitions":[{"partition":0,"replicas":[1]}]}', "partitions[0] has no topic"),
        ('{"partitions":[{"topic":"t","replicas":[1]}]}', "partitions[0], of t, has no partition number"),
        ('{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}', "has no partition number"),
        ('{"partitions":[{"topic":"t","partition":true,"replicas":[1]}]}', "has no partition number"),
        ('{"partitions":[{"topic":"t","partition":0}]}', "t-0 has no list of replicas"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "t-0 has no list of replicas"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}', "t-0 has no list of replicas"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[2147483648]}]}', "t-0 has no list of replicas"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}', "t-0 has a replica twice"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":[]}]}', "one of log_dirs for each"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/d"]}]}', "names the directory '/d'"),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}',
            "t-0 is listed twice",
        ),
    ],
)
def test_bad_plans_are_named_before_anybody_is_asked(
    fastquorum: Run, tmp_path: Path, text: str, complaint: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    ran = fastquorum("topic", "reassign", plan, "--bootstrap", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert f"{plan} is not a reassignment plan: " in ran.err
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("create", "t"), "TOPIC_ALREADY_EXISTS: Topic 't' already exists."),
        (("create", "a b"), "INVALID_TOPIC_EXCEPTION: "),
        (("create", "u", "--replication-factor", 3), "INVALID_REPLICATION_FACTOR: "),
        (("create", "u", "--assignment", "99"), "INVALID_REPLICA_ASSIGNMENT: "),
        (("create", "u", "--config", "no.such=1"), "INVALID_CONFIG: "),
        (("create", "u", "--config", "retention.ms"), "--config: 'retention.ms' is not KEY=VALUE"),
        (("create", "u", "--config", "a=1", "--config", "a=2"), "--config: a is given twice"),
        (("create", "u", "--partitions", 0), "'0' is not a whole number from 1"),
        (("create", "u", "--partitions", 2**31), "--partitions: 2147483648 is above 2147483647"),
        (("create", "u", "--replication-factor", 2**15), "--replication-factor: 32768 is above 32767"),
        (("create", "u", "--assignment", "1:x"), "--assignment: '1:x', of partition 0, is not ID:ID:..."),
        (("create", "u", "--assignment", "1,,2"), "--assignment: '', of partition 1, is not ID:ID:..."),
        (("create", "u", "--assignment", "1", "--partitions", 1), "leave the numbers out"),
        (("create",), "the following arguments are required: NAME"),
        (("delete", "nope"), "UNKNOWN_TOPIC_OR_PARTITION: "),
        (("describe", "nope"), "there is no topic 'nope'; `fastquorum topic list` shows what there is"),
        (("reassign",), "a PLAN file is missing"),
        (("reassign", "--cancel"), "a PLAN file is missing"),
        (("reassign", "/nowhere/plan.json"), "/nowhere/plan.json cannot be read: No such file or directory"),
        (("reassign", "--cancel", "--status"), "not allowed with argument --cancel"),
    ],
)
def test_what_cannot_be_changes_nothing(
    fastquorum: Run, tmp_path: Path, words: tuple[object, ...], complaint: str
) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11)
        fastquorum("topic", "create", "t", *cluster.at)
        end = cluster.end_offset
        ran = fastquorum("topic", *words, *cluster.at)
        assert (ran.code, ran.out) == (2, "")
        assert complaint in ran.err
        assert cluster.end_offset == end


# --- what cannot be asked for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("broker", "unregister", 2**31), "'2147483648' is not a whole number from 0 to 2147483647"),
        (("broker", "fence", "１"), "is not a whole number from 0"),
        (("topic", "create", "t" * 40_000), "has 40000 bytes, above 32767"),
        (("topic", "delete", "t" * 40_000), "has 40000 bytes, above 32767"),
        (("topic", "create", "\udcff"), "is not UTF-8"),
        (("topic", "delete", "\udcff"), "is not UTF-8"),
        (("topic", "create", "t", "--config", "retention.ms=\udcff"), "is not UTF-8"),
        (("topic", "create", "t", "--partitions", "５"), "is not a whole number from 1"),
        (("topic", "create", "t", "--partitions", "9" * 5000), "is not a whole number from 1"),
        (("topic", "create", "t", "--assignment", "１:2"), "is not ID:ID:..."),
    ],
)  # fmt: skip
def test_what_no_request_can_say_is_refused_before_one_is_sent(
    fastquorum: Run, words: tuple[object, ...], complaint: str
) -> None:
    ran = fastquorum(*words, "--bootstrap", f"127.0.0.1:{free_port()}", "--timeout", 0.2)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_a_topic_that_is_not_there_is_named(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        ran = fastquorum("topic", "delete", "nosuch", *cluster.at)
    assert ran.code == 2
    assert "the controller refuses: UNKNOWN_TOPIC_OR_PARTITION: topic nosuch" in ran.err
    assert ran.err.endswith("; `fastquorum topic list` shows what there is\n")
