"""Calls of functions, Python's and C's, that a thread makes: what a commit costs an interpreter, apart from time."""

import sys
from types import FrameType
from typing import Any, Self


class Calls:
    """Counts the calls of the thread that enters it, until it leaves. That slows the thread down: do not time it."""

    def __init__(self) -> None:
        self.python = 0
        self.c = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._saw)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def per_commit(self, commits: int) -> dict[str, float]:
        """Return the calls for each commit."""
        return {"python": self.python / commits, "c": self.c / commits}

    def _saw(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.python += 1
        elif event == "c_call":
            self.c += 1
