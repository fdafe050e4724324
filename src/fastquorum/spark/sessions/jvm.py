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
"""Time for Spark to clean up; then the JVM is killed."""
_DRAIN_S: Final = 5.0
"""Time to read the rest of the JVM's stderr. A child that left the JVM's process group may keep it open."""
_CHUNK_BYTES: Final = 1 << 16
_ALWAYS: Final = b"WARNING: Using incubator modules"
"""Start of a warning that Java prints because Spark's launcher asks for such a module."""
_STDERR: Final = 2


class Jvm:
    """The JVM of a session, if one was started."""

    def __init__(self) -> None:
        self.is_interrupted = False
        """Ctrl-C, SIGTERM or SIGHUP."""
        self._signal = signal.SIGINT
        """What came last."""
        self._process: subprocess.Popen[bytes] | None = None
        self._telling: threading.Thread | None = None
        self._held: bytearray | None = None
        """Output of the JVM's stderr that is held back; None: it passes through."""

    @property
    def is_sent_away(self) -> bool:
        """Whether a signal ended a running JVM: calls to it fail then."""
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
        """Take the JVM that PySpark starts meanwhile."""
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
            while data := os.read(stderr.fileno(), _CHUNK_BYTES):
                data, held = _split_warnings(held + data)
                self._say(data)
            self._say(held)

    def _say(self, data: bytes) -> None:
        if self._held is not None:
            self._held += data
        elif data and not self.is_interrupted:
            with contextlib.suppress(OSError):
                os.write(_STDERR, data)

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
        """Install signal handlers where a program has not set its own. Return the handlers of before."""
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
        """Send a signal to the JVM and its children."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, wanted)

    def end(self) -> bool:
        """Close the JVM's stdin and wait until it ends; the next session starts another. False: there was none."""
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
        self._telling.join(_DRAIN_S)
        SparkContext._gateway = SparkContext._jvm = None
        return True


def _split_warnings(data: bytes) -> tuple[bytes, bytes]:
    """Remove the warning that every Java prints at Spark's start. Return the rest, and what may yet become it."""
    *lines, last = data.split(b"\n")
    kept = b"".join(line + b"\n" for line in lines if not line.startswith(_ALWAYS))
    is_held = bool(last) and (last.startswith(_ALWAYS) or _ALWAYS.startswith(last))
    return (kept, last) if is_held else (kept + last, b"")


def _say_nothing() -> None:
    """Silence PySpark's log, which else shows a traceback wherever the connection to the JVM is cut."""
    logging.disable()
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
