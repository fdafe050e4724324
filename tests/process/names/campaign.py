"""Every case of names and addresses, each in a network and mount namespace of its own.

python -m tests.process.campaign names [--jobs N] [CASE ...]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.conftest import ROOT
from tests.process.names.cases import CASES, Steps

CASE_S: Final = 240.0
"""A case that takes longer hangs."""


def missing_namespaces() -> str:
    """Why no namespace can be made here; empty if one can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "a network and mount namespace needs root and unshare"
    tried = subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"unshare is not allowed here: {tried.stderr.strip()}"


def run_case(name: str, directory: Path) -> Steps:
    """What each step took, in seconds. AssertionError with all that was said if it failed."""
    inside = ["unshare", "-n", "-m", sys.executable, "-m", "tests.process.names.cases", name, str(directory)]
    done = subprocess.run(inside, cwd=ROOT, capture_output=True, text=True, timeout=CASE_S, check=False)
    assert done.returncode == 0, f"{name}:\n{done.stdout}{done.stderr}"
    steps: Steps = json.loads(done.stdout)
    return steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", nargs="*", choices=[*CASES, []], help="all, if none is named")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time: they wait more than they work")


def run(arguments: argparse.Namespace) -> int:
    chosen = arguments.case or list(CASES)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        held = list(pool.map(_holds, chosen))
    failed = [name for name, is_held in zip(chosen, held, strict=True) if not is_held]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all held")
    return 1 if failed else 0


def _holds(name: str) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fastquorum-names-") as directory:
        try:
            steps = run_case(name, Path(directory))
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"FAILED {error}", flush=True)
            return False
    durations = ", ".join(f"{step} {took_s:.1f} s" for step, took_s in steps.items())
    print(f"{name}: {durations} ({time.monotonic() - began:.0f} s in all)", flush=True)
    return True
