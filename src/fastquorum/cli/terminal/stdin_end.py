"""A process that ends with its parent, however that ends: it watches its stdin.

A pipe's other end is closed by the kernel when its holder dies, be it by SIGKILL, and that cannot be missed by looking
too late. A parent-death signal (prctl) would come when the thread that started us ends, and not if that is over before
it is asked for.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

_READ_BYTES: Final = 4096


def when_stdin_ends(act: Callable[[], None]) -> None:
    """Have it called in a thread of its own. What comes before the end is thrown away."""
    threading.Thread(target=_watch, args=(act,), name="stdin-end", daemon=True).start()


def terminate() -> None:
    """SIGTERM to the main thread: one that the kernel gives to another would not interrupt what it waits for."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGTERM)


def _watch(act: Callable[[], None]) -> None:
    try:
        while os.read(0, _READ_BYTES):
            pass
    except OSError:
        pass  # a terminal that is gone, or nothing that could be read: there is no parent
    act()
