"""Ctrl-C, SIGTERM and SIGHUP before the command has begun: there is nothing to undo, so the process just ends.

Raised as KeyboardInterrupt, it would end in whatever is being imported then: in a traceback, or in another error that a
library makes of it. Imports as little as it can, since it comes before everything else.

The kernel drops a signal to process 1 that has no handler, be it SIGTERM: the first process of a container would go on
as if nothing had been said, and be killed in the end. Source: kill(2), pid_namespaces(7).
"""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXIT_INTERRUPTED = 130
MEANINGLESS = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGPOLL,
    signal.SIGPWR,
    signal.SIGXFSZ,
    signal.SIGSTKFLT,
    signal.SIGPIPE,
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
"""To a node, and they would end it if it did not know them: a log rotation's, a shell's, another program's mistake."""
_UNDONE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_once(*, also_by_quit: bool = False) -> None:
    """End at once on an interrupt. If the parent ignores it, as a shell does for background jobs, it stays ignored.

    `also_by_quit`: SIGQUIT, too, which otherwise dumps core, but for process 1.
    """
    _replace(signal.SIGINT, signal.default_int_handler, _end)
    has_quit = also_by_quit or os.getpid() == 1
    for number in (signal.SIGTERM, signal.SIGHUP, *((signal.SIGQUIT,) if has_quit else ())):
        _replace(number, signal.SIG_DFL, _end)


def ignore_meaningless() -> None:
    """Ignore them, unless the parent decided otherwise. Only in a node: programs that it starts inherit this."""
    for number in MEANINGLESS:
        _replace(number, signal.SIG_DFL, signal.SIG_IGN)


def undo_first() -> None:
    """From now on each is an exception: what has begun may have to be undone. Nothing, without `end_at_once`."""
    from fastquorum.ending import end

    for number in _UNDONE:
        _replace(number, _end, end)


def leave_to_asyncio() -> None:
    """From now on SIGINT is Python's, which asyncio.run replaces by one that cancels its coroutine."""
    from fastquorum.ending import end

    _replace(signal.SIGINT, end, signal.default_int_handler)


def nothing_to_undo() -> None:
    """The command is over: they just end the process again, one that came during its last import at once."""
    from fastquorum.ending import end

    for number in _UNDONE:
        _replace(number, end, _end)
    end.catch_up()


def _replace(number: int, before: "Any", after: "Any") -> None:
    if signal.getsignal(number) is before:
        signal.signal(number, after)


def _end(number: int, _: object) -> None:
    os._exit(128 + number)
