"""What a commit costs a quorum of three processes: system calls, changes of threads and processor time, by thread.

    python -m bench budget                      # 1 and 64 in flight, from asyncio and from a blocking thread

Two runs each: one alone, for processor time and changes of threads (/proc), and one under `strace -c`, which counts and
slows down. Whoever leads also generates, so its Python is in the figures. Function calls are those of the thread that
appends and waits, the benchmark's own few among them; the replica's Python thread takes no part in a commit.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.commit import CommitTrio, Contestant
from bench.facts import facts
from bench.figures.trio import Node
from bench.report import facts_lines, table

IN_FLIGHT: Final = (1, 64)
APPENDS: Final = {1: 1_500, 64: 30_000}
TRACED: Final = {1: 400, 64: 6_400}
QUICK_APPENDS: Final = {1: 100, 64: 1_280}
"""With --quick, traced or not."""
_LINE: Final = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$")
SHOWN: Final = ("pwrite64", "fdatasync", "sendmsg", "recvfrom", "epoll_wait", "futex", "read", "write", "epoll_ctl")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench budget", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="the disk to measure (default: %(default)s)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--quick", action="store_true", help="small and short: shows that it runs, says little")
    options = parser.parse_args(arguments)
    measured = facts(options.directory)
    appends, traced = (QUICK_APPENDS, QUICK_APPENDS) if options.quick else (APPENDS, TRACED)
    found = [
        _budget(api, in_flight, appends[in_flight], traced[in_flight], options.directory)
        for api in ("asyncio", "blocking")
        for in_flight in IN_FLIGHT
    ]
    if options.format == "json":
        print(json.dumps({"facts": measured, "quick": options.quick, "budget": found}, indent=1))
    else:
        print("\n".join([*facts_lines(measured), "", *_table(found)]))
    return 0


def _budget(api: str, in_flight: int, appends: int, traced: int, directory: str) -> dict[str, Any]:
    print(f"budget, {api}, {in_flight} in flight ...", file=sys.stderr, flush=True)
    contestant = Contestant(f"{api}, native", "native", api == "blocking")
    with (
        tempfile.TemporaryDirectory(dir=directory, prefix="fastquorum-budget-") as place,
        CommitTrio(contestant, place) as trio,
    ):
        trio.measure(in_flight, traced)  # warm
        nodes = _by_role(trio)
        before = {role: _threads(node.pid) for role, node in nodes}
        trio.measure(in_flight, appends)
        after = {role: _threads(node.pid) for role, node in nodes}
        found: dict[str, Any] = {"api": api, "in_flight": in_flight, "nodes": {}}
        for role, _ in nodes:
            found["nodes"][role] = {
                "cpu_us": _difference(before[role], after[role], "cpu_us", appends),
                "switches": _difference(before[role], after[role], "switches", appends),
            }
        if shutil.which("strace"):
            with _traced(nodes) as calls:
                trio.measure(in_flight, traced)
            for role, counts in calls.items():
                per_commit = {name: count / traced for name, count in counts.items()}
                found["nodes"][role]["system_calls"] = per_commit
        found["calls"] = trio.await_leader().ask("calls", in_flight=in_flight, appends=traced)
        return found


def _by_role(trio: CommitTrio) -> list[tuple[str, Node]]:
    leader = trio.await_leader()
    followers = [node for node in trio.nodes if node is not leader]
    return [("leader", leader), *((f"follower {number}", node) for number, node in enumerate(followers, 1))]


def _threads(pid: int) -> dict[str, dict[str, float]]:
    """By a thread's name: processor time, and how often it gave way or had to."""
    found: dict[str, dict[str, float]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        running_ns = int((task / "schedstat").read_text().split()[0])  # `stat` counts in ticks of 10 ms
        name = (task / "comm").read_text().strip()
        each = found.setdefault(name, {"cpu_us": 0.0, "switches": 0.0})
        each["cpu_us"] += running_ns / 1000
        status = (task / "status").read_text()
        each["switches"] += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status)))
    return found


def _difference(
    before: dict[str, dict[str, float]], after: dict[str, dict[str, float]], what: str, appends: int
) -> dict[str, float]:
    return {name: (each[what] - before.get(name, {}).get(what, 0.0)) / appends for name, each in after.items()}


@contextmanager
def _traced(nodes: Sequence[tuple[str, Node]]) -> Iterator[dict[str, dict[str, int]]]:
    """Counts of system calls by name, filled in at the end."""
    counts: dict[str, dict[str, int]] = {role: {} for role, _ in nodes}
    with tempfile.TemporaryDirectory() as place:
        tracers = []
        for role, node in nodes:
            output = Path(place, role.replace(" ", "-"))
            command = ["strace", "-f", "-c", "-o", str(output), "-p", str(node.pid)]
            tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            assert tracer.stderr is not None
            tracer.stderr.readline()  # "attached": from here on it counts
            tracers.append((role, tracer, output))
        yield counts
        for role, tracer, output in tracers:
            tracer.send_signal(2)
            tracer.communicate()
            for line in output.read_text().splitlines():
                if match := _LINE.match(line):
                    counts[role][match[2]] = int(match[1])


def _by_thread(cpu_us: Mapping[str, float]) -> str:
    """The kernel counts in ticks of 10 ms: a short run may have none."""
    if not cpu_us:
        return "less than a tick"
    return f"{sum(cpu_us.values()):.1f} ({', '.join(f'{name} {us:.1f}' for name, us in cpu_us.items())})"


def _table(found: Sequence[dict[str, Any]]) -> list[str]:
    """A commit's costs, a node a line."""
    rows: list[tuple[str, ...]] = [
        (
            "in flight",
            "API",
            "node",
            "CPU us (by thread)",
            "changes of threads",
            "system calls a commit",
            "function calls, Python + C",
        )
    ]
    for each in found:
        for role, node in each["nodes"].items():
            cpu = {name: value for name, value in node["cpu_us"].items() if value >= 0.05}
            calls = node.get("system_calls", {})
            rows.append(
                (
                    str(each["in_flight"]),
                    each["api"],
                    role,
                    _by_thread(cpu),
                    f"{sum(node['switches'].values()):.2f}",
                    ", ".join(f"{name} {calls[name]:.2f}" for name in SHOWN if calls.get(name, 0.0) >= 0.005),
                    "{python:.1f} + {c:.1f}".format_map(each["calls"]) if role == "leader" else "",
                )
            )
    return table(rows)
