"""Names of a package that are loaded when they are first used, so that importing it costs next to nothing."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not typing's own, whose import takes longer than all the rest here
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's `__getattr__`, `__dir__` and `__all__`. `names`: by the full name of a module what is taken from it,
    with spaces between; `modules`: what is a module of the package itself."""
    homes = {name: home for home, several in names.items() for name in several.split()}
    whole = modules.split()

    def get(name: str) -> Any:
        if name in whole:
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    known = sorted({*homes, *whole})
    return get, lambda: sorted({*vars(sys.modules[package]), *known}), known
