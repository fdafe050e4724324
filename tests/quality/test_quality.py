"""The house rules that a machine can check: lint, format, types, and who may import whom."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


def run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a tool of this environment on the checkout's sources; its output, which is also the failure's message."""
    environment = environment or {**os.environ, "PYTHONPATH": str(SOURCE)}
    plain = {**environment, "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_ruff_finds_nothing() -> None:
    run("-m", "ruff", "check", "--no-cache", "src", "tests", "bench")


def test_everything_is_formatted_by_ruff() -> None:
    run("-m", "ruff", "format", "--no-cache", "--check", "--diff", "src", "tests", "bench")


@pytest.mark.long
def test_mypy_strict_finds_nothing_in_the_sources() -> None:
    run("-m", "mypy", "--strict")


@pytest.mark.long
def test_the_stubs_tell_what_the_native_modules_offer() -> None:
    # Without PYTHONPATH: the modules that are looked at are the installed ones, the sources have none. What Cython adds
    # to every module, and offers to C only, is in no stub.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    stubtest = ("-m", "mypy.stubtest", "--ignore-missing-stub", "fastquorum.kernels.native")
    run(*stubtest, environment={**environment, "MYPYPATH": str(SOURCE)})


def test_the_import_contracts_hold() -> None:
    lint_imports = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    assert "0 broken" in run("-c", lint_imports, "--no-cache", "--config", "pyproject.toml")


@pytest.mark.parametrize("room", ["broker", "node", "storage"])
def test_a_rooms_core_reaches_the_system_only_through_its_io(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SOURCE))
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    forbidden = next(contract["forbidden_modules"] for contract in contracts if "asyncio" in str(contract))
    # The broker's face names for the type checker what it loads when it is used.
    for_types = room == "broker"
    graph = grimp.build_graph(
        "fastquorum", include_external_packages=True, exclude_type_checking_imports=for_types, cache_dir=None
    )
    package = f"fastquorum.{room}"
    cores = [
        module
        for module in sorted({package} | graph.find_descendants(package))
        if not module.removeprefix(f"{package}.").startswith("io")
    ]
    assert len(cores) > 2
    chains = [
        " -> ".join(chain)
        for core in cores
        for target in forbidden
        if target in graph.modules and (chain := graph.find_shortest_chain(core, target))
    ]
    assert not chains, "\n".join(chains)
