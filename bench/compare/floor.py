"""The C floor for a workload: three blocking processes that ship, write and sync, in groups of as many records.

With N appends in flight a group is N records; with batches it is one batch. An open loop has no floor.
"""

import os
import subprocess
from pathlib import Path

from bench import floors
from bench.commit import BATCH_OVERHEAD, RECORD_OVERHEAD
from bench.compare.cluster import ContenderFailed
from bench.compare.workload import VALUE_BYTES, Figures, Workload, parse

NAME = "C floor"
FIRST_COMMITS, COMMITS_MIN = 100, 60
BYTES_MAX = 256 << 20
"""Size of each process's file, which is filled with zeros before."""


class Floor:
    """Runs for about a given time: it remembers from slice to slice how fast a group was."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._groups_per_s = directory, dict[str, float]()

    def run(self, workload: Workload, seconds: float) -> Figures:
        records = group_records(workload)
        size = group_bytes(records)
        known = self._groups_per_s.get(workload.name)
        wanted = int(known * seconds) if known else FIRST_COMMITS
        groups = max(COMMITS_MIN, min(wanted, BYTES_MAX // size))
        command = [str(floors.commit_program()), str(self._directory), str(groups), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ContenderFailed(f"{NAME} ended with {done.returncode}: {done.stderr.strip()}")
        per_group = parse(NAME, done.stdout)
        self._groups_per_s[workload.name] = per_group.commits_per_s
        return Figures(
            commits=per_group.commits * records,
            seconds=per_group.seconds,
            percentiles_us=per_group.percentiles_us,
            cpu_us=per_group.cpu_us,
        )


def group_records(workload: Workload) -> int:
    return workload.batch if workload.batch > 1 else workload.in_flight


def group_bytes(records: int) -> int:
    """Return the size of a v2 record batch with so many values."""
    return BATCH_OVERHEAD + records * (RECORD_OVERHEAD + VALUE_BYTES)


def settle_disk() -> None:
    """Sync the disk, so that a contender does not pay for the unwritten pages of an earlier one."""
    os.sync()
