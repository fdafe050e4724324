"""Failpoints: their syntax, and what is left of a node that one of them kills."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastquorum import log, sync
from fastquorum.errors import ConfigError
from fastquorum.node.io.failpoints import NAMES, Failpoints, InjectedFault
from tests.api.nodes import WAIT_S, values_of

WRITER = """
import sys
from fastquorum import sync
node = sync.open(sys.argv[1], node_id=1, election_timeout_us=100_000, fetch_timeout_us=400_000, preallocate_bytes=65536,
                 segment_bytes=65536, mark_interval_us=50_000)
node.wait_ready(20)
for number in range(int(sys.argv[2])):
    node.append(b"%05d" % number + bytes(1000), timeout=20)
    print(number, flush=True)
node.close()
"""


def run_writer(path: Path, failpoints: str, count: int = 400) -> tuple[int, int, str]:
    """(exit code, appends acknowledged, stderr) of a process that appends until a failpoint ends it."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), str(count)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "FASTQUORUM_FAILPOINTS": failpoints},
        check=False,
    )
    return done.returncode, len(done.stdout.split()), done.stderr


def test_there_are_enough_of_them_and_each_has_one_name() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 40


def test_they_do_what_they_are_told_and_when() -> None:
    points = Failpoints()
    points("before-election-save")
    points.arm("before-election-save=eio@2, after-election-save=sleep:0 ,before-segment-sync=off")
    assert points.are_armed
    points("before-election-save")
    with pytest.raises(InjectedFault):
        points("before-election-save")
    points("before-election-save")
    points("after-election-save")
    points("before-segment-sync")
    points.arm("")
    assert not points.are_armed


@pytest.mark.parametrize(
    "text",
    ["nonsense=crash", "before-election-save", "before-election-save=explode", "before-election-save=sleep",
     "before-election-save=crash:5", "before-election-save=crash@0", "before-election-save=crash@x"],
)  # fmt: skip
def test_what_is_no_failpoint_is_named(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Failpoints().arm(text)
    assert refused.value.key == "FASTQUORUM_FAILPOINTS"


@pytest.mark.parametrize(
    "point",
    [
        "before-election-save=crash@1",
        "after-election-save=crash@1",
        "before-segment-write=crash@40",
        "after-segment-write=crash@40",
        "before-flush-submit=crash@40",
        "after-flush-submit=crash@40",
        "before-flush-count=crash@40",
        "after-flush-count=crash@40",
        "before-mark-replace=crash@2",
        "after-mark-replace=crash@2",
        "before-segment-truncate=crash@2",
        "after-segment-truncate=crash@2",
        "before-directory-sync=crash@6",
        "after-segment-sync=crash@2",
        "before-segment-zero-fill=crash@3",
        "after-segment-zero-fill=crash@3",
    ],
)
def test_killed_there_it_comes_back_with_everything_acknowledged(tmp_path: Path, point: str) -> None:
    code, acknowledged, errors = run_writer(tmp_path / "data", point)
    assert code == -signal.SIGKILL, (code, errors)
    assert log.open(str(tmp_path / "data")).verify().is_sound
    with sync.open(str(tmp_path / "data"), node_id=1, election_timeout_us=100_000) as node:
        node.wait_ready(WAIT_S)
        numbers = [int(value[:5]) for value in values_of(node) if value is not None]
        assert numbers[:acknowledged] == list(range(acknowledged))
        assert len(numbers) - acknowledged in (0, 1)


@pytest.mark.parametrize(
    "point",
    ["before-recovery-write", "before-recovery-zero-fill", "before-recovery-sync", "after-recovery-replace"],
)
def test_killed_in_recovery_it_recovers_again(tmp_path: Path, point: str) -> None:
    code, acknowledged, _ = run_writer(tmp_path / "data", "before-segment-write=crash@60")
    assert code == -signal.SIGKILL
    # Not every recovery has every step; where the step is reached, it dies there, else it runs to its end.
    code, more, errors = run_writer(tmp_path / "data", f"{point}=crash", 3)
    assert code in (-signal.SIGKILL, 0), errors
    with sync.open(str(tmp_path / "data"), node_id=1, election_timeout_us=100_000) as node:
        node.wait_ready(WAIT_S)
        assert len(values_of(node)) in (acknowledged + more, acknowledged + more + 1)


FAILS = """
import json, sys
from fastquorum import sync
from fastquorum.errors import DirectoryError, FatalError
node = sync.open(sys.argv[1], node_id=1, election_timeout_us=100_000, fetch_timeout_us=400_000)
acknowledged, errors = 0, []
try:
    node.wait_ready(20)
    for number in range(100):
        pending = [node.append_nowait(b"%05d" % number) for _ in range(3)]
        for each in pending:
            try:
                each.result(20)
                acknowledged += 1
            except FatalError as error:
                errors.append(type(error).__name__)
        if errors:
            break
    try:
        node.append(b"afterwards")
    except FatalError as error:
        errors.append(type(error).__name__)
except FatalError as error:
    errors.append(type(error).__name__)
node.close()
try:
    sync.open(sys.argv[1], node_id=1)
    errors.append("reopened")
except DirectoryError as error:
    errors.append("condemned")
print(json.dumps([acknowledged, errors]))
"""


@pytest.mark.parametrize(
    "point",
    [
        "before-flush-submit=eio@20",
        "before-flush-count=eio@20",
        "before-segment-write=eio@20",
        "after-segment-write=eio@20",
        "before-election-save=eio@1",
        "after-election-save=eio@1",
    ],
)
def test_after_a_disk_error_nothing_is_claimed_and_the_directory_is_condemned(tmp_path: Path, point: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILS, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "FASTQUORUM_FAILPOINTS": point},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    acknowledged, errors = json.loads(done.stdout)
    assert errors[-1] == "condemned"
    assert set(errors[:-1]) <= {"FsyncFailed", "StorageFailed", "StateStoreFailed"}
    assert len(errors) > 1
    assert acknowledged < 300
    with sync.open(str(tmp_path / "data"), node_id=1) as again:
        again.wait_ready(WAIT_S)
        assert len(values_of(again)) >= acknowledged
