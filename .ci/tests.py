"""Runs the README's test command, with the arguments of this; up to three failed tests of real processes are tried once
more.

A test that passes then is printed as FLAKY, with what both runs said, and does not fail the gate: whether two processes
meet in time is not always theirs to say on a busy machine. Anything else that fails does, at once: tests within one
process, a fourth failure, an error that is no failed test.
"""

import json
import subprocess
import sys
from pathlib import Path

PYTEST = ".venv/bin/pytest"
REAL_PROCESSES = (
    "api",
    "bench",
    "broker",
    "cli",
    "guide",
    "installed",
    "interop",
    "load",
    "node/io",
    "observe",
    "process",
    "profiling",
    "spark",
    "tracing",
)
"""Directories of tests/ whose tests start processes, or talk over sockets to nodes that run."""
AGAIN_MAX = 3
TESTS_FAILED = 1
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output, which is passed on as it comes."""
    lines = []
    with subprocess.Popen([PYTEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return running.returncode, "".join(lines)


def may_be_tried_again(failed: list[str]) -> bool:
    return 0 < len(failed) <= AGAIN_MAX and all(
        each.startswith(tuple(f"tests/{room}/" for room in REAL_PROCESSES)) for each in failed
    )


def main(arguments: list[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    code, first = run(*arguments)
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if code != TESTS_FAILED or not may_be_tried_again(failed):
        return code
    print(f"== once more: {', '.join(failed)}", flush=True)
    code, second = run("-n0", "-rA", *arguments, *failed)
    if code == 0:
        print(f"== FLAKY: {', '.join(failed)}\n== what the first run said\n{_failures(first)}")
        print(f"== what the second run said\n{second}", flush=True)
    return code


def _failures(output: str) -> str:
    """From pytest's heading of the failures on."""
    return output[max(output.find(" FAILURES ="), output.find(" ERRORS ="), 0) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
