"""`fastquorum generate`: what it refuses, what it says, and what Ctrl-C leaves."""

import filecmp
import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.cli.main import main
from fastquorum.errors import UsageError
from fastquorum.generate import LIST, START_MS, GenerateOptions, Kind, Span, parse_faults, parse_span
from fastquorum.generate.kinds import Room, room_of
from fastquorum.generate.options import check
from fastquorum.generate.plans import plan_clusters

SMALL = ("--brokers", "4", "--partitions", "8", "--hours", "6", "--seed", "1")


def run(out: Path, *arguments: str) -> int:
    return main(["generate", "--out", str(out), *arguments])


def test_it_tells_what_there_is_and_what_was_planted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "logs"
    assert run(out, *SMALL, "--clusters", "2", "--faults", "two-leaders,fenced-leads") == 0
    printed, listed = capsys.readouterr().out, json.loads((out / LIST).read_text())
    assert sorted(each.name for each in out.iterdir()) == ["cluster-001", "cluster-002", LIST]
    for planted in listed["planted"]:
        assert f"{planted['kind']}" in printed
        assert str(planted["offset"]) in printed
    assert "2 cluster(s) below" in printed
    assert listed["options"]["faults"] == {"two-leaders": 1, "fenced-leads": 1}
    assert listed["options"]["start_ms"] == START_MS


def test_as_json_it_prints_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "logs"
    assert run(out, *SMALL, "--format", "json", "--keep-log") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed.pop("directory") == str(out)
    assert listed == json.loads((out / LIST).read_text())
    assert listed["clusters"][0]["start_offset"] == 0
    assert len(listed["clusters"][0]["checkpoints"]) == 23


def test_without_a_seed_it_is_one_that_the_list_names(tmp_path: Path) -> None:
    assert run(tmp_path / "logs", *SMALL[:-2]) == 0
    assert run(tmp_path / "again", *SMALL[:-1], "1") == 0
    one, other = ((tmp_path / name / LIST).read_bytes() for name in ("logs", "again"))
    assert json.loads(one)["options"]["seed"] == 1
    assert one == other


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("x")
    assert run(tmp_path, *SMALL) == 2
    assert "it is not empty, and nothing in it was changed" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_where_nothing_can_be_made_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    assert run(tmp_path / "file" / "below", *SMALL) == 2
    assert "nothing can be made there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--brokers", "many"), "--brokers: 'many' is not N or N-M"),
        (("--brokers", "9-3"), "--brokers: 9-3 runs backwards"),
        (("--partitions", "0"), "--partitions: 0 is not from 1"),
        (("--replicas", "8"), "--replicas: 8 is not from 1 to 7"),
        (("--faults", "gremlins"), "the kinds are divergence, uncommitted-tail"),
        (("--faults", "bit-flip=x"), "write KIND=COUNT"),
        (("--faults", "bit-flip", "--hours", "3"), "give --hours 6 or more"),
        (("--faults", "bit-flip", "--brokers", "3-9"), "give --brokers 4 or more"),
        (("--faults", "bit-flip", "--replicas", "2"), "give --replicas 3 or more"),
        (("--faults", "bit-flip,torn-end"), "give --clusters 2"),
        (("--faults", "isr-churn=3", "--hours", "24"), "give --clusters 3"),
        (("--faults", "all=2", "--hours", "24", "--clusters", "9"), "give --clusters 10"),
        (("--faults", "isr-churn,two-leaders,fenced-leads"), "a cluster has time for 2; give --clusters 2"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], printed: str
) -> None:
    assert run(tmp_path / "logs", *SMALL, *arguments) == 2
    assert printed in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()


@settings(max_examples=300)
@given(
    faults=st.dictionaries(st.sampled_from(Kind), st.integers(1, 12)),
    clusters=st.integers(1, 12),
    hours=st.integers(6, 24),
    replicas=st.sampled_from([3, 5, 7]),
    seed=st.integers(0, 9),
)
def test_whatever_is_let_through_is_spread_over_the_clusters(
    faults: dict[Kind, int], clusters: int, hours: int, replicas: int, seed: int
) -> None:
    wanted = GenerateOptions(
        brokers=Span(4, 4), partitions=Span(1, 1), hours=hours, seed=seed, clusters=clusters, replicas=replicas,
        faults=faults,
    )  # fmt: skip
    try:
        check(wanted)
    except UsageError as refused:
        assert "give --clusters" in refused.hint  # noqa: PT017
        return
    plans = plan_clusters(wanted)
    assert Counter(kind for plan in plans for kind in plan.kinds) == faults
    for plan in plans:
        assert len(set(plan.kinds)) == len(plan.kinds)
        for room, most in ((Room.REPLICA, wanted.minority), (Room.TIME, wanted.slots)):
            assert sum(room_of(kind) is room for kind in plan.kinds) <= most


def test_faults_and_numbers_are_read_as_people_write_them() -> None:
    assert parse_faults("all=3,torn-end=1,none") == dict.fromkeys(Kind, 3) | {Kind.TORN_END: 1}
    assert parse_faults("none") == {}
    assert parse_span("7", "brokers") == Span(7, 7)
    assert parse_span("1-100", "brokers") == Span(1, 100)


def test_whatever_order_python_hashes_in_the_bytes_are_the_same(tmp_path: Path) -> None:
    for name in ("1", "2"):
        command = [sys.executable, "-m", "fastquorum.cli", "generate", "--out", str(tmp_path / name), *SMALL]
        environment = {**os.environ, "PYTHONHASHSEED": name}
        faults = ("--clusters", "6", "--faults", "all")
        subprocess.run([*command, *faults], env=environment, check=True, stdout=subprocess.DEVNULL)
    names = [
        sorted(str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*") if path.is_file())
        for name in ("1", "2")
    ]
    assert names[0] == names[1]
    assert filecmp.cmpfiles(tmp_path / "1", tmp_path / "2", names[0], shallow=False) == (names[0], [], [])


def test_a_disk_that_takes_no_more_ends_it_with_one_line_and_nothing_half_made(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    command = [sys.executable, "-m", "fastquorum.cli", "generate", "--out", str(out), *SMALL, "--partitions", "9000"]
    limit = resource.RLIMIT_FSIZE, (200_000, 200_000)
    done = subprocess.run(
        command, preexec_fn=lambda: resource.setrlimit(*limit), stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 5
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{out} is incomplete: 0 of 1 cluster(s) are whole")
    assert "File too large" in second
    assert list(out.iterdir()) == []


def test_ctrl_c_leaves_whole_clusters_no_list_and_a_word_about_it(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    command = [sys.executable, "-m", "fastquorum.cli", "generate", "--out", str(out), *SMALL, "--clusters", "5000"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not (out / "cluster-0002").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, printed = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    whole = sorted(each.name for each in out.iterdir())
    assert whole == [f"cluster-{number:04d}" for number in range(1, len(whole) + 1)]
    assert f"{out} is incomplete: {len(whole)} of 5000 cluster(s) are whole" in printed
    assert "Traceback" not in printed
