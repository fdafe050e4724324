"""Which files a path means: results, histogram logs and traces, wherever a store has them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fastquorum.errors import DirectoryError, UsageError
from fastquorum.spark.stored.logs import check_names
from fastquorum.spark.stored.stores import Store, as_named, store_of

SUFFIXES: Final = (".json", ".hlog", ".hdr", ".log")
"""JSON is a result or a trace; the others are HdrHistogram logs, as `load --hdr` and other tools write them."""
_DEPTH_MAX: Final = 4
_GLOB: Final = frozenset("*?[")
_NAME_ONE: Final = f"name a result of `fastquorum load`, or a directory of files with {', '.join(SUFFIXES)}"


class Files(NamedTuple):
    """Files that a path means."""

    found: list[str]
    """Files that may hold latencies."""
    unread: list[tuple[str, DirectoryError]]
    """Paths that are named, or lie there, and cannot be read; each with why."""


def files_at(path: str) -> Files:
    """Find files that may hold latencies: those that are named, whatever their name; in directories, those of SUFFIXES.

    Raises:
        UsageError: there is none, or no path between two commas.
        DirectoryError: nothing at all can be read.
    """
    found, unread = _look(path)
    if not found:
        for _, error in unread:
            raise error
        raise UsageError(f"there are no latencies at {path}", _NAME_ONE)
    check_names(found)
    return Files(sorted(found), sorted(unread, key=lambda each: each[0]))


def _look(path: str) -> tuple[set[str], list[tuple[str, DirectoryError]]]:
    found: set[str] = set()
    unread: list[tuple[str, DirectoryError]] = []
    for part in path.split(","):
        part = part.strip()
        if not part:
            raise UsageError(f"{path!r} names no path between two commas", _NAME_ONE)
        store = store_of(part)
        for root in store.expand(part) if _GLOB & set(part) else [part.rstrip("/") or "/"]:
            try:
                below = list(_below(store, root, _DEPTH_MAX))
            except DirectoryError as error:
                unread.append((root, as_named(error, _NAME_ONE)))
                continue
            found.update(each for each in below if isinstance(each, str))
            unread += [(each.path, each) for each in below if isinstance(each, DirectoryError)]
    return found, unread


def _below(store: Store, root: str, depth: int) -> Iterator[str | DirectoryError]:
    parent, _, name = root.rpartition("/")
    listed = {each.name: each for each in store.entries(parent or ("/" if root.startswith("/") else "."))}
    if name in listed and not listed[name].is_directory:
        entry = listed[name]
        yield entry.error if entry.error is not None and entry.may_be_directory else root
        return
    yield from _inside(store, root, depth)


def _inside(store: Store, root: str, depth: int) -> Iterator[str | DirectoryError]:
    for each in store.entries(root):
        if each.is_directory and depth > 0:
            yield from _inside(store, each.path, depth - 1)
        elif each.name.endswith(SUFFIXES):
            yield each.path if each.error is None else each.error
