"""Ctrl-C before the command has begun: there is nothing to undo, so the process just ends.

Raised as KeyboardInterrupt, it would end in whatever is being imported then: in a traceback, or in another error that a
library makes of it. Imports as little as it can, since it comes before everything else.
"""

import os
import signal

EXIT_INTERRUPTED = 130


def end_at_once() -> None:
    """From now on. Where somebody else decided already, as a shell that starts jobs in the background, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """From now on it is a KeyboardInterrupt: what has begun may have to be undone. Nothing, without `end_at_once`."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os._exit(EXIT_INTERRUPTED)
