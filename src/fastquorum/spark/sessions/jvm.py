"""The JVM of a command's session: it is over before the command says its last word, and soon after Ctrl-C.

PySpark starts it and leaves it to itself; when Ctrl-C comes, it asks it to cancel its jobs, on the connection of a call
that is under way. Here it is sent away, and so are its children. What it says on stderr passes through here: nothing of
it comes after the command's own words, and what it says of its own end after Ctrl-C is left out.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any, Final

from fastquorum.ending import Terminated, end

END_S: Final = 30.0
"""Of Spark's own cleaning up; then it is killed."""
_TOLD_S: Final = 5.0
"""For what it said last to come through; a child that has left its group may hold its stderr open."""
_CHUNK_BYTES: Final = 1 << 16
_ALWAYS: Final = b"WARNING: Using incubator modules"
"""Spark's launcher asks for one, and Java tells."""
_STDERR: Final = 2


class Jvm:
    """One, or none yet."""

    def __init__(self) -> None:
        self.is_interrupted = False
        """Ctrl-C, SIGTERM or SIGHUP."""
        self._signal = signal.SIGINT
        """What came last."""
        self._process: subprocess.Popen[bytes] | None = None
        self._telling: threading.Thread | None = None
        self._held: bytearray | None = None
        """What it said, while that is held back."""

    @property
    def is_sent_away(self) -> bool:
        """There was one, and one of these came: whatever is asked of it fails."""
        return self.is_interrupted and self._process is not None

    @contextlib.contextmanager
    def holding_back(self) -> Iterator[bytearray]:
        """Keep to ourselves what it says meanwhile: traces of Java, where it does not find its cluster. It is let out
        in the end, unless an error says in words what came of it."""
        held = self._held = bytearray()
        try:
            yield held
            self._held = None
            self._say(bytes(held))
        finally:
            self._held = None

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """The one that PySpark starts meanwhile is this one."""
        from pyspark import java_gateway

        module: Any = java_gateway
        popen = module.Popen
        # `launch_gateway` keeps the process to itself until it is up, which takes seconds.
        module.Popen = self._start
        try:
            yield
        finally:
            module.Popen = popen

    def _start(self, command: list[str], **settings: Any) -> "subprocess.Popen[bytes]":
        settings |= {"stderr": subprocess.PIPE, "start_new_session": True}
        process = self._process = subprocess.Popen(command, **settings)
        assert process.stderr is not None
        self._telling = threading.Thread(target=self._tell, args=(process.stderr,), daemon=True)
        self._telling.start()
        if self.is_interrupted:
            self._send(signal.SIGTERM)
        return process

    def _tell(self, stderr: IO[bytes]) -> None:
        held = b""
        with stderr:
            while said := os.read(stderr.fileno(), _CHUNK_BYTES):
                said, held = _heard(held + said)
                self._say(said)
            self._say(held)

    def _say(self, said: bytes) -> None:
        if self._held is not None:
            self._held += said
        elif said and not self.is_interrupted:
            with contextlib.suppress(OSError):
                os.write(_STDERR, said)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C is a KeyboardInterrupt, as where none of this is, and sends the JVM away; a second one kills it.
        SIGTERM and SIGHUP do the same, and are Terminated."""
        before = self._taken()
        logged = logging.root.manager.disable
        try:
            yield
        except BaseException as error:
            if self.is_interrupted:
                # Whatever came of it: a call that the JVM did not answer any more, for one.
                by = self._signal
                raise (KeyboardInterrupt if by == signal.SIGINT else Terminated(by)) from error
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if before:
                logging.disable(logged)

    def _taken(self) -> dict[signal.Signals, Any]:
        """The signals' handlers of before, where nobody has decided otherwise."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        usual = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGTERM: signal.SIG_DFL,
            signal.SIGHUP: signal.SIG_DFL,
        }
        free = [number for number, handler in usual.items() if signal.getsignal(number) in (handler, end)]
        return {number: signal.signal(number, self._interrupt) for number in free}

    def _interrupt(self, number: int, _: object) -> None:
        wanted = signal.SIGKILL if self.is_interrupted else signal.SIGTERM
        self.is_interrupted = True
        self._signal = signal.Signals(number)
        _say_nothing()
        self._send(wanted)
        raise KeyboardInterrupt

    def _send(self, wanted: signal.Signals) -> None:
        """To it and its children."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, wanted)

    def end(self) -> bool:
        """Wait until it is over: it goes when its stdin ends. The next session of this process has another. False:
        there was none."""
        process = self._process
        if process is None:
            return False
        from pyspark import SparkContext

        assert process.stdin is not None
        assert self._telling is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGKILL)
            process.wait()
        self._telling.join(_TOLD_S)
        SparkContext._gateway = SparkContext._jvm = None
        return True


def _heard(said: bytes) -> tuple[bytes, bytes]:
    """Without what every Java says at Spark's start, and what may become such a line: it is to be heard later."""
    *lines, last = said.split(b"\n")
    kept = b"".join(line + b"\n" for line in lines if not line.startswith(_ALWAYS))
    is_held = bool(last) and (last.startswith(_ALWAYS) or _ALWAYS.startswith(last))
    return (kept, last) if is_held else (kept + last, b"")


def _say_nothing() -> None:
    """Else PySpark tells, with tracebacks, wherever it is cut off from the JVM."""
    logging.disable()
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
