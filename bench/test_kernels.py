"""The kernels' cases under pytest-benchmark: `pytest bench --benchmark-only`, to compare commits with its tools.

No verdicts here; ratios against the yardsticks of the same minute come from `python -m bench`.
"""

from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from bench import floors
from bench.cases import Setting, kernel_cases
from bench.measure import Case, repeats


@cache
def _directory() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="fastquorum-bench-")


@cache
def _cases() -> dict[str, Case]:
    setting = Setting(_directory().name, is_quick=True, has_compiler=floors.has_compiler())
    return {f"{case.group}, {case.name}": case for case in kernel_cases(setting)}


ENTRIES = [(name, each.name) for name, case in _cases().items() for each in case.contenders]


@pytest.mark.parametrize(("name", "contender"), ENTRIES, ids=[f"{name}, {each}" for name, each in ENTRIES])
def test_kernel(benchmark: Any, name: str, contender: str) -> None:
    case = _cases()[name]
    case.assert_equal_results()
    run = next(each.run for each in case.contenders if each.name == contender)
    calls = case.repeat or repeats(case.contenders[0], round_ms=0.2)  # the same for all who are compared
    benchmark.group = f"{name}, {calls} calls"
    benchmark(run, calls)
