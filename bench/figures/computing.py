"""Python that computes without end: in a thread of a node's process, or (run as a program) in a process of its own.

usage: python -m bench.figures.computing        (ends with its stdin)
"""

import os
import sys
import threading


class Computing:
    """A thread that can be turned on and off."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def turn(self, on: bool) -> None:
        """Returns when it computes, or computes no more."""
        if on == (self._thread is not None):
            return
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
            return
        self._over.clear()
        begun = threading.Event()
        self._thread = threading.Thread(target=self._compute, args=(begun,), name="computing", daemon=True)
        self._thread.start()
        begun.wait()

    def _compute(self, begun: threading.Event) -> None:
        begun.set()
        while not self._over.is_set():
            compute()


def compute() -> int:
    """Some microseconds in the interpreter, which is never given up of its own accord."""
    return sum(range(1000))


def main() -> None:
    def end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    print("begun", flush=True)
    while True:
        compute()


if __name__ == "__main__":
    main()
