"""Where Python leaves out assertions and docstrings (-OO, PYTHONOPTIMIZE) everything works as ever."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fastquorum

SOURCES = Path(fastquorum.__file__).parent
APPENDS = """
import asyncio, sys
import fastquorum as fq

async def main():
    async with fq.open(sys.argv[1], node_id=1) as quorum:
        await quorum.wait_ready()
        offset = await quorum.append(b"kept")
        async for batch in quorum.committed(from_offset=offset):
            print([record.value for record in batch.records])
            break

asyncio.run(main())
"""
CHANGES = {
    "setdefault",
    "pop",
    "popleft",
    "popitem",
    "append",
    "add",
    "remove",
    "discard",
    "update",
    "extend",
    "insert",
}
"""Methods of Python's own that change what they are called on."""


@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_a_node_opens_appends_and_reads(tmp_path: Path, option: str) -> None:
    words = [sys.executable, option, "-c", APPENDS, str(tmp_path / "n")]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("[b'kept']\n", "")


def test_the_command_simulates_a_quorum() -> None:
    words = [sys.executable, "-OO", "-m", "fastquorum", "sim", "run", "--seed", "7"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("seed 7: ok")


def test_no_assertion_changes_anything() -> None:
    found = [
        f"{path}:{statement.lineno}"
        for path in SOURCES.rglob("*.py")
        for statement in ast.walk(ast.parse(path.read_text()))
        if isinstance(statement, ast.Assert)
        for part in ast.walk(statement.test)
        if isinstance(part, ast.NamedExpr | ast.Await)
        or (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGES)
    ]
    assert found == []
