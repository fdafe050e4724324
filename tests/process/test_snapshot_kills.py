"""A controller is killed at every kind of step of taking a snapshot and of removing what it covers, on one directory
that goes through them all: each time it is sound, holds what was committed, and is started again as it is."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load
from fastquorum.loopback import free_ports
from fastquorum.types import Endpoint
from tests.conftest import ROOT
from tests.process.processes import WAIT_S

STEPS = (
    "before-file-rename",  # the snapshot is whole, and has no name yet
    "after-file-rename@2",
    "before-directory-sync@4",
    "after-segment-create@3",  # a segment, or a snapshot's draft
    "after-segment-write@150",
    "before-mark-replace@9",
    "after-mark-replace@9",  # it may say that the log begins later now
    "before-file-remove",
    "after-file-remove",
    "after-file-remove@2",
    "after-directory-sync@9",
)
SETTINGS = """
metadata.max.idle.interval.ms=2
metadata.log.max.record.bytes.between.snapshots=3000
metadata.log.segment.bytes=4096
metadata.max.retention.bytes=12000
log.preallocate.bytes=4096
log.mark.interval.ms=20
controller.quorum.election.timeout.ms=100
"""


class Controller:
    """One directory, and a process after another on it."""

    def __init__(self, root: Path, kernels: str) -> None:
        (self.port,) = free_ports(1)
        self.directory = root / "n1"
        self._settings = root / "settings.properties"
        self._settings.write_text(SETTINGS)
        self._kernels = kernels
        voters = f"1@127.0.0.1:{self.port}"
        done = self._command("format", "--controller", "--node-id", "1", "--voters", voters)
        _, errors = done.communicate(timeout=WAIT_S)
        assert done.returncode == 0, errors

    def _command(self, name: str, *words: str, failpoint: str = "") -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "fastquorum.cli", name, "--data", str(self.directory), *words]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FASTQUORUM_")}
        if failpoint:
            environment["FASTQUORUM_FAILPOINTS"] = failpoint
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)

    def killed_at(self, step: str) -> int:
        """Run until it dies there; up to where something was committed, as far as anybody heard."""
        name, at, number = step.partition("@")
        words = ("--controller", "--config", str(self._settings), "--kernels", self._kernels)
        process = self._command("run", *words, failpoint=f"{name}=crash{at}{number}")
        fetched = [0]
        over = threading.Event()
        listener = threading.Thread(target=self._listen, args=(fetched, over), daemon=True)
        listener.start()
        try:
            _, errors = process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{step} was never reached: {process.communicate()[1]}") from None
        finally:
            over.set()
            listener.join(WAIT_S)
        assert process.returncode == -signal.SIGKILL, f"{step}: {process.returncode}: {errors}"
        return fetched[0]

    def _listen(self, fetched: list[int], over: threading.Event) -> None:
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", self.port)
        while not over.is_set():
            try:
                with QuorumClient((endpoint,), load("pure")) as client:
                    while not over.is_set():
                        partition = client.describe(Deadline(1.0)).topics[0].partitions[0]
                        fetched[0] = max(fetched[0], partition.high_watermark)
            except FastQuorumError:
                over.wait(0.02)


@pytest.mark.long
@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_whatever_step_it_is_killed_at_it_goes_on(tmp_path: Path, kernels: str) -> None:
    controller = Controller(tmp_path, kernels)
    end, starts, snapshots = 0, set(), 0
    for step in STEPS if kernels == "native" else STEPS[::2]:
        committed = controller.killed_at(step)
        log = fq.log.open(controller.directory)
        found = log.verify()
        assert found.is_sound, f"{step}: {found.findings}"
        assert found.end_offset >= max(committed, end), f"{step}: {committed} was committed"
        assert log.image().features.metadata_version is not None
        end = found.end_offset
        starts.add(found.start_offset)
        snapshots = max(snapshots, found.checkpoint_count)
    assert len(starts) > 2, "nothing was removed"
    assert snapshots >= 2
