"""Every example in the public API's docstrings runs, against a real node, and prints what it says."""

import ast
import asyncio
import doctest
import inspect
import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

import fastquorum
from fastquorum import log, sync
from fastquorum.api import blocking_producer, opening, producer
from fastquorum.api import quorum as asynchronous
from fastquorum.broker.io import blocking, membership
from fastquorum.broker.io import opening as joining
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S
from tests.broker.clusters import OFTEN, join, one_controller
from tests.guide.documents import GUIDE, blocks
from tests.wire.golden import CLUSTER

TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def examples(module: ModuleType) -> list[tuple[str, list[doctest.Example]]]:
    """(name, examples) of every docstring in the module that has any."""
    parser = doctest.DocTestParser()
    found = []
    for test in doctest.DocTestFinder(parser=parser, recurse=True).find(module):
        if test.examples:
            found.append((test.name, test.examples))
    return found


def run(steps: list[doctest.Example], names: dict[str, Any], loop: asyncio.AbstractEventLoop | None) -> None:
    for step in steps:
        code = compile(step.source, "<example>", "single", flags=TOP_LEVEL_AWAIT)
        printed = io.StringIO()
        with redirect_stdout(printed):
            if loop is None:
                eval(code, names)
            else:
                loop.run_until_complete(step_in_loop(code, names))
        assert printed.getvalue() == step.want, step.source


async def step_in_loop(code: CodeType, names: dict[str, Any]) -> None:
    result = eval(code, names)
    if code.co_flags & inspect.CO_COROUTINE:
        await result


def names_of(directory: Path, **more: object) -> dict[str, Any]:
    of_package = {"fastquorum": fastquorum, "asyncio": asyncio, "open": opening.open}
    return {**vars(asynchronous), **of_package, "directory": str(directory), **more}


def ids(module: ModuleType) -> list[Any]:
    return [pytest.param(steps, id=name) for name, steps in examples(module)]


@pytest.mark.parametrize("steps", [*ids(opening), *ids(asynchronous), *ids(producer)])
def test_asyncio_examples(tmp_path: Path, steps: list[doctest.Example]) -> None:
    if any("asyncio.run" in step.source for step in steps):
        run(steps, names_of(tmp_path), None)
        return
    loop = asyncio.new_event_loop()
    try:
        quorum = loop.run_until_complete(fastquorum.open(str(tmp_path), **QUICK, node_id=1))
        loop.run_until_complete(quorum.wait_ready(WAIT_S))
        run(steps, names_of(tmp_path, quorum=quorum), loop)
        loop.run_until_complete(quorum.close())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.mark.parametrize("steps", [*ids(sync), *ids(blocking_producer)])
def test_blocking_examples(tmp_path: Path, steps: list[doctest.Example]) -> None:
    if any("sync.open" in step.source for step in steps):
        run(steps, names_of(tmp_path), None)
        return
    with sync.open(str(tmp_path), **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        run(steps, names_of(tmp_path, quorum=quorum), None)


@pytest.mark.parametrize("steps", ids(log))
def test_offline_examples(tmp_path: Path, steps: list[doctest.Example]) -> None:
    """Examples of metadata run on a log that Apache Kafka left."""
    if any(".image(" in step.source or ".diff(" in step.source for step in steps):
        run(steps, names_of(CLUSTER / "c1"), None)
        return
    with sync.open(str(tmp_path), **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"one", timeout=WAIT_S)
        quorum.append(b"two", timeout=WAIT_S)
    run(steps, names_of(tmp_path), None)


SESSION_US = 9_000_000
"""The default, which the examples leave as it is."""


@pytest.mark.parametrize("steps", [*ids(joining), *ids(membership), *ids(blocking)])
def test_membership_examples(tmp_path: Path, steps: list[doctest.Example]) -> None:
    with one_controller(tmp_path, session_timeout_us=SESSION_US) as bootstrap:
        names = {"bootstrap": bootstrap, "cluster_id": CLUSTER_ID, "asyncio": asyncio, "join": sync.join}
        if any("join(" in step.source for step in steps):
            is_blocking = not any("async" in step.source for step in steps)
            run(steps, {**names, "join": sync.join if is_blocking else fastquorum.broker.join}, None)
        elif any("await" in step.source or "async" in step.source for step in steps):
            with asyncio.Runner() as runner:
                made = runner.run(
                    fastquorum.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, **OFTEN)
                )
                run(steps, {**names, "membership": made}, runner.get_loop())
                runner.run(made.close())
        else:
            with join(bootstrap) as held:
                held.wait_active(WAIT_S)
                run(steps, {**names, "membership": held}, None)


def test_the_guides_holder_cannot_write_after_it_was_replaced(tmp_path: Path) -> None:
    (code,) = (each.text for each in blocks(GUIDE / "elect.md") if "class Store" in each.text)
    with one_controller(tmp_path, session_timeout_us=SESSION_US) as bootstrap:
        names: dict[str, Any] = {}
        exec(code.replace("h1:9093,h2:9093", bootstrap).replace('"ID"', f'"{CLUSTER_ID}"'), names)
        store = names["Store"]()
        asyncio.run(names["work"](store))
        first = store.token
        asyncio.run(names["work"](store))
        assert store.token > first >= 0
        with pytest.raises(PermissionError, match=f"token {first} is over"):
            store.write(first, "late")
    assert store.value == "mine"


@pytest.mark.parametrize("module", [asynchronous, sync, log])
def test_every_public_method_has_an_example(module: ModuleType) -> None:
    shown = {name.rpartition(".")[2] for name, _ in examples(module)}
    if module is asynchronous:
        shown |= {name.rpartition(".")[2] for name, _ in examples(opening)}
    of_quorum = {"open", "append", "append_nowait", "read_barrier", "committed", "leadership", "describe", "wait_ready"}
    wanted = {"open", "batches", "records", "image", "diff"} if module is log else of_quorum
    assert wanted <= shown


def test_importing_the_package_loads_nothing_else() -> None:
    code = (
        "import sys, fastquorum\n"
        "print([m for m in sys.modules if m.startswith('fastquorum.') or m in ('numpy', 'lmdb', 'asyncio')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert shown == "['fastquorum.lazy', 'fastquorum.moved', 'fastquorum.version']"
    for name in fastquorum.__all__:
        if name != "sim":
            assert getattr(fastquorum, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        fastquorum.nonsense  # noqa: B018


@pytest.mark.parametrize("module", ["fastquorum", "fastquorum.broker"])
def test_what_is_loaded_when_it_is_used_is_listed_before(module: str) -> None:
    code = f"import {module}; print(set({module}.__all__) - set(dir({module})))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert shown == "set()"
