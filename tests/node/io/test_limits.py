"""A limit of the process that keeps a node from writing is as a full disk: it does not lead until that is raised."""

import subprocess
import sys
from pathlib import Path

import pytest

FILE_SIZE = """
import resource, sys
from fastquorum import errors, sync
quick = dict(election_timeout_us=150_000, fetch_timeout_us=400_000, segment_bytes=1 << 20, preallocate_bytes=1 << 18)
with sync.open(sys.argv[1], node_id=1, kernels=sys.argv[2], **quick) as node:
    node.wait_ready(60)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        for _ in range(100):
            node.append(bytes(10_000), timeout=60)
    except errors.NotLeader as refused:
        assert "ulimit -f" in str(refused), refused
    else:
        raise SystemExit("it has written beyond the limit")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    node.wait_ready(60)
    while True:
        try:
            node.append(b"again", timeout=60)
            break
        except errors.NotLeader:
            node.wait_ready(60)
    print("goes on")
"""


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_beyond_the_largest_file_that_it_may_write_it_gives_up_the_lead_and_goes_on_later(
    tmp_path: Path, kernels: str
) -> None:
    words = [sys.executable, "-c", FILE_SIZE, str(tmp_path / "data"), kernels]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "goes on\n", done.stderr
