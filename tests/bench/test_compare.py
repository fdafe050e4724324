"""`bench compare`: its loops, its arithmetic, what it makes of others' answers and of what is not there.

Peers that need Go, Java or a download are not run here; ours and the C floor are, small. Nothing asserts how long
anything took, only what a latency must at least be.
"""

import asyncio
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from bench import floors
from bench.compare import charts, fetch, goals
from bench.compare.cluster import Cluster, ContenderFailed, Plan
from bench.compare.command import main
from bench.compare.contenders import CONTENDERS, OURS, Contender
from bench.compare.fetch import Missing
from bench.compare.floor import Floor, group_bytes, group_records
from bench.compare.goals import ASYNCIO, BARE, FLOOR, GOALS, KAFKA, ONE, OPEN, Goal, over, over_floor, spread, verdicts
from bench.compare.programs import loops
from bench.compare.run import Comparison, Lengths, Slice, Taken
from bench.compare.syncs import Counted, SyncCount, Trace, count_syncs
from bench.compare.tables import goal_table, report, sync_table, workload_tables
from bench.compare.workload import BATCHES, CLOSED, BadAnswer, Figures, Workload, parse

needs_compiler = pytest.mark.skipif(not floors.has_compiler(), reason="the yardsticks in C need a compiler")

ANSWERS = {
    "Go": '{"commits":645,"seconds":1.001,"errors":0,"not_sent":0,"percentiles_us":{"1":401.7,"50":1147.489,'
    '"99":7781.461,"99.5":7900.1,"100":8000}}',
    "Java": '{"commits": 645, "seconds": 1.500345, "errors": 2, "not_sent": 7, "percentiles_us": {"1.0": 300.1, '
    '"50.0": 2849.6, "99.0": 27993.8, "99.99": 28000.0}, "error": "lost"}',
    "Python": json.dumps(
        {
            "commits": 645,
            "seconds": 0.3,
            "errors": 0,
            "not_sent": 0,
            "percentiles_us": {"50": 1.5, "99": 2.5},
            "error": "",
        }
    ),
    "C": '{"commits": 645, "bytes_per_commit": 168, "commits_per_s": 1717.8, "p50_us": 481.0, "p99_us": 2759.7, '
    '"seconds": 0.291077, "cpu_us": 199475.0, "percentiles_us": {"50": 481.0, "99": 2759.7, "100": 6320.2}}',
}


def figures(
    p50: float = 100.0, commits: int = 1000, seconds: float = 1.0, not_sent: int = 0, cpu_us: float = 0
) -> Figures:
    return Figures(commits, seconds, {50.0: p50, 99.0: 2 * p50}, not_sent=not_sent, cpu_us=cpu_us)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ANSWERS)
def test_the_answer_of_a_program_in_any_language_is_understood(language: str) -> None:
    found = parse(language, ANSWERS[language])
    assert found.commits == 645
    assert found.seconds > 0
    assert list(found.percentiles_us) == sorted(found.percentiles_us)
    assert found.percentiles_us[99.0] > found.percentiles_us[50.0] > 0
    assert (found.errors, found.not_sent, found.error) == ((2, 7, "lost") if language == "Java" else (0, 0, ""))
    assert found.cpu_us == (199475.0 if language == "C" else 0.0)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "not a run's figures"),
        ("[]", "not a run's figures"),
        ('{"leads": true}', "commits|percentiles_us"),
        ('{"commits": 1, "seconds": 0, "percentiles_us": {"50": 1, "99": 2}}', "cannot be"),
        ('{"commits": -1, "seconds": 1, "percentiles_us": {"50": 1, "99": 2}}', "cannot be"),
        ('{"commits": 1, "seconds": 1, "percentiles_us": {"50": NaN, "99": 2}}', "cannot be"),
        ('{"commits": 1, "seconds": 1, "percentiles_us": {"50": 3, "99": 2}}', "percentiles that fall"),
        ('{"commits": 1, "seconds": 1, "percentiles_us": {"50": 1}}', "p99"),
        ('{"commits": 0, "seconds": 1, "percentiles_us": {}, "error": "disk full"}', "committed nothing: disk full"),
    ],
)
def test_an_answer_that_cannot_be_names_who_gave_it(line: str, what: str) -> None:
    with pytest.raises(BadAnswer, match=what) as raised:
        parse("dragonboat", line)
    assert "dragonboat" in str(raised.value)


# --- loops ------------------------------------------------------------------------------------------------------------


class Committed:
    """An append that is settled at once."""

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> None: ...

    def __await__(self) -> Generator[None, None, None]:
        yield


