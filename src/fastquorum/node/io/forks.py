"""What a forked child inherits cannot work: no thread came along, and locks, LMDB and sockets are the parent's.

Every handle is poisoned in the child, and its sockets' descriptors are closed there - which sends nothing, as the
parent still holds
them - lest the child keep the parent's port and connections alive. Nothing else is touched.
"""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that a forked child must not use."""

    def poison_in_child(self) -> None: ...


_alive: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def watch(handle: Forkable) -> None:
    """Poison this handle in every child forked from now on."""
    _alive.add(handle)


def forget(handle: Forkable) -> None:
    """It holds nothing any more."""
    _alive.discard(handle)


def _after_in_child() -> None:
    for handle in list(_alive):
        handle.poison_in_child()
    _alive.clear()


os.register_at_fork(after_in_child=_after_in_child)
