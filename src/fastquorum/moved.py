"""Old import paths: a module that moved into a room of its package is still found where it was, with a warning.

Only public names carry a promise, but programs that looked further in should hear where a module went, rather than
that there is none. `fastquorum.wire.fetch` is `fastquorum.wire.messages.fetch`, the same module object. Imported with
the package: nothing is imported here that an interpreter does not have loaded anyway.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from types import ModuleType
    from typing import Final
else:
    Loader = object

_PACKAGE: Final = "fastquorum."
_KEPT_THEIR_NAMES: Final = "messages"
"""The room whose module is meant where several have one of that name: those of the others had longer names before."""


class MovedModules(Loader):
    """A finder and loader for `sys.meta_path`: finds what no other finder has found, and one room has."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None where no room of the package has such a module, or several have."""
        package, _, name = fullname.rpartition(".")
        if path is None or not package.startswith(_PACKAGE):
            return None
        rooms = {room for folder in path for room in os.listdir(folder) if _has_module(folder, room, name)}
        if _KEPT_THEIR_NAMES in rooms:
            rooms = {_KEPT_THEIR_NAMES}
        if len(rooms) != 1:
            return None
        return ModuleSpec(fullname, self, loader_state=f"{package}.{rooms.pop()}.{name}")

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one, as usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the moved module in the place of the empty one."""
        import warnings

        spec = module.__spec__
        assert spec is not None
        moved_to: str = spec.loader_state
        warnings.warn(f"{spec.name} is now {moved_to}", DeprecationWarning, stacklevel=2)
        sys.modules[spec.name] = importlib.import_module(moved_to)


def _has_module(folder: str, room: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, room, f"{name}.py"))


def find_moved_modules() -> None:
    """Have old paths found, behind everything that is where it is asked for."""
    sys.meta_path.append(MovedModules())
