"""A subinterpreter cannot run a node or a member: it is refused before anything is begun, and the process ends as it
should."""

import subprocess
import sys
from pathlib import Path

import pytest

MEMBER = "bootstrap='127.0.0.1:1', broker_id=1, cluster_id='x', path={path!r}"
WAYS = {
    "threads": "from fastquorum import sync; sync.open({path!r}, node_id=1)",
    "asyncio": "import asyncio, fastquorum as fq; asyncio.run(fq.open({path!r}, node_id=1).__aenter__())",
    "members": f"from fastquorum import sync; sync.join({MEMBER})",
    "members, asyncio": f"import asyncio, fastquorum.broker as b; asyncio.run(b.join({MEMBER}).__aenter__())",
}
PROGRAM = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
try:
    found = interpreters.run_string(interpreters.create(), sys.argv[1])
    print(found)  # newer Pythons return what was raised
except interpreters.RunFailedError as error:
    print(error)
"""


@pytest.mark.parametrize("way", WAYS)
def test_opening_in_a_subinterpreter_is_refused_before_anything_is_begun(tmp_path: Path, way: str) -> None:
    path = tmp_path / "n"
    work = f"import warnings; warnings.simplefilter('ignore'); {WAYS[way].format(path=str(path))}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, work], capture_output=True, text=True, timeout=120, check=True
    )
    # NumPy comes first where the blocking API is imported, and refuses by itself since Python 3.13.
    is_ours = "can run in a subinterpreter" in done.stdout and "UsageError" in done.stdout
    assert is_ours or "numpy._core._multiarray_umath does not support loading in subinterpreters" in done.stdout
    assert not path.exists()
