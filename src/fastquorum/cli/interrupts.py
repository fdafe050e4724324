"""Ctrl-C, or SIGTERM to process 1, before the command has begun: there is nothing to undo, so the process just ends.

Raised as KeyboardInterrupt, it would end in whatever is being imported then: in a traceback, or in another error that a
library makes of it. Imports as little as it can, since it comes before everything else.

The kernel drops a signal to process 1 that has no handler, be it SIGTERM: the first process of a container would go on
as if nothing had been said, and be killed in the end. Source: kill(2), pid_namespaces(7).
"""

import os
import signal

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
    signal.SIGPIPE,
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
"""To a node, and they would end it if it did not know them: a log rotation's, a shell's, another program's mistake."""


def end_at_once() -> None:
    """From now on. Where somebody else decided already, as a shell that starts jobs in the background, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    if os.getpid() == 1:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)


def ignore_meaningless() -> None:
    """From now on, where nobody decided otherwise. Only in a node: a command that starts programs hands this on."""
    for number in MEANINGLESS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.SIG_IGN)


def raise_again() -> None:
    """From now on it is a KeyboardInterrupt: what has begun may have to be undone. Nothing, without `end_at_once`."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_on_signals() -> None:
    """From now on SIGTERM and SIGHUP are a SystemExit: what has begun is undone. nohup's SIGHUP stays ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)


def _exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _end(number: int, _: object) -> None:
    os._exit(128 + number)
