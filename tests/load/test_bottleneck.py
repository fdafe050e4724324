"""Was it the generator that was measured? Said when it was, and not when the quorum was slow."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastquorum.load.processes import Message
from fastquorum.load.recorded import RecordedRun
from tests.cli.conftest import in_process
from tests.privileges import compiled
from tests.process.faults.slow_disk import SHIM, SlowDisk

pytestmark = pytest.mark.long

SECOND = 1_000_000_000
MS = 1_000_000


def recorded(
    *,
    latency_ns: int = 5 * MS,
    lateness_ns: int = 50_000,
    sent: int = 1000,
    took_s: float = 1.0,
    cpu_s: float = 0.1,
    own_appends_per_s: float = 500_000.0,
    not_sent: int = 0,
    leaderless_s: float = 0.0,
    failed: int = 0,
) -> RecordedRun:
    """A second's schedule."""
    found = RecordedRun(0, 1.0)
    fields = {
        "at_ns": int(took_s * SECOND),
        "sent": sent,
        "errors": {"timeout": failed},
        "is_draining": False,
        "in_flight": 0,
    }
    lateness = np.full(sent, lateness_ns, np.int64)
    found.add(Message(None, "interval", fields, np.full(sent, latency_ns, np.int64), lateness), lateness)  # type: ignore[arg-type]
    found.generator_cpu_s, found.own_appends_per_s, found.not_sent = cpu_s, own_appends_per_s, not_sent
    found.leaderless_s = leaderless_s
    return found


@pytest.mark.parametrize(
    ("how", "alone", "words"),
    [
        ({"lateness_ns": 4 * MS}, False, "ticks began 4,0.. us late at p50, of a latency of 5,0.. us"),
        ({"took_s": 1.2}, False, "a schedule of 1 s took 1.20 s: the appending thread was busy"),
        ({"not_sent": 12_345}, False, "with 12,345 appends of it not sent"),
        (
            {"own_appends_per_s": 1500.0},
            False,
            "1,000 appends/s were sent, and the generator sends no more than 1,500/s",
        ),
        ({"cpu_s": 0.95}, True, "the generator's process used 95% of a processor"),
    ],
)
def test_a_generator_that_does_not_keep_up_is_named_and_why(how: dict[str, Any], alone: bool, words: str) -> None:
    is_slow, why = recorded(**how).bottleneck(is_closed=False, is_alone=alone)
    assert is_slow
    assert re.search(words, why), why


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ({}, False),
        ({"latency_ns": 900 * MS}, False),  # the quorum's
        ({"lateness_ns": 900_000, "latency_ns": MS}, False),  # within a tick, as promised
        ({"cpu_s": 0.95}, False),  # the node's own work is in there
        ({"own_appends_per_s": 0.0}, True),
        ({"took_s": 2.2, "leaderless_s": 1.2}, False),  # there was nobody to append at
        ({"lateness_ns": 4 * MS, "failed": 1001}, False),  # of which the latencies tell nothing
    ],
)
def test_a_generator_in_time_is_not_blamed(how: dict[str, Any], alone: bool) -> None:
    assert not recorded(**how).bottleneck(is_closed=False, is_alone=alone)[0]


def loaded(tmp_path: Path, environment: dict[str, str]) -> dict[str, Any]:
    words = ["--data", tmp_path, "--rate", "200", "--seconds", "2", "--warmup", "0", "--format", "json"]
    ran = in_process("load", *words, environment=environment)
    assert ran.code == 0, ran.err
    report: dict[str, Any] = json.loads(ran.out)
    return report


SLOW_GENERATOR = """
import time
from fastquorum.load.driving.embedded import BlockingDriver
offer = BlockingDriver.offer
def slow_offer(self, appends, intended_ns):
    until = time.monotonic() + 0.008
    while time.monotonic() < until:
        pass
    offer(self, appends, intended_ns)
BlockingDriver.offer = slow_offer
"""


def test_a_generator_made_slow_is_the_bottleneck(tmp_path: Path) -> None:
    """8 ms of computing for arrivals that come every 5 ms."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_GENERATOR)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    report = loaded(tmp_path, {"PYTHONPATH": path})
    assert report["generator_was_bottleneck"]
    assert report["generator"]["lateness_us"]["p99"] > 0


def test_a_slow_disk_is_not_blamed_on_the_generator(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path / "disk", compiled(SHIM, "slow_disk", tmp_path))
    disk.slow_down(0.15)  # so much that a busy machine's own pauses are little beside it
    report = loaded(tmp_path, dict(disk.environment))
    assert report["latency_us"]["p50"] > 150_000
    assert not report["generator_was_bottleneck"], report["generator"]
