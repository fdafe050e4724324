"""The ports with failpoints in them. Used only while a failpoint is armed; otherwise the real ports stand alone.

The cores may not know of failpoints, so they sit where cores meet the system: around every operation of the disk, the
quorum state, the flusher and the transport.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import cast

from fastquorum.errors import StorageFailed
from fastquorum.kernels import Buffer, Flusher, SegmentFile
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.failpoints import InjectedFault, failpoint
from fastquorum.node.io.native.transport import NativeTransport
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.raft.election import ElectionState
from fastquorum.storage import names
from fastquorum.storage.ports import Disk, FileMode, StateStore
from fastquorum.wire import ApiKey

_API_NAMES = {
    ApiKey.VOTE: "vote",
    ApiKey.FETCH: "fetch",
    ApiKey.BEGIN_QUORUM_EPOCH: "begin-quorum-epoch",
    ApiKey.END_QUORUM_EPOCH: "end-quorum-epoch",
    ApiKey.PRODUCE: "produce",
}
_NOTED_MAX = 4096


@contextmanager
def _around(what: str, path: str) -> Iterator[None]:
    try:
        failpoint(f"before-{what}")
        yield
        failpoint(f"after-{what}")
    except InjectedFault as error:
        raise StorageFailed(detail=str(error), operation=what, path=path, errno_code=errno.EIO) from error


class InjectedFile:
    """A SegmentFile; `inner` is the kernels' own, which their flusher needs."""

    def __init__(self, inner: SegmentFile, disk: "InjectedDisk") -> None:
        self.inner = inner
        self._disk = disk

    @property
    def path(self) -> str:
        return self.inner.path

    @property
    def size_bytes(self) -> int:
        return self.inner.size_bytes

    @property
    def failed(self) -> bool:
        return self.inner.failed

    def write(self, position: int, data: Buffer) -> None:
        with self._around("write"):
            self.inner.write(position, data)

    def read(self, position: int, size_bytes: int) -> bytes:
        return self.inner.read(position, size_bytes)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        return self.inner.read_into(position, buffer)

    def zero_fill(self, start: int, end: int) -> None:
        with self._around("zero-fill"):
            self.inner.zero_fill(start, end)

    def allocate(self, start: int, end: int) -> bool:
        return self.inner.allocate(start, end)  # never needed: zeros take its place

    def truncate(self, size_bytes: int) -> None:
        with self._around("truncate"):
            self.inner.truncate(size_bytes)

    def sync(self) -> None:
        with self._around("sync"):
            self.inner.sync()

    def map(self) -> memoryview:
        return self.inner.map()

    def fileno(self) -> int:
        return self.inner.fileno()

    def close(self) -> None:
        self.inner.close()

    def _around(self, what: str) -> AbstractContextManager[None]:
        return _around(f"{self._disk.phase}-{what}", self.inner.path)


class InjectedDisk:
    """A Disk. `phase` is "recovery" until the log is open, "segment" from then on."""

    def __init__(self, inner: Disk) -> None:
        self._inner = inner
        self.phase = "recovery"

    @property
    def root(self) -> str:
        return self._inner.root

    def open(self, name: str, mode: FileMode = "open") -> SegmentFile:
        if mode != "create":
            return cast(SegmentFile, InjectedFile(self._inner.open(name, mode), self))
        with _around("segment-create", name):
            return cast(SegmentFile, InjectedFile(self._inner.open(name, mode), self))

    def exists(self, name: str) -> bool:
        return self._inner.exists(name)

    def list(self, directory: str = "") -> list[str]:
        return self._inner.list(directory)

    def make_directory(self, directory: str) -> None:
        self._inner.make_directory(directory)

    def rename(self, source: str, target: str) -> None:
        with _around("file-rename", source):
            self._inner.rename(source, target)

    def remove(self, name: str) -> None:
        with _around("recovery-remove" if self.phase == "recovery" else "file-remove", name):
            self._inner.remove(name)

    def sync_directory(self, directory: str = "") -> None:
        with _around("directory-sync", directory or self.root):
            self._inner.sync_directory(directory)

    def read_file(self, name: str) -> bytes:
        return self._inner.read_file(name)

    def replace_file(self, name: str, data: bytes) -> None:
        what = {names.DURABLE_MARK: "mark-replace", names.EPOCH_CHECKPOINT: "epochs-replace"}.get(
            name.rpartition("/")[2], "file-replace"
        )
        with _around("recovery-replace" if self.phase == "recovery" else what, name):
            self._inner.replace_file(name, data)


class InjectedStates:
    """A StateStore."""

    def __init__(self, inner: StateStore) -> None:
        self._inner = inner

    def load(self) -> ElectionState | None:
        return self._inner.load()

    def save(self, state: ElectionState) -> None:
        with _around("election-save", names.QUORUM_STATE):
            self._inner.save(state)


class InjectedFlusher:
    """A kernels.Flusher. An injected error is latched before it is reported, as a real one is."""

    def __init__(self, inner: Flusher) -> None:
        self._inner = inner
        self._failed = False

    def fileno(self) -> int:
        return self._inner.fileno()

    @property
    def failed(self) -> bool:
        return self._failed or self._inner.failed

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        self._guarded("before-flush-submit")
        self._inner.submit(token, [cast(InjectedFile, file).inner for file in files])
        self._guarded("after-flush-submit")

    def completions(self) -> list[tuple[int, int]]:
        done = self._inner.completions()
        if done:
            self._guarded("before-flush-count")
        if self._failed:
            return [(token, code or errno.EIO) for token, code in done]
        return done

    def counted(self) -> None:
        """The replica has taken note of what `completions` returned."""
        self._guarded("after-flush-count")

    def close(self) -> None:
        self._inner.close()

    def _guarded(self, name: str) -> None:
        try:
            failpoint(name)
        except InjectedFault:
            self._failed = True


class _NamedSends:
    """Names the frames that leave, so that a failpoint can stand before and after each kind of them. `eio` breaks the
    connection. Mixed into a transport; frames of the native lane have their failpoints where they are sent.
    """

    def note_request(self, connection: Connection, frame: bytes) -> None:
        """A request came in: its answer will carry only its correlation id."""
        if frame[:2] in _API_PREFIXES:
            names = self._request_names
            if len(names) >= _NOTED_MAX:
                names.clear()
            names[connection, frame[4:8]] = _API_PREFIXES[frame[:2]]

    @cached_property
    def _request_names(self) -> dict[tuple[Connection, bytes], str]:
        return {}

    def _send_named(self, what: str, send: Callable[[], None], break_off: Callable[[], None]) -> None:
        try:
            failpoint(f"before-send-{what}")
            send()
            failpoint(f"after-send-{what}")
        except InjectedFault:
            break_off()

    def _name(self, connection: Connection, head: bytes, *, is_accepted: bool) -> str | None:
        if is_accepted:
            name = self._request_names.pop((connection, head[:4]), None)
            return f"{name}-response" if name else None
        name = _API_PREFIXES.get(head[:2])
        return f"{name}-request" if name else None


class InjectedTransport(_NamedSends, SocketTransport):
    """Sockets of the replica's thread."""

    def send(self, connection: Connection, frame: Buffer) -> None:
        channel = self.channel(connection)
        send = partial(super().send, connection, frame)
        what = self._name(connection, bytes(frame[:8]), is_accepted=channel.accepted) if channel is not None else None
        if what is None:
            send()
        else:
            self._send_named(what, send, partial(self.break_off, connection))


class InjectedNativeTransport(_NamedSends, NativeTransport):
    """Sockets of the native shell: what Python sends on them."""

    def send(self, connection: Connection, frame: Buffer) -> None:
        send = partial(super().send, connection, frame)
        what = self._name(connection, bytes(frame[:8]), is_accepted=self.is_accepted(connection))
        if what is None:
            send()
        else:
            self._send_named(what, send, partial(self.break_off, connection))


def inner_file(file: SegmentFile) -> SegmentFile:
    """The kernels' own, without failpoints: what native code works on has its own."""
    return file.inner if isinstance(file, InjectedFile) else file


_API_PREFIXES = {key.to_bytes(2, "big"): name for key, name in _API_NAMES.items()}
