"""The nodes alive in this process, for its two ends: a forked child, and the exit without a close.

What a forked child inherits cannot work: no thread came along, and locks, LMDB and sockets are the parent's. Every
handle is poisoned in the child, and its sockets' descriptors are closed there - which sends nothing, as the parent
still holds them - lest the child keep the parent's port and connections alive. Nothing else is touched.

A process that exits with open nodes has them halted: that takes no time, and leaves closed directories.
"""

import atexit
import os
import weakref
from typing import Final, Protocol


class Handle(Protocol):
    """A running node."""

    def before_fork(self) -> None: ...
    def after_fork(self) -> None: ...
    def poison_in_child(self) -> None: ...
    def abort(self) -> None: ...


_alive: "Final[weakref.WeakSet[Handle]]" = weakref.WeakSet()


_held: Final[list[Handle]] = []
"""Those that a fork under way holds still."""


def watch(handle: Handle) -> None:
    """It runs now."""
    _alive.add(handle)


def forget(handle: Handle) -> None:
    """It holds nothing any more."""
    _alive.discard(handle)


def _before() -> None:
    """Native threads do not stop for a fork: what the child is to let go of must be whole then."""
    _held[:] = list(_alive)
    for handle in _held:
        handle.before_fork()


def _after_in_parent() -> None:
    for handle in _held:
        handle.after_fork()
    _held.clear()


def _after_in_child() -> None:
    for handle in list(_alive):
        handle.poison_in_child()
    _alive.clear()
    _held.clear()


def _at_exit() -> None:
    for handle in list(_alive):
        handle.abort()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
atexit.register(_at_exit)
