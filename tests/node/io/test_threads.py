"""Where the system gives no more threads a node says so, and leaves nothing behind that is locked or open."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.privileges import missing

AS_ANOTHER_USER = (
    *("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"),
    *("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"),
)
"""Root has no limit of processes; another user's are counted, and this one has no others."""
PROGRAM = """
import gc, os, resource, sys
from fastquorum import sync
from fastquorum.errors import FatalError
path, kernels = sys.argv[1:]
for _ in "12":  # whatever is imported, and made once, is there before threads are short
    with sync.open(path, node_id=1, kernels=kernels):
        pass
hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
gc.collect()
files = len(os.listdir("/proc/self/fd"))
for more in range(20):
    threads = len(os.listdir("/proc/self/task"))
    resource.setrlimit(resource.RLIMIT_NPROC, (threads + more, hard))
    try:
        quorum = sync.open(path, kernels=kernels)
    except FatalError as error:
        assert "thread" in str(error), error
    else:
        quorum.close()
        print("opened with", more)
        break
    gc.collect()
    left = len(os.listdir("/proc/self/fd")) - files
    assert not left, (more, left)
"""


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_node_that_gets_too_few_threads_says_so_and_opens_when_there_are_more(tmp_path: Path, kernels: str) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        missing("another user id needs root and setpriv")
    done = subprocess.run(
        [*AS_ANOTHER_USER, sys.executable, "-c", PROGRAM, str(tmp_path / "n1"), kernels],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= 2
