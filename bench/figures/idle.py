"""Three nodes as `fastquorum run` runs them, with nothing to do: processor, memory, wake-ups.

From /proc: run time by the scheduler's count (nanoseconds), resident memory, and how often a thread had waited and went
on. The yardstick is a Python process that waits for nothing.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from bench.figures.figure import Goal, Measured, Setting, alone, over
from bench.figures.trio import CLUSTER_ID
from bench.measure import Spread
from fastquorum.cli.main import main as fastquorum_command
from fastquorum.load.driving.leader_search import find_leader
from fastquorum.load.plan import TOPIC
from fastquorum.loopback import free_ports
from fastquorum.types import LISTENER_NAME, Endpoint

READY_S: Final = 60.0
STOP_S: Final = 10.0
CPU_PERCENT, RESIDENT_MIB = Goal(at_most=0.5), Goal(at_most=64.0)
PYTHON: Final = "a Python process that waits"
_SWITCHES: Final = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_RESIDENT: Final = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)


class Count(NamedTuple):
    """Counters of one process, all its threads."""

    at_ns: int
    run_ns: int
    wakeups: int


class Usage(NamedTuple):
    cpu_percent: float
    """Percent of one core."""
    wakeups_per_s: float
    resident_mib: float


def measure(setting: Setting, directory: Path) -> Measured:
    rounds, seconds = setting.pick(3, 1), setting.pick(20.0, 0.5)
    taken: dict[str, list[Usage]] = {}
    with ExitStack() as running:
        processes = _nodes(running, directory)
        processes[PYTHON] = running.enter_context(_process([sys.executable, "-c", "input()"], directory / "python"))
        time.sleep(seconds / 2)  # what a start leaves behind is not idleness
        for turn in range(rounds):
            setting.say(f"idle: {turn + 1} of {rounds}, {seconds:g} s ...")
            before = {name: _count(process.pid) for name, process in processes.items()}
            time.sleep(seconds)  # this is what is measured
            for name, process in processes.items():
                taken.setdefault(name, []).append(_usage(process.pid, before[name]))
    python = taken.pop(PYTHON)
    measured = Measured(how={"seconds": seconds, "rounds": rounds, "nodes": "fastquorum run, defaults"})
    for name, each in taken.items():
        resident = [usage.resident_mib for usage in each]
        measured.rows += [
            alone(f"{name}: processor", "% of a core", [usage.cpu_percent for usage in each], CPU_PERCENT),
            alone(f"{name}: resident", "MiB", resident, RESIDENT_MIB),
            over(f"{name}: resident", "MiB", resident, PYTHON, [usage.resident_mib for usage in python]),
            alone(f"{name}: wake-ups", "/s", [usage.wakeups_per_s for usage in each]),
        ]
    measured.details = {name: [usage._asdict() for usage in each] for name, each in {**taken, PYTHON: python}.items()}
    assert all(Spread.of([usage.resident_mib for usage in each]).low > 1 for each in taken.values())
    return measured


def _nodes(running: ExitStack, directory: Path) -> dict[str, "subprocess.Popen[bytes]"]:
    """Formatted and started by the command, and ready; the leader is named so."""
    ports = free_ports(3)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports, 1))
    command = [sys.executable, "-m", "fastquorum.cli"]
    started = []
    for number in (1, 2, 3):
        data = str(directory / f"node-{number}")
        form = ["--node-id", str(number), "--cluster-id", CLUSTER_ID, "--voters", voters]
        with redirect_stdout(StringIO()):
            exit_code = fastquorum_command(["format", "--data", data, *form])
        assert exit_code == 0, data
        log = directory / f"node-{number}.stderr"
        started.append(running.enter_context(_process([*command, "run", "--data", data, "--until-stdin-ends"], log)))
    endpoints = [Endpoint(LISTENER_NAME, "127.0.0.1", port) for port in ports]
    leaders = {find_leader([endpoint], TOPIC, READY_S).node_id for endpoint in endpoints}
    return {
        f"node {number}, {'leader' if number in leaders else 'follower'}": process
        for number, process in enumerate(started, 1)
    }


@contextmanager
def _process(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()


def _count(pid: int) -> Count:
    run_ns = wakeups = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        run_ns += int((task / "schedstat").read_text().split()[0])
        match = _SWITCHES.search((task / "status").read_text())
        wakeups += int(match[1]) if match else 0
    return Count(time.monotonic_ns(), run_ns, wakeups)


def _usage(pid: int, before: Count) -> Usage:
    now = _count(pid)
    length_ns = now.at_ns - before.at_ns
    resident = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text())
    return Usage(
        (now.run_ns - before.run_ns) / length_ns * 100,
        (now.wakeups - before.wakeups) / length_ns * 1e9,
        int(resident[1]) / 1024 if resident else 0.0,
    )
