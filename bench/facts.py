"""What a figure depends on: machine, kernel, file system, build, commit. Printed with every result."""

import datetime
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import fastquorum


def percentile(values: list[int], percent: int) -> int:
    """The nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


PEERS = ("aiokafka", "confluent-kafka", "crc32c", "fastcrc", "google-crc32c", "kafka-python", "kio")


def facts(directory: str) -> dict[str, Any]:
    """Return facts about the machine, for JSON. `directory` holds the benchmark's files."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "directory": directory,
        "file_system": _file_system(directory),
        "fsync": "fdatasync after every write, on a file filled with zeros beforehand",
        "load_average": os.getloadavg()[0],
        "peers": {name: _version(name) for name in PEERS},
        "build": fastquorum.build_info()._asdict(),
    }


def _commit() -> str:
    root = Path(__file__).parent.parent
    try:
        text = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return text.stdout.strip()


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _file_system(directory: str) -> str:
    """Type and device of the mount that holds `directory`."""
    real, best, found = os.path.realpath(directory), "", ""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, point, kind = line.split()[:3]
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, f"{kind} on {device}"
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
