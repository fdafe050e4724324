"""Lines for the program's own logging, `logging.getLogger("fastquorum")`, from threads that nothing may hold up.

Handlers and filters run in a thread of their own, since one that blocks, or raises, must not hold up a replica, or end
it; what comes while QUEUE_MAX lines wait for it is counted, and left out.
"""

import atexit
import logging
import queue
import threading
from typing import Final

from fastquorum.node.io import handles

LOGGER: Final = logging.getLogger("fastquorum")
QUEUE_MAX: Final = 1_000
"""Lines that wait for the program's handlers."""
EXIT_S: Final = 1.0
"""How long a process that exits waits for them."""
_TOO_SLOW: Final = "the handlers of this log are too slow"


def write(level: int, event: str, line: str, error: BaseException | None = None) -> None:
    """Have a line written soon; with the traceback of `error`. `event` names the kind for machines."""
    if LOGGER.isEnabledFor(level):
        _writer().put(_record(level, event, line, error))


def _record(level: int, event: str, line: str, error: BaseException | None = None) -> logging.LogRecord:
    about = None if error is None else (type(error), error, error.__traceback__)
    return LOGGER.makeRecord(LOGGER.name, level, __file__, 0, line, (), about, extra={"event": event})


class _Writer:
    """Hands records to the program's handlers, in a thread that begins with the first one."""

    def __init__(self) -> None:
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(QUEUE_MAX)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._lost = 0

    def put(self, record: logging.LogRecord) -> None:
        try:
            if self._thread is None:
                with self._starting:
                    self._start()
            self._records.put_nowait(record)
        except (queue.Full, RuntimeError):  # or no thread can be started now
            self._lost += 1

    def _start(self) -> None:
        """Once, whichever node logs first."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="fastquorum-logging", daemon=True)
            thread.start()
            self._thread = thread

    def finish(self) -> None:
        """Wait a moment for what is still to be written."""
        if self._thread is not None:
            try:
                self._records.put(None, timeout=EXIT_S)
            except queue.Full:
                return  # handlers that hang have the rest
            self._thread.join(EXIT_S)

    def _run(self) -> None:
        while (record := self._records.get()) is not None:
            lost, self._lost = self._lost, 0
            if lost:
                self._handle(_record(logging.WARNING, "lines_lost", f"{lost} lines were left out: {_TOO_SLOW}"))
            self._handle(record)

    @staticmethod
    def _handle(record: logging.LogRecord) -> None:
        """Have it written. A handler or filter of the program may raise anything: as logging itself does, tell stderr,
        unless `logging.raiseExceptions` is off, and go on with the next line."""
        try:
            LOGGER.handle(record)
        except Exception:
            logging.Handler().handleError(record)


_writers: Final[dict[int, _Writer]] = {}
"""By how often the process was forked: a thread does not come along."""


def _writer() -> _Writer:
    return _writers.setdefault(handles.forks(), _Writer())


@atexit.register
def _at_exit() -> None:
    handles.halt_all()  # those nodes say that they have stopped
    writer = _writers.get(handles.forks())
    if writer is not None:
        writer.finish()
