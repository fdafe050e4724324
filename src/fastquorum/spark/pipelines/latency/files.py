"""Which files a path means: results, histogram logs and traces, wherever a store has them."""

from collections.abc import Iterator
from typing import Final

from fastquorum.errors import DirectoryError, UsageError
from fastquorum.spark.stored.logs import check_names
from fastquorum.spark.stored.stores import Store, as_named, store_of

SUFFIXES: Final = (".json", ".hlog", ".hdr", ".log")
"""JSON is a result or a trace; the others are HdrHistogram logs, as `load --hdr` and other tools write them."""
_DEPTH_MAX: Final = 4
_GLOB: Final = frozenset("*?[")
_NAME_ONE: Final = f"name a result of `fastquorum load`, or a directory of files with {', '.join(SUFFIXES)}"


def find_files(path: str) -> list[str]:
    """Files that may hold latencies: what is named, whatever its name; in directories, those of SUFFIXES.

    Raises:
        UsageError: there is none, or no path between two commas.
        DirectoryError: a path cannot be read.
    """
    found: set[str] = set()
    for part in path.split(","):
        part = part.strip()
        if not part:
            raise UsageError(f"{path!r} names no path between two commas", _NAME_ONE)
        store = store_of(part)
        for root in store.expand(part) if _GLOB & set(part) else [part.rstrip("/") or "/"]:
            try:
                found.update(_below(store, root, _DEPTH_MAX))
            except DirectoryError as error:
                raise as_named(error, _NAME_ONE) from error
    if not found:
        raise UsageError(f"there are no latencies at {path}", _NAME_ONE)
    check_names(found)
    return sorted(found)


def _below(store: Store, root: str, depth: int) -> Iterator[str]:
    parent, _, name = root.rpartition("/")
    listed = {each.name: each for each in store.entries(parent or ("/" if root.startswith("/") else "."))}
    if name in listed and not listed[name].is_directory:
        yield root
        return
    yield from _inside(store, root, depth)


def _inside(store: Store, root: str, depth: int) -> Iterator[str]:
    for each in store.entries(root):
        if each.is_directory and depth > 0:
            yield from _inside(store, each.path, depth - 1)
        elif each.name.endswith(SUFFIXES):
            if each.error is not None:
                raise each.error
            yield each.path
