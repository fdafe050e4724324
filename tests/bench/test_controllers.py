"""`bench controllers`, small: ours beside Kafka's controllers and ZooKeeper where Java is, alone where it is not.

What a figure counts it looks up again in the committed metadata, so that a figure which succeeds has counted right.
Nothing is timed.
"""

import asyncio
import json
import shutil
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bench.compare.workload import BadAnswer
from bench.controllers import brokers, creating, deaths, isr_changes
from bench.controllers.brokers import Brokers
from bench.controllers.command import FIGURES, main
from bench.controllers.creating import Creations
from bench.controllers.loop import Load, Work, closed_loop
from bench.controllers.quorums import KAFKA, KAFKA_AT_ONCE, OURS, Quorum, servers
from bench.controllers.rounds import Setting, rows, take_turns
from bench.controllers.wire import Connection, Request
from bench.controllers.zookeeper import Znodes, count_znodes
from bench.figures.figure import Goal, Measured
from fastquorum.types import Endpoint
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.topics import CreateTopicsResponse

needs_java = pytest.mark.skipif(
    shutil.which("java") is None or shutil.which("mvn") is None,
    reason="Kafka's controllers and ZooKeeper need Java and maven",
)
KAFKAS = {KAFKA, KAFKA_AT_ONCE}

Result = dict[str, Any]


