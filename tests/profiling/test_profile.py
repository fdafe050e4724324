"""Parts of a profile: stacks as the tools print them, the flame graph, threads, the report."""

import os
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastquorum.errors import UsageError
from fastquorum.profile import flame, stacks, tools
from fastquorum.profile.profiling import Profiler, Subject
from fastquorum.profile.report import achieved
from fastquorum.profile.threads import Times, between, read_threads
from fastquorum.profile.tools import Missing, Perf, PySpy, SamplerFailed

SPY = """\
thread (0x7F00AA): "MainThread";main (worker.py:290);append (sync.py:101);Shell_append (_shell.so) 30
thread (0x7F00BB): "fastquorum-1";Reactor._loop (reactor.py:150) 10
odd line without a count
"""
_MAIN = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (fastquorum::Engine::*)()> > >::_M_run()"
_SERVE = "fastquorum::node::Engine::serve(long, fastquorum::Span, long)"
PERF = f"""\
fq-sockets  4242\x20
\t    7f2a11 {_SERVE}+0x41 (/a/b/_shell.so)
\t    7f2a22 {_MAIN}+0x1 (/a/b/_shell.so)

fq-sockets  4242\x20
\tffffffff81 tcp_sendmsg+0x9 ([kernel.kallsyms])
\t    7f2a11 {_SERVE}+0x99 (/a/b/_shell.so)

"""


def test_py_spys_samples_become_seconds_by_stack() -> None:
    assert stacks.of_py_spy(SPY, 100) == {
        ("MainThread", "main (worker.py:290)", "append (sync.py:101)", "Shell_append (_shell.so)"): 0.3,
        ("fastquorum-1", "Reactor._loop (reactor.py:150)"): 0.1,
    }


def test_perfs_samples_are_turned_over_and_lose_their_arguments() -> None:
    found = stacks.of_perf(PERF, 50)
    serve = "fastquorum::node::Engine::serve (_shell.so)"
    assert found["fq-sockets (native)", serve, "tcp_sendmsg ([kernel.kallsyms])"] == 0.02
    (other,) = (stack for stack in found if stack[-1] == serve)
    assert other[0] == "fq-sockets (native)"
    assert len(other) == 3


def test_what_has_no_symbol_is_one_frame_whatever_its_address() -> None:
    samples = "0x7f01 (libc.so.6);0x7f02 (libc.so.6);f (x.py:1);0x1 (a/b/_shell.cpython-311-x86_64-linux-gnu.so) 5\n"
    assert stacks.of_py_spy(samples.replace("0x7f01", 'thread (0x1): "a";0x7f01'), 100) == {
        ("a", "[no symbol] (libc.so.6)", "f (x.py:1)", "[no symbol] (_shell.so)"): 0.05
    }


@pytest.mark.parametrize(
    ("stack", "waits"),
    [
        (("t", "f (x.py:1)", "epoll_wait (libc.so.6)"), True),
        (("t", "f (x.py:1)", "syscall (libc.so.6)"), True),
        (("t", "f (x.py:1)", "take_gil (libpython3.11.so)", "[no symbol] (libc.so.6)"), True),
        (("t", "Condition.wait (threading.py:288)", "[no symbol] (libc.so.6)"), True),
        (("t", "PyBytes_FromStringAndSize (python3)", "[no symbol] (libc.so.6)"), False),
        (("t", "f (x.py:1)"), False),
        (("t", "wait_for (x.py:1)"), False),
        (("t",), False),
    ],
)
def test_waits_are_known_by_their_innermost_frame(stack: tuple[str, ...], waits: bool) -> None:
    assert stacks.is_waiting(stack) is waits


def test_samples_say_where_and_the_threads_time_how_much() -> None:
    found = {("a", "f"): 3.0, ("a", "g"): 1.0, ("gone", "f"): 5.0}
    assert stacks.scaled(found, {"a": 0.4, "unseen": 0.1, "idle": 0.0}) == {
        ("a", "f"): pytest.approx(0.3),
        ("a", "g"): pytest.approx(0.1),
        ("unseen", "stacks not known"): 0.1,
    }


def test_stacks_are_put_together_and_written_as_others_read_them() -> None:
    one = stacks.below("node 1 (leader)", {("a", "b"): 0.5})
    both = stacks.together([one, {("node 1 (leader)", "a", "b"): 0.25, ("x",): 1.0}])
    assert stacks.collapsed(both) == "node 1 (leader);a;b 750000\nx 1000000\n"


def test_a_flame_graph_is_as_wide_as_the_time_in_each_frame() -> None:
    found = stacks.together([stacks.of_py_spy(SPY, 100), stacks.of_perf(PERF, 50)])
    drawn = ET.fromstring(flame.draw(found, 'of "a<b"'))
    name = "{http://www.w3.org/2000/svg}"
    frames = {group.attrib["data-n"]: group for group in drawn.iter(f"{name}g")}
    assert float(frames["all"].attrib["data-w"]) == 1
    assert float(frames["main (worker.py:290)"].attrib["data-w"]) == pytest.approx(0.3 / 0.44, abs=1e-5)
    fills = {frame: next(group.iter(f"{name}rect")).attrib["fill"] for frame, group in frames.items()}
    assert fills["main (worker.py:290)"] == flame.COLOURS["python"]
    assert fills["Shell_append (_shell.so)"] == flame.COLOURS["native"]
    assert fills["tcp_sendmsg ([kernel.kallsyms])"] == flame.COLOURS["kernel"]
    assert fills["fq-sockets (native)"] == flame.COLOURS["group"]
    titles = [title.text for title in drawn.iter(f"{name}title")]
    assert "main (worker.py:290): 0.30 s, 68.2%" in titles