def stalled_first(stall_s: float) -> Callable[..., Committed]:
    """The first append holds up whoever makes it."""
    sent = 0

    def submit(values: list[bytes]) -> Committed:
        nonlocal sent
        sent += 1
        if sent == 1:
            time.sleep(stall_s)
        return Committed()

    return submit


def run_with_callbacks(command: dict[str, Any], submit: Callable[..., Committed]) -> dict[str, Any]:
    def tell(values: list[bytes], done: Callable[[object], None]) -> None:
        submit(values)
        done(None)

    return loops.run_with_callbacks(command, tell, time.sleep)


def run_async(command: dict[str, Any], submit: Callable[..., Committed]) -> dict[str, Any]:
    async def append(values: list[bytes]) -> None:
        await asyncio.sleep(0)
        submit(values)

    return asyncio.run(loops.run_async(command, append, submit))


def run_blocking(command: dict[str, Any], submit: Callable[..., Committed]) -> dict[str, Any]:
    return loops.run_blocking(command, submit, submit)


RUNNERS = (run_async, run_blocking, run_with_callbacks)


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_open_loop_counts_from_when_an_append_was_due(runner: Callable[..., dict[str, Any]]) -> None:
    """1,000 a second, and the first holds everybody up for 0.2 s: the one due after 0.1 s has waited for 0.1 s."""
    workload = Workload("open", in_flight=500, rate=1000)
    found = parse("loop", json.dumps(runner(workload.request(0.3), stalled_first(0.2))))
    assert (found.commits, found.not_sent, found.errors) == (300, 0, 0)
    assert found.percentiles_us[100.0] >= 200_000
    assert found.percentiles_us[75.0] >= 100_000  # 100 of 300 were due in the first 0.1 s
    assert found.seconds >= 0.299


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_closed_loop_counts_values_of_batches_and_tells_failures(
    runner: Callable[..., dict[str, Any]], in_flight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, calls = set[int](), 0
    # Not by the clock: a busy machine may spend all of the time on one call.
    monkeypatch.setattr(loops.Recorder, "is_over", property(lambda _: calls >= 20))

    def submit(values: list[bytes]) -> Committed:
        nonlocal calls
        calls += 1
        sizes.add(len(values))
        assert {len(value) for value in values} == {100}
        if calls == 3:
            raise ValueError("no")
        return Committed()

    found = parse("loop", json.dumps(runner(Workload("batches", in_flight, batch=10).request(0.05), submit)))
    assert sizes == {10}
    assert found.errors == 1
    assert "no" in found.error
    assert found.commits == 10 * (calls - 1)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_ratios_are_taken_within_a_round_and_over_the_slice_of_the_floor_just_before() -> None:
    ours = [
        Slice(0, figures(200), figures(100)),
        Slice(1, figures(300), figures(100)),
        Slice(2, figures(80), figures(20)),
    ]
    theirs = [Slice(0, figures(400), None), Slice(2, figures(100), None)]  # it failed in one round
    assert spread(ours, "p50") == (200, 80, 300)
    assert over_floor(ours, "p50") == (3.0, 2.0, 4.0)
    assert over(ours, theirs, "p50") == (0.65, 0.5, 0.8)
    assert over_floor(theirs, "p50") is None
    assert over(ours, [], "p50") is None


def test_a_goal_is_met_not_met_or_not_decided_and_a_tail_of_unsent_appends_meets_none() -> None:
    taken = Taken()
    taken.slices[ASYNCIO, ONE] = [Slice(0, figures(140, commits=3000, cpu_us=15_000), figures(100))]
    taken.slices[BARE, ONE] = [Slice(0, figures(commits=1000), figures(100))]
    taken.slices[ASYNCIO, OPEN.name] = [Slice(0, figures(10, not_sent=5), None)]
    taken.slices[KAFKA, OPEN.name] = [Slice(0, figures(1000), None)]
    goals = [
        Goal("p50", ONE, ASYNCIO, FLOOR, at_most=1.5),
        Goal("p50", ONE, ASYNCIO, FLOOR, at_most=1.3),
        Goal("commits/s", ONE, ASYNCIO, BARE, at_least=3.0),
        Goal("CPU us a commit", ONE, ASYNCIO, at_most=10.0),
        Goal("commits/s", ONE, ASYNCIO, KAFKA, at_least=5.0),
        Goal("p99", OPEN.name, ASYNCIO, KAFKA, at_most=0.1),
    ]
    found = verdicts(taken, goals)
    assert [each.met for each in found] == [True, False, True, True, False, False]
    assert [each.value.median if each.value else None for each in found] == [1.4, 1.4, 3.0, 5.0, None, 0.01]
    assert found[4].why == "no figures of Kafka's raft in the same rounds"
    assert found[5].why == "5 appends were not sent or failed"
    text = "\n".join(goal_table(found))
    assert text.count("NOT met") == 2
    assert text.count("not decided") == 1


def test_everybody_whom_the_comparison_promises_is_a_contender() -> None:
    ours = {"ours, blocking", "ours, asyncio", "ours, uvloop", "ours, Kafka client"}
    go = {"etcd raft + wal", "dragonboat", "hashicorp/raft", "etcd, in process", "etcd, client"}
    java = {"ZooKeeper", "ZooKeeper, kazoo", "Kafka's raft", "Kafka's raft, linger 0"}
    python = {"PySyncObj", "PySyncObj, tuned"}
    names = [each.name for each in CONTENDERS]
    assert len(set(names)) == len(names)
    assert set(names) == ours | go | java | python
    assert {each.name for each in CONTENDERS if each.role == OURS} == ours
    # The C floor is none of them: it takes its turn with each.
    assert FLOOR == "C floor"
    assert FLOOR not in names


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_goal_can_be_decided_as_its_names_are_those_of_contenders_and_workloads(goal: Goal) -> None:
    contenders = {each.name: each for each in CONTENDERS}
    assert goal.figure in goals.FIGURES
    for name in {goal.of, goal.over} - {"", FLOOR}:
        assert goal.workload in {each.name for each in contenders[name].workloads}
    assert goal.of != FLOOR
    assert (goal.at_least is None) != (goal.at_most is None)


def test_no_two_goals_are_about_the_same() -> None:
    about = [(goal.figure, goal.workload, goal.of, goal.over, goal.at_least is None) for goal in GOALS]
    assert len(set(about)) == len(about)


def test_a_group_of_the_floor_has_as_many_bytes_as_a_batch_of_ours() -> None:
    assert [group_records(each) for each in (*CLOSED, BATCHES)] == [1, 64, 256, 1024, 1000]
    assert group_bytes(1) == 168


# --- syncs ------------------------------------------------------------------------------------------------------------


def test_every_way_to_sync_is_counted_once(tmp_path: Path) -> None:
    lines = [
        '11 openat(AT_FDCWD</d>, "log", O_WRONLY|O_CREAT|O_DSYNC, 0600) = 5</d/log>',
        '11 openat(AT_FDCWD</d>, "other", O_RDWR) = 6</d/other>',
        '11 pwrite64(5</d/log>, ""..., 168, 0) = 168',
        '11 pwrite64(6</d/other>, ""..., 168, 0) = 168',
        "12 fdatasync(6</d/other> <unfinished ...>",
        "12 <... fdatasync resumed>)             = 0",
        "12 fsync(6</d/other>)                   = 0",
        "12 msync(0x7f00, 4096, MS_SYNC)         = 0",
        "12 msync(0x7f00, 4096, MS_ASYNC)        = 0",
        '12 pwritev2(6</d/other>, [{iov_base=""..., iov_len=1}], 1, 0, RWF_DSYNC) = 1',
        "13 io_uring_enter(9<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1",
    ]
    file = tmp_path / "strace"
    file.write_text("\n".join(lines[:3]) + "\n12 fdata")  # strace is in the middle of a line
    trace = Trace(file)
    assert trace.more() == Counted(1, 0)
    file.write_text("\n".join(lines) + "\n")
    assert trace.more() == Counted(4, 1)
    assert trace.more() == Counted(0, 0)


SYNCING = """
import os, sys
from bench.compare.programs import loops
with open(sys.argv[1], "wb", 0) as file:
    def append(values):
        file.write(b"".join(values))
        if sys.argv[2] == "synced":
            os.fdatasync(file.fileno())
    loops.serve(lambda: True, lambda command: loops.run_blocking(command, append, None))
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("kind", "per_commit"), [("synced", 1.0), ("unsynced", 0.0)])
def test_what_a_node_syncs_is_seen_by_strace(tmp_path: Path, kind: str, per_commit: float) -> None:
    """The first of three always leads, and alone writes."""
    commands = [[sys.executable, "-c", SYNCING, str(tmp_path / f"log-{number}"), kind] for number in range(3)]
    found = count_syncs("file", Plan(commands), tmp_path, 0.05, 0.1)
    assert found.commits > 0
    assert list(found.per_commit) == [per_commit, 0.0, 0.0]
    assert found.is_durable is False


def test_whoever_does_not_sync_on_a_majority_is_not_durable_and_a_ring_leaves_it_open() -> None:
    assert SyncCount(100, (1.0, 1.0, 0.0), False).is_durable is True
    assert SyncCount(100, (1.0, 0.1, 0.0), False).is_durable is False
    assert SyncCount(100, (0.0, 0.0, 0.0), True).is_durable is None
    assert SyncCount(0, (), False, "no strace").is_durable is None
    taken = Taken(syncs={"PySyncObj": SyncCount(10, (0.0, 0.0, 0.0), False)})
    assert "NOT durable" in "\n".join(sync_table(taken, CONTENDERS))


# --- what is not there ------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Go, Java, Maven and network, and with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(fetch, "GO_PROXY", f"file://{tmp_path}/nowhere")


@pytest.mark.usefixtures("bare")
def test_what_cannot_be_had_says_why_and_what_to_install() -> None:
    why = {}
    for contender in CONTENDERS:
        if "ours" not in contender.name and "PySyncObj" not in contender.name:
            with pytest.raises(Missing) as raised:
                contender.prepare()
            why[contender.name] = str(raised.value)
    assert "apt install default-jdk-headless" in why["ZooKeeper"]
    assert "apt install default-jdk-headless" in why["Kafka's raft"]
    assert "cannot be fetched" in why["etcd raft + wal"]
    assert not list(fetch.cache().glob("*[!k]"))  # nothing half done, only the lock


def test_a_download_of_other_bytes_is_refused_and_removed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"toolchain")
    fetch.download(source.as_uri(), target, hashlib.sha256(b"toolchain").hexdigest())
    assert target.read_bytes() == b"toolchain"
    with pytest.raises(Missing, match="has the checksum"):
        fetch.download(source.as_uri(), target, hashlib.sha256(b"else").hexdigest())
    assert not target.exists()


def test_a_contender_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    plan = Plan([["sh", "-c", "echo no log here >&2; exit 3"]] * 3)
    with pytest.raises(ContenderFailed, match=r"mute, node 1 .*no log here"), Cluster("mute", plan, tmp_path):
        pass
    with pytest.raises(ContenderFailed, match="cannot be started"), Cluster("none", Plan([["/nowhere"]] * 3), tmp_path):
        pass


def test_wrong_usage_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="nobody's name contains 'nosuch'"):
        main(["--only", "nosuch"])
    with pytest.raises(SystemExit, match="--directory"):
        main(["--directory", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match="cannot be written"):
        main(["--save", str(tmp_path / "nowhere" / "file.json")])


# --- ours, small ------------------------------------------------------------------------------------------------------


def unavailable() -> Any:
    raise Missing("no such thing; apt install it")


def dying() -> Any:
    return lambda directory: Plan([["false"]] * 3)


@needs_compiler
def test_ours_is_compared_with_the_floor_while_others_are_left_out_or_fail(tmp_path: Path) -> None:
    ours = next(each for each in CONTENDERS if each.name == ASYNCIO)
    contenders = [ours, Contender("absent", unavailable), Contender("dying", dying)]
    workloads = [CLOSED[1], BATCHES]
    comparison = Comparison(
        str(tmp_path), True, Lengths(slice_s=0.1, floor_s=0.02, warm_share=0.1, settles_disk=False), counts_syncs=False
    )
    taken = comparison.run(contenders, workloads, rounds=1)
    assert taken.skipped == {"absent": "no such thing; apt install it"}
    assert len(taken.failures) == 1
    assert "dying" in taken.failures[0]
    assert not list(tmp_path.iterdir())
    for workload in workloads:
        (found,) = taken.slices[ASYNCIO, workload.name]
        assert found.figures.errors == found.figures.not_sent == 0
        assert found.figures.commits >= workload.batch
        assert set(found.figures.cpu_us_by_process) == {f"{ASYNCIO}, node {number}" for number in (1, 2, 3)}
        assert found.floor is not None
        assert found.floor.cpu_us > 0
    results = json.loads(json.dumps(report(taken, contenders, workloads, verdicts(taken))))
    assert {each["name"] for each in results["results"]} == {ASYNCIO, FLOOR}
    assert results["skipped"] == [{"name": "absent", "why": "no such thing; apt install it"}]
    text = "\n".join(workload_tables(taken, contenders, workloads))
    assert text.count("ours, asyncio") == text.count("C floor") == 2
    drawn = charts.draw(results, tmp_path / "chart")
    assert [path.name for path in drawn] == ["chart-throughput.png", "chart-latency-64.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


@needs_compiler
def test_the_floor_counts_records_not_groups(tmp_path: Path) -> None:
    found = Floor(tmp_path).run(CLOSED[1], 0.01)
    assert found.commits == 64 * 100
    assert found.cpu_us_per_commit < found.percentiles_us[100.0] * 3
