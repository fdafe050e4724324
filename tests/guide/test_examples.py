"""Every example in README and the guide runs: programs, fragments over an open node, tests, and lines for a shell.

What a block holds says how it is run:

* `sh` blocks of a document are pasted into one shell, in order; ports are drawn anew.
* a `python` block with tests in it is run by pytest,
* one that asks h1:9093 for a cluster is run beside a controller, which has the address and the cluster id,
* one that imports anything is a program, which is run as it is, in an empty directory,
* any other is a fragment: it finds `quorum`, the open node of a quorum of one.
"""

import ast
import asyncio
import inspect
import os
import random
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.loopback import HOST
from fastquorum.testing import async_quorum
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S
from tests.broker.clusters import one_controller
from tests.guide.documents import Block, block_of, blocks, documents

SHELL_S: Final = 240
PROGRAM_S: Final = 120
SESSION_US: Final = 9_000_000
"""What members take for granted that name no other."""
SPARK: Final = "from fastquorum.spark import"
"""What has this is run by tests/spark, in a session that is there already."""

_PORT: Final = re.compile(r"(127\.0\.0\.1:|localhost:)(\d{4,5})(\$\w+)?")
_SHIFT: Final = 100
"""Ports are drawn by moving all of them alike by a multiple of this, so that `3110$n` still fits 31101."""
_BOOTSTRAP: Final = re.compile(r'"h1:9093[^"]*"')

python_blocks = [each for path in documents() for each in blocks(path) if each.language == "python"]
shell_blocks = {path.stem: [each.text for each in blocks(path) if each.language == "sh"] for path in documents()}


def kind_of(block: Block) -> str:
    if SPARK in block.text:
        return "spark"
    if "def test_" in block.text:
        return "tests"
    if _BOOTSTRAP.search(block.text) and re.search(r"\bjoin\(", block.text):
        return "member"
    return "program" if re.search(r"^(import|from) ", block.text, re.MULTILINE) else "fragment"


def of_kind(kind: str) -> pytest.MarkDecorator:
    found = [pytest.param(each, id=each.name) for each in python_blocks if kind_of(each) == kind]
    return pytest.mark.parametrize("block", found)


def run_program(text: str, directory: Path) -> str:
    """Run it as a user does; what it prints."""
    (directory / "program.py").write_text(text)
    words = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=PROGRAM_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def printed(text: str) -> list[str]:
    """Return what a program's comments say that it prints."""
    return re.findall(r"# prints (.*)$", text, re.MULTILINE)


@of_kind("program")
def test_a_program_runs_and_prints_what_it_says(block: Block, tmp_path: Path) -> None:
    text = on_free_ports(block.text) if _PORT.search(block.text) else block.text
    assert run_program(text, tmp_path).splitlines()[: len(printed(text))] == printed(text)


def test_the_store_comes_to_the_same_on_every_node_and_is_read_behind_a_barrier() -> None:
    text = block_of("embed", "import asyncio\nimport json\n\n").removesuffix("asyncio.run(main())\n")
    names: dict[str, Any] = {}
    exec(text, names)

    async def main() -> None:
        async with async_quorum(3) as nodes, asyncio.TaskGroup() as tasks:
            stores = {node.node_id: names["Store"](node) for node in nodes}
            applying = [tasks.create_task(store.apply()) for store in stores.values()]
            leading = stores.pop(nodes.leader.node_id)
            for number in range(10):
                await leading.put("number", str(number))
                assert await leading.get("number") == str(number)
            with pytest.raises(fq.NotLeader):
                await next(iter(stores.values())).get("number")
            for store in stores.values():
                async with store.progress:
                    await store.progress.wait_for(lambda store=store: store.applied >= leading.applied)
                assert store.values == leading.values == {"number": "9"}
            for each in applying:
                each.cancel()

    asyncio.run(main())


@of_kind("tests")
def test_tests_pass(block: Block, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(block.text)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path)]
    words.append(f"--basetemp={tmp_path / 'written'}")  # the usual place would be cleared first, which takes minutes
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=PROGRAM_S)
    assert f"{block.text.count('def test_')} passed" in done.stdout, done.stdout + done.stderr


@of_kind("member")
def test_a_member_runs_beside_a_controller(block: Block, tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    with one_controller(tmp_path, session_timeout_us=SESSION_US) as bootstrap:
        text = _BOOTSTRAP.sub(f'"{bootstrap}"', block.text).replace('"ID"', f'"{CLUSTER_ID}"')
        shown = run_program(text, tmp_path / "program")
    assert shown.splitlines()[: len(printed(text))] == printed(text)


@of_kind("fragment")
def test_a_fragment_runs_over_an_open_node(block: Block, tmp_path: Path) -> None:
    names: dict[str, Any] = {"fq": fq, "asyncio": asyncio}
    code = compile(block.text, block.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not code.co_flags & inspect.CO_COROUTINE:
        with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
            quorum.wait_ready(WAIT_S)
            exec(code, {**names, "quorum": quorum})
        return

    async def main() -> None:
        async with fq.open(tmp_path, **QUICK, node_id=1) as quorum:
            await quorum.wait_ready(WAIT_S)
            await eval(code, {**names, "quorum": quorum})

    asyncio.run(main())


def on_free_ports(text: str) -> str:
    """Return the lines with other ports, on which nothing listens."""
    ports = [int(found[2]) for found in _PORT.finditer(text) if not found[3]]
    for shift in random.sample(range(-10_000, 0, _SHIFT), 100):
        if all(is_free(port + shift) for port in ports):
            break

    def moved(found: re.Match[str]) -> str:
        is_begun = bool(found[3])  # the last digit is a variable's
        return f"{found[1]}{int(found[2]) + (shift // 10 if is_begun else shift)}{found[3] or ''}"

    return _PORT.sub(moved, text)


def is_free(port: int) -> bool:
    with socket.socket() as each:
        try:
            each.bind((HOST, port))
        except OSError:
            return False
    return True


def test_ports_move_alike_where_a_digit_is_a_variables() -> None:
    moved = on_free_ports("127.0.0.1:31091 127.0.0.1:3109$n")
    first, begun = (each.removeprefix("127.0.0.1:") for each in moved.split())
    assert first == begun.replace("$n", "1") != "31091"


@pytest.mark.parametrize("document", [name for name, texts in shell_blocks.items() if texts])
def test_lines_for_a_shell_can_be_pasted(document: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, run in (("fastquorum", f"{sys.executable} -m fastquorum"), ("python", sys.executable)):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {run} "$@"\n')
        command.chmod(0o755)
    text = on_free_ports("\n".join(shell_blocks[document]))
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{text}"],
        cwd=tmp_path / "work",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SHELL_S,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