def test_children_lie_within_their_parents_side_by_side() -> None:
    found = {("a", "b"): 1.0, ("a", "c"): 2.0, ("d",): 1.0}
    tree = flame.tree_of(found)
    placed = {frame.name: (at, share, depth) for frame, at, share, depth in flame._placed(tree, 0, 0, tree.seconds)}
    assert placed == {
        "all": (0, 1, 0),
        "a": (0, 0.75, 1),
        "b": (0, 0.25, 2),
        "c": (0.25, 0.5, 2),
        "d": (0.75, 0.25, 1),
    }


def test_nothing_found_is_drawn_as_nothing() -> None:
    assert "<g " not in flame.draw({}, "empty")


def test_threads_of_a_process_are_known_by_their_time() -> None:
    over = threading.Event()
    busy = threading.Thread(target=lambda: over.wait() or None)
    busy.start()
    before = read_threads(os.getpid())
    while read_threads(os.getpid())[os.getpid()].running_s - before[os.getpid()].running_s < 0.02:
        pass
    over.set()
    busy.join()
    assert busy.native_id in before
    rows = between(before, read_threads(os.getpid()), 1.0)
    main = next(row for row in rows if row["thread"] == os.getpid())
    assert main["name"] == "main"
    assert main["running_s"] >= 0.02
    assert all(row["running_s"] >= 0 for row in rows)
    assert read_threads(2**22) == {}


def test_time_off_the_processor_is_what_is_left() -> None:
    before = {1: Times("fq-flusher", 0, 0, 1.0, 0.5, 10, 1)}
    after = {1: Times("fq-flusher", 0, 0.5, 1.5, 0.75, 30, 2), 2: Times("new", 0, 0, 0.25, -1, 1, 0)}
    first, second = between(before, after, 2.0)
    assert (first["running_s"], first["ready_s"], first["blocked_s"]) == (0.5, 0.25, 1.25)
    assert (first["given_up"], first["taken"], first["is_native"]) == (20, 1, True)
    assert (second["running_s"], second["ready_s"], second["blocked_s"]) == (0.25, None, None)


# --- what is missing --------------------------------------------------------------------------------------------------


def test_a_load_that_was_ended_in_its_warm_up_has_words() -> None:
    assert achieved({"achieved_per_s": 0.0, "latency_us": {"p50": None, "p99": None}}).endswith(
        "no append was measured"
    )
    assert (
        achieved({"achieved_per_s": 1e3, "latency_us": {"p50": 2, "p99": 3}}) == "1,000 records/s, p50 2 us, p99 3 us"
    )


def test_without_py_spy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(tools.sysconfig, "get_path", lambda name: "/nowhere")
    with pytest.raises(UsageError, match=r"pip install 'fastquorum\[profile\]'"):
        tools.find_py_spy()


def test_without_perf_it_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    with pytest.raises(SamplerFailed) as caught:
        Perf([1], 100, str(tmp_path / "x"))
    assert caught.value.missing.why == "perf is not installed"
    counters = tools.hardware_counters_missing()
    assert counters is not None
    assert counters.why == "perf is not installed"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("Permission Denied: Try running again with elevated permissions", "ptrace is not permitted here"),
        ("Error: Failed to find python version from target process", "Failed to find python version"),
    ],
)
def test_what_py_spy_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, message: str, why: str) -> None:
    program = tmp_path / "py-spy"
    # It is not over yet when it has closed what it says things on.
    program.write_text(f"#!/bin/sh\necho '{message}' >&2\nexec >&- 2>&-\nsleep 0.2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(tools, "find_py_spy", lambda: str(program))
    with pytest.raises(SamplerFailed, match=why):
        PySpy(os.getpid(), 100, str(tmp_path / "x"))


def test_native_threads_that_nobody_looked_into_are_in_the_picture_by_their_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process with such a thread, and neither tool: the profile goes on, and says so."""
    monkeypatch.setattr("fastquorum.profile.profiling.PySpy", _Broken)
    monkeypatch.setattr("fastquorum.profile.profiling.Perf", _Broken)
    code = (
        "import ctypes, threading, time\n"
        "def spin():\n"
        "    ctypes.CDLL(None).prctl(15, b'fq-sockets', 0, 0, 0)\n"
        "    print(flush=True)\n"
        "    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()\n"
        "input()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        profiler = Profiler(str(tmp_path), 100, "leader")
        with profiler.around([Subject(7, process.pid, True), Subject(8, process.pid, False)]):
            before = _native_s(process.pid)
            while _native_s(process.pid) < before + 0.1:
                pass
        process.communicate(b"\n")
    stack = ("node 7 (leader)", "fq-sockets (native)", "stacks not known")
    assert profiler.stacks[stack] >= 0.05
    assert {each[0] for each in profiler.stacks} == {"node 7 (leader)"}
    assert profiler.sampled == [7]
    assert not profiler.has_python
    assert Missing("all of it", "broken", "") in profiler.missing
    assert [missing.why for missing in profiler.missing].count("broken") == 1


class _Broken(SimpleNamespace):
    def __init__(self, *words: object) -> None:
        raise SamplerFailed(Missing("all of it", "broken", ""))


def _native_s(pid: int) -> float:
    return sum(times.user_s for times in read_threads(pid).values() if times.name == "fq-sockets")