def run(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> Result:
    """The figure's JSON, nothing lost on the way; nothing is left behind."""
    assert main(["--quick", "--only", name, "--format", "json", "--directory", str(directory)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["figures"]
    assert (found["name"], found["failed"]) == (name, "")
    assert not [note for note in found["notes"] if note.startswith("lost")]
    assert found["rows"]
    assert not list(directory.iterdir())
    return found


def over(found: Result, what: str) -> set[str]:
    """Whom the rows are over that tell so."""
    rows = [row for row in found["rows"] if what in row["what"]]
    assert all(row["value"]["median"] > 0 for row in rows)
    return {row["over"] for row in rows}


# --- beside Kafka -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
@needs_java
def test_topics_are_created_beside_kafka_and_zookeeper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("creations", tmp_path, capsys)
    assert over(found, "one a request, 16 in flight") == over(found, "50 a request") == {*KAFKAS, "ZooKeeper"}
    for turns in found["details"].values():
        for loads in turns:
            assert loads["one a request"]["done"] == loads["one a request"]["requests"]
            assert loads["many a request"]["done"] == 50 * loads["many a request"]["requests"]
            assert all(len(load["servers_cpu_us"]) == 3 for load in loads.values())


@pytest.mark.slow
@pytest.mark.long
@needs_java
def test_isrs_change_beside_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("isr", tmp_path, capsys)
    assert over(found, "one a request") == over(found, "100 a request") == KAFKAS
    assert {row["goal"] for row in found["rows"]} == {">= 3"}


@pytest.mark.slow
@pytest.mark.long
@needs_java
def test_heartbeats_come_in_beside_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("heartbeats", tmp_path, capsys)
    assert over(found, "processor time of one") == {"", KAFKA}
    assert over(found, "answered, p99") == {KAFKA}
    assert found["how"]["per_s"] == 500
    assert all(each["count"] == 250 for by_round in found["details"].values() for each in by_round)


@pytest.mark.slow
@pytest.mark.long
@needs_java
def test_brokers_die_beside_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("death", tmp_path, capsys)
    assert over(found, "asks to be fenced, until observed") == over(found, "is silent") == KAFKAS
    assert (found["how"]["partitions"], found["how"]["leaders"]) == (600, 100)


@pytest.mark.slow
@pytest.mark.long
@needs_java
def test_the_active_controller_is_killed_beside_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("failover", tmp_path, capsys)
    assert over(found, "a round's median") == {KAFKA}
    assert {name: len(kills) for name, (kills,) in found["details"].items()} == {OURS: 1, KAFKA: 1}


@pytest.mark.slow
@pytest.mark.long
@needs_java
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_whatever_is_acknowledged_was_synced_on_a_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("syncs", tmp_path, capsys)
    assert found["details"].keys() == {OURS, *KAFKAS}
    assert all(row["met"] for row in found["rows"])


# --- alone ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A machine without Java, and with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("PATH", "")


@pytest.mark.long
@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", ["creations", "isr", "death", "failover"])
def test_without_java_ours_is_measured_alone_and_a_line_says_who_is_not(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(name, tmp_path, capsys)
    assert {row["over"] for row in found["rows"]} == {""}
    assert all("apt install default-jdk-headless" in note for note in found["notes"])
    missing = {"creations": {*KAFKAS, "ZooKeeper"}, "failover": {KAFKA}}.get(name, KAFKAS)
    assert {note.removeprefix("left out: ").partition(": ")[0] for note in found["notes"]} == missing


async def refused(work: Work, connection: Connection) -> None:
    """The loop ends with what the server says."""
    await closed_loop([connection], work, 0.3, dict)


def at_ours(directory: Path, scenario: Callable[[Connection, list[brokers.Broker]], Awaitable[None]]) -> None:
    """A quorum of ours with three brokers."""
    (ours,) = (each for each in servers("1g") if each.name == OURS)

    async def play(quorum: Quorum) -> None:
        endpoint = quorum.endpoints[quorum.active()]
        async with await Brokers.join(endpoint, brokers.ids(3), 2.0) as joined:
            connection = await Connection.open(endpoint)
            await scenario(connection, list(joined.all.values()))
            connection.close()

    with Quorum(ours, ours.prepare(), directory, {}) as quorum:
        asyncio.run(play(quorum))


def test_a_topic_that_is_refused_ends_the_slice(tmp_path: Path) -> None:
    async def scenario(connection: Connection, members: list[brokers.Broker]) -> None:
        there = creating.request([creating.placed("topic-3", 1)])
        creating.created(await connection.ask(there, creating.VERSION, CreateTopicsResponse))
        with pytest.raises(BadAnswer, match="topic-3: TOPIC_ALREADY_EXISTS"):
            await refused(Creations("topic", 1), connection)

    at_ours(tmp_path, scenario)


@pytest.mark.long
def test_what_was_encoded_ahead_is_sent_in_its_turn_and_all_answers_are_checked(tmp_path: Path) -> None:
    async def scenario(connection: Connection, members: list[brokers.Broker]) -> None:
        work = Creations("topic", 3)
        first = await closed_loop([connection], work, 0.1, dict)
        more = await closed_loop([connection], work, 0.1, dict, first)
        assert work.created == first.done + more.done == 3 * (first.requests + more.requests)
        there = creating.request([creating.placed(f"topic-{number}", 1) for number in range(work.created)])
        answer = await connection.ask(there, creating.VERSION, CreateTopicsResponse)
        assert {each.error_code for each in answer.topics} == {ErrorCode.TOPIC_ALREADY_EXISTS}
        changes = await isr_changes.leaders(connection, "led", members, 1, 2)
        for last in (None, first, first):
            await closed_loop([connection], changes, 0.1, dict, last)

    at_ours(tmp_path, scenario)


@pytest.mark.long
def test_an_isr_change_of_a_stale_epoch_ends_the_slice(tmp_path: Path) -> None:
    async def scenario(connection: Connection, members: list[brokers.Broker]) -> None:
        changes = await isr_changes.leaders(connection, "topic", members, 1, 2)
        changes.topics[0].encoded = 7
        with pytest.raises(BadAnswer, match="partition 0: "):
            await refused(changes, connection)

    at_ours(tmp_path, scenario)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_a_ratio_is_taken_within_a_round_and_only_where_both_were_measured() -> None:
    taken = {OURS: {0: 10.0, 1: 30.0, 2: 50.0}, KAFKA: {0: 5.0, 2: 10.0}, "ZooKeeper": {}}
    (row,) = rows("topics", "topics/s", taken, lambda value: value, Goal(at_least=3))
    assert (row.over, row.yardstick, row.ratio) == (KAFKA, (7.5, 5.0, 10.0), (3.5, 2.0, 5.0))
    assert row.met is True
    (alone,) = rows("topics", "topics/s", {OURS: taken[OURS]}, lambda value: value, Goal(at_least=3))
    assert (alone.value.median, alone.goal, alone.ratio) == (30.0, None, None)
    assert rows("topics", "topics/s", {OURS: {}, KAFKA: {0: 5.0}}, lambda value: value) == []


def test_everybody_takes_turns_in_changing_order_and_who_fails_loses_the_round(tmp_path: Path) -> None:
    order: list[str] = []

    def turn(name: str) -> Callable[[Path], int]:
        def take(directory: Path) -> int:
            assert not list(directory.iterdir())
            order.append(name)
            if len(order) == 2:
                raise BadAnswer("no")
            return len(order)

        return take

    measured = Measured()
    setting = Setting(str(tmp_path), rounds=3, say=lambda line: None)
    taken = take_turns(setting, measured, tmp_path, {OURS: turn("ours"), KAFKA: turn("Kafka")})
    assert order == ["ours", "Kafka", "Kafka", "ours", "ours", "Kafka"]
    assert taken == {OURS: {0: 1, 1: 4, 2: 5}, KAFKA: {1: 3, 2: 6}}
    assert measured.notes == ["lost: round 1, Kafka: no"]


@pytest.mark.parametrize(("partitions", "members", "leaders"), [(20_000, 20, 2_000), (600, 4, 100), (5_000, 7, 2_000)])
def test_the_brokers_that_die_lead_what_they_should_and_replicas_are_three(
    partitions: int, members: int, leaders: int
) -> None:
    setting = Setting("", partitions=partitions, brokers=members, leaders=leaders)
    replicas = list(deaths.replicas(setting, brokers.ids(members)))
    assert len(replicas) == partitions
    assert all(len(set(each)) == 3 for each in replicas)
    led = Counter(each[0] for each in replicas)
    assert [led[each] for each in brokers.ids(2)] == [leaders, leaders]
    assert len(led) == members


def test_a_rate_is_what_was_done_over_the_time_until_the_last_answer() -> None:
    assert Load(500, 5, 2.0, 1.0, 1.0, 1.0, 1.0, {}).per_s == 250


def test_zookeeper_tells_how_many_znodes_there_are() -> None:
    assert count_znodes("zk_version\t3.9.5\nzk_znode_count\t17\n") == 17
    with pytest.raises(BadAnswer, match="how many znodes"):
        count_znodes("This ZooKeeper instance is not currently serving requests\n")


def test_every_znode_of_a_transaction_is_looked_at() -> None:
    async def request() -> Request:
        return Znodes("topic", 2).encode(Connection(Endpoint("", "", 0)), 0)

    def answer(*paths: str, kind: int = 1, end: int = -1) -> bytes:
        created = b"".join(
            struct.pack(">i?ii", kind, False, 0, len(path)) + path.encode()
            for path in ("/topics/" + each for each in paths)
        )
        return struct.pack(">iqi", 2, 7, 0) + created + struct.pack(">i?i", end, True, -1)

    whole = ("topic-0", "topic-0/0", "topic-1", "topic-1/0")
    check = asyncio.run(request()).check
    assert check(answer(*whole)) == 2
    for wrong in (
        answer(*whole[:2], "topic-2", whole[3]),
        answer(*whole, kind=-1),
        answer(*whole, "more"),
        answer(*whole, end=0),
    ):
        with pytest.raises(BadAnswer, match="ZooKeeper"):
            check(wrong)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--brokers", "3"], "--brokers 4 or more"),
        (["--partitions", "3999"], "--partitions 4000 or more"),
        (["--only", "nobody"], "there are: syncs, creations, isr, heartbeats, death, failover"),
        (["--directory", "/nowhere"], "cannot be|can be"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_started(words: list[str], what: str) -> None:
    with pytest.raises(SystemExit, match=what):
        main(words)


def test_the_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [each.name for each in FIGURES]
