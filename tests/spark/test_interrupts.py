"""How a command of Spark's ends: the JVM first; by Ctrl-C or SIGTERM with their exit codes, and nothing is left."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.spark.sessions.jvm import Jvm
from tests.cli.conftest import running_with, wait_until
from tests.wire.golden import CLUSTER

from .programs import VECTOR, program

RUN_S = 240


def begun(*words: object, **environment: str) -> "subprocess.Popen[str]":
    """With its children, as a terminal's foreground."""
    return subprocess.Popen(
        [sys.executable, "-m", "fastquorum.cli", "spark", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


def interrupted(command: "subprocess.Popen[str]", by: int = signal.SIGINT) -> str:
    """What it says on stderr when Ctrl-C comes, or another signal, to it alone."""
    (os.killpg if by == signal.SIGINT else os.kill)(command.pid, by)
    out, output = command.communicate(timeout=RUN_S)
    assert (command.returncode, out) == (128 + by, ""), output
    return output


def opened(pipe: Path) -> int:
    """To be written to: as soon as somebody reads it."""
    return os.open(pipe, os.O_WRONLY)


def is_left(pipe: int) -> bool:
    """Whoever read it has gone."""
    watch = select.poll()
    watch.register(pipe, 0)
    return bool(watch.poll(RUN_S * 1000))


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_starts_is_its_exit_code_and_no_word(by: int, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    java = (
        "case $1 in",
        """-version) echo 'openjdk version "17.0.15" 2025-04-15' >&2;;""",
        f"--list-modules) echo '{VECTOR}@17';;",
        f"*) exec cat {pipe};;",
        "esac",
    )
    program(tmp_path / "java" / "bin" / "java", "\n".join(java))
    command = begun("sim-sweep", "--seeds", "0:1", JAVA_HOME=str(tmp_path / "java"), TMPDIR=str(scratch))
    reader = opened(pipe)
    assert interrupted(command, by) == ""
    assert is_left(reader)
    os.close(reader)
    assert not [each for each in scratch.iterdir() if each.name.startswith("fastquorum-")]


@contextmanager
def held_shut(file: Path) -> Iterator[threading.Event]:
    """Whoever opens this file waits (fcntl(2), leases): told when somebody does."""
    begun = threading.Event()
    before = signal.signal(signal.SIGIO, lambda *_: begun.set())
    lease = os.open(file, os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield begun
    finally:
        os.close(lease)
        signal.signal(signal.SIGIO, before)


@pytest.mark.long
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_job_leaves_no_output_and_no_process(by: int, tmp_path: Path) -> None:
    scratch, runs = tmp_path / "scratch", tmp_path / "runs"
    scratch.mkdir()
    runs.mkdir()
    out = [tmp_path / name for name in ("told.json", "told.html")]
    words = ("latency", runs, "--master", "local[1]", "--out", out[0], "--html", out[1])
    with held_shut(runs / "run.json") as is_opened:
        command = begun(*words, TMPDIR=str(scratch))
        assert is_opened.wait(RUN_S)
        output = interrupted(command, by)
        assert "Traceback" not in output
        assert "ERROR" not in output
        wait_until(lambda: not running_with(scratch))
    assert not any(each.exists() for each in out)
    assert not list(scratch.glob("fastquorum-*"))


@pytest.mark.long
def test_a_signal_while_the_report_is_written_leaves_nothing_of_sparks(tmp_path: Path) -> None:
    """All is gone before, and the reader that hangs is not waited for."""
    words = ("timeline", CLUSTER, "--master", "local[1]", "--format", "json")
    command = begun(*words, TMPDIR=str(tmp_path))
    assert command.stdout is not None
    fcntl.fcntl(command.stdout, fcntl.F_SETPIPE_SZ, 4096)
    assert os.read(command.stdout.fileno(), 1) == b"{", "the rest, 22 kB, waits for a reader"
    command.terminate()
    assert command.wait(RUN_S) == 128 + signal.SIGTERM
    command.communicate()
    assert not list(tmp_path.glob("fastquorum-*"))


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Jvm:
    """One that takes nothing away from the session that the tests share."""
    from pyspark import SparkContext

    for name in ("_gateway", "_jvm"):
        monkeypatch.setattr(SparkContext, name, getattr(SparkContext, name))
    return Jvm()


def test_what_every_java_says_at_the_start_is_left_out(jvm: Jvm, capfd: pytest.CaptureFixture[str]) -> None:
    from pyspark import java_gateway

    with jvm.starting():
        text = "WARNING: Using incubator modules: jdk.incubator.vector\nWARNING: mind\n[Stage 1:>\rWARN"
        java_gateway.Popen(["sh", "-c", 'printf "$0" >&2; cat', text], stdin=subprocess.PIPE)
    jvm.end()
    assert capfd.readouterr().err == "WARNING: mind\n[Stage 1:>\rWARN"


def test_what_the_jvm_says_last_comes_before_what_the_command_says(jvm: Jvm, capfd: pytest.CaptureFixture[str]) -> None:
    from pyspark import java_gateway

    with jvm.starting():
        java_gateway.Popen(["sh", "-c", "cat; echo late >&2"], stdin=subprocess.PIPE)
    jvm.end()
    os.write(2, b"said\n")
    assert capfd.readouterr().err == "late\nsaid\n"
