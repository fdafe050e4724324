"""What counts as a crash, by histories of ends that are made up; and one of a process that is real."""

import signal
from pathlib import Path

import pytest

from tests.process.chaos.ends import EXCUSED_S, End, Struck, end_of, problems
from tests.process.processes import NodeProcess

TRACEBACK = 'Traceback (most recent call last):\n  File "node.py", line 1, in <module>\nValueError: no\n'
MEMORY = Struck(1, "no memory", 99.0)
KILLED, STOPPED = frozenset({signal.SIGKILL}), frozenset({signal.SIGTERM})


def end(code: int | None, *signals: int, node_id: int = 1, stderr: str = "", had_opened: bool = True) -> End:
    return End(node_id, code, 100.0, frozenset(signals), had_opened, stderr)


@pytest.mark.parametrize(
    "innocent",
    [
        end(-signal.SIGKILL, signal.SIGKILL),
        end(0, signal.SIGTERM),
        end(-signal.SIGTERM, signal.SIGTERM, had_opened=False),
        end(None),
    ],
    ids=["killed", "stopped", "stopped while it starts", "running"],
)
def test_what_the_nemesis_ended_is_no_problem(innocent: End) -> None:
    assert problems([innocent], []) == []


@pytest.mark.parametrize(
    ("crash", "expected"),
    [
        (end(-signal.SIGSEGV), "SIGSEGV"),
        (end(-signal.SIGABRT, signal.SIGKILL), "SIGABRT"),
        (end(-signal.SIGKILL), "SIGKILL"),
        (end(-signal.SIGTERM, signal.SIGTERM), "SIGTERM"),
        (end(0), "exit code 0"),
        (end(1, signal.SIGTERM), "exit code 1"),
        (end(4), "exit code 4"),
        (end(5), "exit code 5"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_end_that_nobody_caused_is_a_problem_with_its_last_lines(crash: End, expected: str) -> None:
    [found] = problems([End(1, crash.code, 100.0, crash.signals, True, "before\nlast words\n")], [])
    assert found.startswith("node 1 ended by itself")
    assert expected in found
    assert found.endswith("last words")


@pytest.mark.parametrize("fault", ["no memory", "power loss"])
def test_a_node_may_give_up_with_exit_code_5_under_a_fault_that_explains_it(fault: str) -> None:
    struck = [Struck(1, fault, 99.0)]
    assert problems([end(5)], struck) == []
    assert problems([end(-signal.SIGABRT)], struck) != []
    assert problems([end(-signal.SIGSEGV)], struck) != []


def test_no_fault_explains_an_end_of_another_node_or_one_long_after_or_before() -> None:
    assert problems([end(5, node_id=2)], [MEMORY]) != []
    assert problems([end(5)], [Struck(1, "no memory", 100.0 - EXCUSED_S - 1)]) != []
    assert problems([end(5)], [Struck(1, "no memory", 101.0)]) != []
    assert problems([end(5)], [Struck(1, "no descriptors", 99.0)]) != []


@pytest.mark.parametrize(
    "stderr",
    [
        TRACEBACK,
        "terminate called after throwing an instance of 'std::bad_alloc'\n",
        "==7==ERROR: AddressSanitizer: heap-use-after-free\n",
        "WARNING: ThreadSanitizer: data race\n",
        "lane.h:7:3: runtime error: signed integer overflow\n",
        "Fatal Python error: Segmentation fault\n",
    ],
)
def test_a_crash_on_stderr_is_a_problem_however_the_process_ended(stderr: str) -> None:
    for each in (end(-signal.SIGKILL, signal.SIGKILL), end(0, signal.SIGTERM), end(5), end(None)):
        [found] = problems([End(1, each.code, 100.0, each.signals, True, stderr)], [MEMORY])
        assert found.endswith(stderr.rstrip())


def test_a_process_s_end_says_what_it_did_itself_and_not_the_others(tmp_path: Path) -> None:
    errors = tmp_path / "node1.stderr"
    errors.write_text(TRACEBACK)
    process = NodeProcess(1, ["crash"], errors=errors, module="tests.process.no_such_module")
    process.ended()
    with errors.open("a") as stderr:
        stderr.write("terminate called by the one after it")
    found = end_of(process)
    process.close()
    assert (found.code, found.signals, found.had_opened) == (1, frozenset(), False)
    assert "no_such_module" in found.stderr
    assert "ValueError" not in found.stderr
    assert "terminate called" not in found.stderr
    assert problems([found], []) != []
