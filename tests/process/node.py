"""One node in a process of its own, as a program that embeds it runs it: `python -m tests.process.node DATA CONFIG`.

Says what happens as JSON lines on stdout: opened, leadership, ready, appended, stopped, failed... Takes one command a
line on stdin: `append TIMEOUT_S VALUE`, `barrier TIMEOUT_S`, `transfer NODE`, `status`, and what else a program does:
`wait SECONDS`, `compute SECONDS` in Python, `hold SECONDS` in a C call that keeps the GIL, `hold-until FIFO` in one
that waits for a byte there. A command for which there is no memory is `refused`. SIGTERM and the end of stdin stop it
gracefully. It dies with whoever started it.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from fastquorum import sync
from fastquorum.errors import FastQuorumError

_PR_SET_PDEATHSIG = 1
WORK = "work"
"""The name of threads that do what they are told."""
_printing = threading.Lock()


class _Over:
    """An event that signals wake too: the kernel may give them to any thread, and a lock would not notice."""

    def __init__(self) -> None:
        self._is_set = False
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._write_fd, False)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def set(self) -> None:
        self._is_set = True
        os.write(self._write_fd, b"\0")

    def wait(self) -> None:
        while not self._is_set:
            os.read(self._read_fd, 64)


def say(event: str, **fields: Any) -> None:
    with _printing:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()


def _follow_leadership(node: sync.Quorum, over: _Over) -> None:
    """Report every leader, and when the quorum works under it."""
    try:
        for now in node.leadership():
            say("leadership", epoch=now.epoch, leader=now.leader_id, is_self=now.is_self, reason=now.reason)
            if now.leader_id >= 0:
                ready = node.wait_ready()
                say("ready", epoch=ready.epoch, leader=ready.leader_id)
    except FastQuorumError:
        pass  # whatever ended the node is reported by `main`
    finally:
        over.set()


def _append(node: sync.Quorum, timeout_s: float, value: str) -> None:
    try:
        say("appended", value=value, offset=node.append(value.encode(), timeout=timeout_s))
    except FastQuorumError as error:
        maybe = getattr(error, "maybe_committed", None)
        say("appended", value=value, error=type(error).__name__, maybe_committed=maybe, text=str(error))


def _status(node: sync.Quorum) -> None:
    say("status", role=node.role, epoch=node.epoch, end_offset=node.end_offset, high_watermark=node.high_watermark)


def _barrier(node: sync.Quorum, timeout_s: float) -> None:
    try:
        say("barrier", offset=node.read_barrier(timeout=timeout_s))
    except FastQuorumError as error:
        say("barrier", error=type(error).__name__, text=str(error))


def _transfer(node: sync.Quorum, heir: int) -> None:
    try:
        after = node.transfer_leadership(heir, timeout=5)
        say("transferred", epoch=after.epoch, leader=after.leader_id)
    except FastQuorumError as error:
        say("transferred", error=type(error).__name__, text=str(error))


def _wait(seconds: float) -> None:
    time.sleep(seconds)
    say("waited")


def _compute(seconds: float) -> None:
    """Python alone, which gives the GIL away only when it is asked for."""
    say("computing")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
    say("computed")


def _hold(seconds: float) -> None:
    """Hold the GIL, like an extension that computes and does not release it."""
    say("holding")
    ctypes.PyDLL(None).usleep(round(seconds * 1e6))
    say("held")


def _hold_until(fifo: str) -> None:
    fd = os.open(fifo, os.O_RDWR)
    say("holding")
    ctypes.PyDLL(None).read(fd, ctypes.create_string_buffer(1), 1)
    os.close(fd)
    say("held")


def _work(does: Callable[..., None], *of: object) -> threading.Thread:
    return threading.Thread(target=does, args=of, daemon=True, name=WORK)


def _ignored(what: "sys.UnraisableHookArgs") -> None:
    """A thread of this program's, not the node's, that began without memory is refused, too."""
    thread = getattr(what.object, "__self__", None)
    if isinstance(what.exc_value, MemoryError) and isinstance(thread, threading.Thread) and thread.name == WORK:
        say("refused", text="no memory for what a thread begins with")
    else:
        sys.__unraisablehook__(what)


def _obey(node: sync.Quorum, over: _Over) -> None:
    for line in sys.stdin:
        match line.rstrip("\n").split(" ", 2):
            case ["append", timeout_s, value]:
                work = _work(_append, node, float(timeout_s), value)
            case ["barrier", timeout_s]:
                work = _work(_barrier, node, float(timeout_s))
            case ["status"]:
                work = _work(_status, node)
            case ["wait" | "compute" | "hold" as what, seconds]:
                does = {"wait": _wait, "compute": _compute, "hold": _hold}[what]
                work = _work(does, float(seconds))
            case ["hold-until", fifo]:
                work = _work(_hold_until, fifo)
            case ["transfer", heir]:
                work = _work(_transfer, node, int(heir))
            case _:
                raise AssertionError(line)
        try:
            work.start()
        except (RuntimeError, MemoryError) as error:  # no memory for a thread: the program goes on without
            say("refused", command=line, text=str(error))
    over.set()


def main(data: str, config: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.unraisablehook = _ignored
    over = _Over()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        node = sync.open(data, config_file=config)
    except FastQuorumError as error:
        say("failed", error=type(error).__name__, text=str(error))
        return error.exit_code
    say("opened", endpoint=str(node.endpoint), end_offset=node.end_offset)
    for work in (_follow_leadership, _obey):
        threading.Thread(target=work, args=(node, over), daemon=True).start()
    over.wait()
    began = time.monotonic()
    error: FastQuorumError | None = node._node.error
    if error is None:
        try:
            node.close()
        except FastQuorumError as failed:
            error = failed
    error = error or node._node.error
    if error is not None:
        say("failed", error=type(error).__name__, text=str(error))
        return error.exit_code
    say("stopped", took_s=round(time.monotonic() - began, 3))
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(code)  # without waiting for the thread that reads stdin
