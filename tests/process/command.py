"""The `fastquorum` command in a process of its own, and pictures of directories that it must not have changed."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import ROOT


def fastquorum(
    *words: str, environment: Mapping[str, str] | None = None, timeout_s: float = 30
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [sys.executable, "-m", "fastquorum.cli", *words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )


def refusal(result: subprocess.CompletedProcess[str], exit_code: int = 2) -> str:
    """The one line that says why it was refused. AssertionError if it was not, or not in one line."""
    assert result.returncode == exit_code, (result.returncode, result.stdout, result.stderr)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("fastquorum ")
    return lines[0]


def picture(directory: Path) -> dict[str, bytes]:
    """Every file below, with its bytes. The lock file may come and go."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }
