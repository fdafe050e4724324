"""Which logs a path means, and what each of them is made of: found once, on the driver.

A path names a data directory, ours or Kafka's, a log directory, or a directory with any number of them below it; a glob
or several paths with commas between name all that fit. For a program (`find`) a path that holds no log is refused,
however many others are named; what a glob fits, or what lies below a path, may be something else, and is passed over.
An audit (`find_all`) looks at all that can be looked at, as the shell's own glob names files too, and says what it
passes over. A node's directory whose log is gone is a fault wherever it is found. Source of the names: `storage.names`.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fastquorum.errors import DirectoryError, UsageError
from fastquorum.spark.stored.file_kinds import FileKind, kind_of
from fastquorum.spark.stored.lost_properties import are_properties_lost, is_blank, kind_by_records
from fastquorum.spark.stored.stores import Entry, Store, as_named, plain, store_of
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.storage.properties import parse_properties
from fastquorum.types import NODE_ID_MAX, Offset, OffsetAndEpoch, Uuid, is_text

DEPTH_MAX: Final = 4
"""How far below a path logs are looked for."""
_GLOB: Final = frozenset("*?[")
_A_FILE: Final = "is a file"
_NO_LOG: Final = "holds no log"
_NAME_ONE: Final = "name a data directory, a log directory, a directory with such below it, or a glob"
_BROKERS_FILE: Final = "recovery-point-offset-checkpoint"
"""Kafka's brokers have one in each of their directories, of which one holds the metadata log."""


class StoredSegment(NamedTuple):
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
    segments: tuple[StoredSegment, ...]
    checkpoints: tuple[Checkpoint, ...]
    files: tuple[Entry, ...]
    """Files of both directories, foreign ones too."""
    directory_id: str | None = None
    """Id under which the data directory was formatted; None: nothing says it."""

    @property
    def begin_offset(self) -> Offset:
        """First offset of the log's first segment; 0 if it has no segment."""
        return min((each.base_offset for each in self.segments), default=0)

    @property
    def names(self) -> frozenset[str]:
        """Names of all files, relative to the directory."""
        return frozenset(each.path.removeprefix(f"{self.directory}/") for each in self.files)

    def entry(self, name: str) -> Entry | None:
        """Return the file of that name in the log directory; None: there is none."""
        return next((each for each in self.files if each.path == f"{self.log_directory}/{name}"), None)


class LogFault(NamedTuple):
    """A directory that may be no log, whose owner is unknown, or that is faulty as a whole. Travels to executors."""

    directory: str
    path: str
    """Path of what cannot be read."""
    detail: str
    log: FoundLog | None = None
    """The log as far as it is one, without a certain owner; None: nothing says that it is one."""
    hint: str = ""
    left_out: str = ""
    """What a read without this directory lacks; empty: the whole directory."""

    @property
    def error(self) -> DirectoryError:
        return DirectoryError(self.detail, self.hint, self.path)


class Other(NamedTuple):
    """A path that is named, or lies beside logs, and is not a log."""

    path: str
    why: str


class FoundLogs(NamedTuple):
    """The logs and faults that a path means, by directory."""

    logs: list[FoundLog]
    faults: list[LogFault]
    others: tuple[Other, ...] = ()
    """Paths that were passed over; only of `find_all`."""

    def only(self, directories: Container[str]) -> "FoundLogs":
        return FoundLogs(
            [log for log in self.logs if log.directory in directories],
            [each for each in self.faults if each.directory in directories],
        )


def check_names(paths: Iterable[str]) -> None:
    """Raise UsageError at the first path that Arrow, and so a table, cannot hold."""
    for each in paths:
        if not is_text(each):
            raise UsageError(f"{each!r} is not UTF-8, and no table can name it", "rename it, or link to it")


def find(path: str) -> FoundLogs:
    """Every log that `path` means, and what among them cannot be read. UsageError if it, or one of several paths in
    it, means none; DirectoryError if a path itself cannot be read."""
    there: list[tuple[Store, FoundLog | LogFault]] = []
    for part in _parts(path):
        store, roots = _roots(part)
        below = [each for root in roots for each in _below(store, root, DEPTH_MAX, is_named=len(roots) == 1)]
        if not below and not _is_glob(part):
            raise UsageError(f"there is no log at {part}", _NAME_ONE)
        there += [(store, each) for each in below]
    return _found(path, there)


def find_all(path: str) -> FoundLogs:
    """Find every log that one or several paths mean, for an audit. Of several paths, one that cannot be read is a
    fault, and one that holds no log is among `others`, as is what lies beside logs. Errors as of `find` for one path,
    or if all of several are `others`."""
    roots = [(store, root) for part in _parts(path) for store, each in [_roots(part)] for root in each]
    is_alone = len(roots) == 1
    there: list[tuple[Store, FoundLog | LogFault]] = []
    refused: list[tuple[Store, DirectoryError]] = []
    others: set[Other] = set()
    for store, root in roots:
        try:
            entries = store.entries(root)
        except DirectoryError as error:
            if not is_alone and isinstance(error.__cause__, NotADirectoryError) and store.unseen(root) is None:
                others.add(Other(root, _A_FILE))
            else:
                refused.append((store, as_named(error, _NAME_ONE)))
            continue
        below = list(_below(store, root, DEPTH_MAX, is_named=is_alone))
        there += [(store, each) for each in below]
        others.update(_beside(root, entries, below) if below else [Other(root, _NO_LOG)])
    if is_alone and refused:
        raise refused[0][1]
    there += [(store, _fault(error.path, error)) for store, error in refused]
    return _found(path, there)._replace(others=tuple(sorted(others)))


def _roots(part: str) -> tuple[Store, list[str]]:
    """Return the paths that a part of a path names."""
    store = store_of(part)
    return store, store.expand(part) if _is_glob(part) else [part.rstrip("/") or "/"]


def _is_glob(part: str) -> bool:
    return bool(_GLOB & set(part))


def _found(path: str, there: Iterable[tuple[Store, FoundLog | LogFault]]) -> FoundLogs:
    """All of it by where each really is: it may be meant twice, by other names. UsageError if there is nothing."""
    found: dict[str, FoundLog | LogFault] = {}
    for store, each in there:
        place = _place(store, each)
        if place not in found or store.real(each.directory) == each.directory:
            found[place] = each
    if not found:
        raise UsageError(f"there is no log at {path}", _NAME_ONE)
    check_names(each.directory for each in found.values())
    both = sorted(found.values(), key=lambda each: each.directory)
    logs = [each for each in both if isinstance(each, FoundLog)]
    return FoundLogs(logs, [each for each in both if isinstance(each, LogFault)])


def _beside(root: str, entries: Iterable[Entry], found: Iterable[FoundLog | LogFault]) -> Iterator[Other]:
    """Yield what lies in a directory of logs and is not a log. Nothing, if the directory is one itself."""
    places = [
        place
        for each in found
        for place in (each.directory, each.log_directory if isinstance(each, FoundLog) else each.path)
    ]
    if root in places:
        return
    for entry in entries:
        if not any(f"{place}/".startswith(f"{entry.path}/") for place in places):
            odd = None if entry.error is None else entry.error.detail
            yield Other(entry.path, odd or (_NO_LOG if entry.is_directory else _A_FILE))


def find_logs(path: str) -> list[FoundLog]:
    """Find every log that `path` means, and raise DirectoryError if one of them cannot be read."""
    found = find(path)
    for fault in found.faults:
        raise fault.error
    return found.logs


def _place(store: Store, found: FoundLog | LogFault) -> str:
    log = found if isinstance(found, FoundLog) else found.log
    return found.directory if log is None else store.real(log.log_directory)


def _parts(path: str) -> list[str]:
    parts = [plain(part.strip()) for part in path.split(",")]
    if not any(parts):
        raise UsageError("no path is named", _NAME_ONE)
    if not all(parts):
        raise UsageError(f"{path!r} names no path between two commas")
    return parts


def _below(store: Store, root: str, depth: int, *, is_named: bool) -> Iterator[FoundLog | LogFault]:
    """Find logs at `root` or below it. A path that a glob fits may be a file, which is not a log."""
    try:
        entries = store.entries(root)
        found = _at(store, root, entries)
        gone = _without_log(store, root, entries, is_named=is_named) if found is None else None
    except DirectoryError as error:
        if is_named and error.path == root:
            raise as_named(error, _NAME_ONE) from error
        is_passed_over = isinstance(error.__cause__, NotADirectoryError | FileNotFoundError)
        unseen = store.unseen(root)
        if unseen is not None or not is_passed_over:
            yield _fault(root, unseen or error)
        return
    if gone is not None:
        yield gone
    if found is not None:
        yield found
    elif depth > 0:
        for each in entries:
            if each.error is not None and each.may_be_directory:
                yield _fault(each.path, each.error)
            elif each.is_directory:
                yield from _below(store, each.path, depth - 1, is_named=False)


def _at(store: Store, root: str, entries: list[Entry]) -> FoundLog | LogFault | None:
    """Return the log that lies there itself, if one does. DirectoryError."""
    inner = next((each for each in entries if each.name == names.LOG_DIRECTORY), None)
    if inner is not None and inner.error is not None:
        return _fault(root, inner.error)
    if inner is not None and inner.is_directory:
        return _log(store, root, inner.path, entries, store.entries(inner.path))
    if not any(names.parse_segment(each.name) is not None for each in entries):
        return None
    around, _, name = root.rpartition("/")
    if name == names.LOG_DIRECTORY and around:  # what it is, the data directory around it knows
        return _log(store, around, root, store.entries(around), entries)
    return _log(store, root, root, (), entries)


def _without_log(store: Store, root: str, entries: list[Entry], *, is_named: bool) -> LogFault | None:
    """A node's directory whose log is gone, or was never there. One of several that a broker of Kafka's has is nobody's
    loss, unless somebody named it."""
    there = {each.name for each in entries}
    is_brokers = _BROKERS_FILE in there and not is_named
    if names.META_PROPERTIES not in there or is_brokers:
        return None
    gone = f"{root}/{names.LOG_DIRECTORY}"
    found = _log(store, root, gone, entries, [])
    hint = "restore it, or leave the directory out if its node never ran"
    return found if isinstance(found, LogFault) else _fault(root, DirectoryError("is not there", hint, gone), found)


def _log(
    store: Store, root: str, log_directory: str, outer: Iterable[Entry], inner: list[Entry]
) -> FoundLog | LogFault:
    outer = tuple(each for each in map(_as_file, outer) if not each.is_directory)
    inner = [_as_file(each) for each in inner]
    segments = [(names.parse_segment(each.name), each) for each in inner]
    checkpoints = [(names.parse_checkpoint(each.name), each) for each in inner]
    log = FoundLog(
        directory=root,
        log_directory=log_directory,
        cluster_id=None,
        node_id=None,
        kind=LogKind.METADATA,
        segments=tuple(StoredSegment(base, each.path, each.size_bytes) for base, each in segments if base is not None),
        checkpoints=tuple(Checkpoint(key, each.path, each.size_bytes) for key, each in checkpoints if key is not None),
        files=(*outer, *(each for each in inner if not each.is_directory)),
    )
    odd = [each.error for each in (*outer, *inner) if each.error is not None and _counts(each.name)]
    try:
        log = _owned(store, log, outer)
    except DirectoryError as error:
        return _fault(root, error, log)
    return _fault(root, odd[0], log) if odd else log


def _as_file(entry: Entry) -> Entry:
    """A directory where a file should be is one that cannot be read."""
    if not entry.is_directory or kind_of(entry.name) is FileKind.FOREIGN:
        return entry
    error = DirectoryError("is a directory, not a file", "move it away", entry.path)
    return entry._replace(is_directory=False, size_bytes=0, error=error)


def _counts(name: str) -> bool:
    """Return whether a file says what a log holds, or which node it is of."""
    of_log = names.parse_segment(name) is not None or names.parse_checkpoint(name) is not None
    return of_log or name in (names.META_PROPERTIES, names.OWN_PROPERTIES)


def _fault(directory: str, error: DirectoryError, log: FoundLog | None = None) -> LogFault:
    return LogFault(directory, error.path, str(DirectoryError(error.detail, error.hint)), log)


def _owned(store: Store, log: FoundLog, outer: Iterable[Entry]) -> FoundLog:
    """Return the log with what its properties files say. DirectoryError, which names the file."""
    properties: dict[str, dict[str, str]] = {}
    data: dict[str, bytes] = {}
    path = log.directory
    try:
        for each in outer:
            if each.name in (names.META_PROPERTIES, names.OWN_PROPERTIES):
                path = each.path
                data[each.name] = store.read(path)
                if each.name == names.OWN_PROPERTIES and is_blank(data[each.name]):
                    continue  # lost, as one that is not there
                properties[each.name] = parse_properties(data[each.name])
                _of_node(properties[each.name]), _of_kind(properties[each.name])
    except ValueError as error:
        if isinstance(error, DirectoryError):
            raise
        raise DirectoryError(f"cannot be read: {error}", path=path) from error
    meta = properties.get(names.META_PROPERTIES, {})
    kind = _of_kind(properties.get(names.OWN_PROPERTIES, {}))
    if are_properties_lost(log.names, data.get(names.META_PROPERTIES), data.get(names.OWN_PROPERTIES)):
        kind = kind_by_records(each.path for each in log.segments)
    return log._replace(
        cluster_id=meta.get("cluster.id"), node_id=_of_node(meta), kind=kind, directory_id=_directory_id(meta)
    )


def _of_node(properties: Mapping[str, str]) -> int | None:
    """ValueError."""
    text = properties.get("node.id", "")
    node_id = int(text) if text else None
    if node_id is not None and not 0 <= node_id <= NODE_ID_MAX:
        raise ValueError(f"node.id {node_id} is outside 0..{NODE_ID_MAX}")
    return node_id


def _directory_id(properties: Mapping[str, str]) -> str | None:
    try:
        return str(Uuid.parse(properties["directory.id"]))
    except (KeyError, ValueError):
        return None


def _of_kind(properties: Mapping[str, str]) -> LogKind:
    """ValueError."""
    return LogKind(properties.get("log.kind", LogKind.METADATA))
