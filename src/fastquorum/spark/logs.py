"""Which logs a path means, and what each of them is made of: found once, on the driver.

A path names a data directory, ours or Kafka's, a log directory, or a directory with any number of them below it; a glob
or several paths with commas between name all that fit. Source of the names: `storage.names`.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fastquorum.errors import DirectoryError, UsageError
from fastquorum.spark.stores import Entry, Store, store_of
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.storage.properties import parse_properties
from fastquorum.types import Offset, OffsetAndEpoch

DEPTH_MAX: Final = 4
"""How far below a path logs are looked for."""
_GLOB: Final = frozenset("*?[")


class Segment(NamedTuple):
    """One segment's file, as it was when it was found."""

    base_offset: Offset
    path: str
    size_bytes: int


class Checkpoint(NamedTuple):
    """A finished snapshot's file."""

    id: OffsetAndEpoch
    path: str
    size_bytes: int


class FoundLog(NamedTuple):
    """A log, and the data directory around it if there is one."""

    directory: str
    """The data directory, or the log directory if nothing is around it: what rows name."""
    log_directory: str
    cluster_id: str | None
    node_id: int | None
    kind: LogKind
    segments: tuple[Segment, ...]
    checkpoints: tuple[Checkpoint, ...]
    files: tuple[Entry, ...]
    """All of both directories, foreign ones too."""

    def entry(self, name: str) -> Entry | None:
        """The file of that name in the log directory."""
        return next((each for each in self.files if each.path == f"{self.log_directory}/{name}"), None)


def find_logs(path: str) -> list[FoundLog]:
    """Every log that `path` means, by directory. UsageError if it means none; DirectoryError."""
    found: dict[str, FoundLog] = {}
    for part in _parts(path):
        store = store_of(part)
        roots = store.expand(part) if _GLOB & set(part) else [part.rstrip("/") or "/"]
        for root in roots:
            for each in _below(store, root, DEPTH_MAX, is_named=len(roots) == 1):
                found[each.directory] = each
    if not found:
        hint = "name a data directory, a log directory, a directory with such below it, or a glob"
        raise UsageError(f"there is no log at {path}", hint)
    return [each for _, each in sorted(found.items())]


def _parts(path: str) -> list[str]:
    parts = [part.strip() for part in path.split(",")]
    if not all(parts):
        raise UsageError(f"{path!r} names no path between two commas")
    return parts


def _below(store: Store, root: str, depth: int, *, is_named: bool) -> Iterator[FoundLog]:
    """What is at `root` or below it. What a glob fits may be a file, which is no log."""
    try:
        entries = store.entries(root)
    except DirectoryError:
        if is_named:
            raise
        return
    inner = next((each for each in entries if each.is_directory and each.name == names.LOG_DIRECTORY), None)
    if inner is not None:
        yield _log(store, root, inner.path, entries, store.entries(inner.path))
    elif any(names.parse_segment(each.name) is not None for each in entries):
        around, _, name = root.rpartition("/")
        if name == names.LOG_DIRECTORY and around:  # what it is, the data directory around it knows
            yield _log(store, around, root, store.entries(around), entries)
        else:
            yield _log(store, root, root, (), entries)
    elif depth > 0:
        for each in entries:
            if each.is_directory:
                yield from _below(store, each.path, depth - 1, is_named=False)


def _log(store: Store, root: str, log_directory: str, outer: Iterable[Entry], inner: list[Entry]) -> FoundLog:
    outer = tuple(each for each in outer if not each.is_directory)
    said = _properties(store, outer, names.META_PROPERTIES)
    kind = _properties(store, outer, names.OWN_PROPERTIES).get("log.kind", LogKind.METADATA)
    node_id = said.get("node.id", "")
    segments = [(names.parse_segment(each.name), each) for each in inner]
    checkpoints = [(names.parse_checkpoint(each.name), each) for each in inner]
    try:
        return FoundLog(
            directory=root,
            log_directory=log_directory,
            cluster_id=said.get("cluster.id"),
            node_id=int(node_id) if node_id else None,
            kind=LogKind(kind),
            segments=tuple(Segment(base, each.path, each.size_bytes) for base, each in segments if base is not None),
            checkpoints=tuple(
                Checkpoint(key, each.path, each.size_bytes) for key, each in checkpoints if key is not None
            ),
            files=(*outer, *(each for each in inner if not each.is_directory)),
        )
    except ValueError as error:
        raise DirectoryError(f"its properties cannot be read: {error}", path=root) from error


def _properties(store: Store, entries: Iterable[Entry], name: str) -> dict[str, str]:
    """Of the file of that name; none if it is not there."""
    for each in entries:
        if each.name == name:
            try:
                return parse_properties(store.read(each.path))
            except ValueError as error:
                raise DirectoryError(f"cannot be read: {error}", path=each.path) from error
    return {}
