"""The nodes alive in this process, for its two ends: a forked child, and the exit without a close.

What a forked child inherits cannot work: no thread came along, and locks, LMDB and sockets are the parent's. A node's
sockets are closed in the child - which sends nothing, as the parent still holds them - lest the child keep the parent's
port and connections alive. Whatever programs hold is guarded: there each of its public names raises ClosedError before
anything behind it is touched, as that may be locked for good. Nothing else is done.

A process that exits with open nodes has them halted: that takes no time, and leaves closed directories. So has one that
opens another where nobody can close the former any more.
"""

import atexit
import contextlib
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Final, NoReturn, Protocol

from fastquorum.closing import end_all
from fastquorum.errors import ClosedError


class Handle(Protocol):
    """A running node, or a running member."""

    def before_fork(self) -> None: ...
    def after_fork(self) -> None: ...
    def abandon_in_child(self) -> None: ...
    def abort(self) -> None: ...


class Companion(Protocol):
    """Something that goes with a node, as the server that tells how it is: it ends with the node's handle."""

    def close(self) -> None:
        """Idempotent; from any thread."""

    def abandon_in_child(self) -> None:
        """After fork, in the child: let go of the descriptors."""


class Guarded:
    """What a program may hold at a fork. In the child its public names raise ClosedError, but for those that end it."""

    _CHILD_MAY: ClassVar[frozenset[str]] = frozenset(("close",))
    """Names that do nothing there."""
    _CHILD_HINT: ClassVar[str] = "open the directory in one process only"
    _is_in_child: ClassVar[bool] = False

    def __init__(self) -> None:
        _guarded.add(self)

    def __reduce__(self) -> NoReturn:
        """A child that is not forked is given what can be pickled; a copy would share what is one's own."""
        raise TypeError(
            f"{type(self).__qualname__} cannot be copied or sent to another process: it belongs to the one that "
            f"opened it; {self._CHILD_HINT}"
        )

    def _is_unclosed(self) -> bool:
        """Does it hold what nobody has given back?"""
        return False

    def _let_go(self) -> None:
        """What it holds, and nobody has given back, goes on until the process exits. May be called by any thread, in
        the middle of anything."""

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        """Tell of what a handle holds that nobody has any more."""
        with contextlib.suppress(AttributeError):  # it never came to be whole
            if not self._is_in_child and self._is_unclosed():
                try:
                    warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
                finally:
                    self._let_go()


_guarded: "Final[weakref.WeakSet[Guarded]]" = weakref.WeakSet()
_alive: "Final[weakref.WeakSet[Handle]]" = weakref.WeakSet()


_left: Final[dict[Handle, Callable[[], bool]]] = {}
"""Handles that nobody has any more, each with whether it may be ended."""
_held: Final[list[Handle]] = []
"""Handles that a fork under way still holds."""
_forks = 0


def watch(handle: Handle) -> None:
    """It runs now."""
    _alive.add(handle)


def forget(handle: Handle) -> None:
    """It holds nothing any more."""
    _alive.discard(handle)
    _left.pop(handle, None)


def leave(handle: Handle, may_end: Callable[[], bool]) -> None:
    """Nobody has it any more: unless it ends before, it is to be halted when another is opened, if it may end then."""
    _left[handle] = may_end
    if handle not in _alive:
        _left.pop(handle, None)  # it ended meanwhile


def end_left() -> None:
    """Halt those that nobody has any more, before another is opened that may want what they hold."""
    end_all([handle.abort for handle, may_end in list(_left.items()) if may_end()])


def forks() -> int:
    """How many forks lie between this process and the first that imported this: whoever remembers it knows whether it
    was made in this process."""
    return _forks


def check_forks(remembered: int) -> None:
    """ClosedError in a child of the process where `forks` was that."""
    if remembered != _forks:
        raise closed_in_child(Guarded._CHILD_HINT)


def closed_in_child(hint: str) -> ClosedError:
    return ClosedError("this handle was opened before fork and cannot work in the child", hint)


def _in_child(cls: type[Guarded]) -> type[Guarded]:
    """The class with its public names closed. Who gives this class to an object closes it for all that refer to it."""
    may = cls._CHILD_MAY

    def refuse(*_: object, **__: object) -> NoReturn:
        raise closed_in_child(cls._CHILD_HINT)

    def get(self: Guarded, name: str) -> Any:
        if name.startswith("_") or name in may:
            return object.__getattribute__(self, name)
        return refuse if callable(getattr(cls, name, None)) else refuse()  # a method is refused when it is called

    names = {"__slots__": (), "__module__": cls.__module__, "__getattribute__": get, "_is_in_child": True}
    return type(cls.__name__, (cls,), names)


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
    global _forks
    _forks += 1
    for handle in list(_alive):
        handle.abandon_in_child()
    _alive.clear()
    _left.clear()
    _held.clear()
    closed = {cls: _in_child(cls) for cls in {type(each) for each in _guarded}}
    for each in list(_guarded):
        each.__class__ = closed[type(each)]
    _guarded.clear()


def halt_all() -> None:
    """Halt the nodes that nobody closed, with a warning for each: the process exits. Idempotent."""
    end_all([*(guarded.__del__ for guarded in list(_guarded)), *(handle.abort for handle in list(_alive))])


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
atexit.register(halt_all)
