"""One segment's file: positioned reads and writes, one fdatasync per flush, fail-stop after a failed one.

Knows nothing of batches. Nothing is retried after an error: what a failed sync left in the page cache may differ from
what the disk holds. A file's descriptor is shared with the flusher: closing the file while a sync is still queued lets
that sync finish first.
"""

import errno
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from fastquorum.errors import FsyncFailed, StorageFailed, UsageError
from fastquorum.kernels import Buffer
from fastquorum.kernels.pure.batch_header import as_view

_FLAGS: Final = {
    "create": os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
    "open": os.O_RDWR | os.O_CLOEXEC,
    "read": os.O_RDONLY | os.O_CLOEXEC,
}
_ZEROS: Final = bytes(1024 * 1024)


class Descriptor:
    """A file descriptor, closed by the last of its holders to let go: the SegmentFile, or a flusher after it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.sync_errno = 0
        """The errno of the first sync that failed; 0 if none has."""
        self._holders = 1
        self._lock = threading.Lock()

    def hold(self) -> None:
        """One more holder, who must `release`."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Let go. OSError if this closed the descriptor and that failed."""
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            os.close(self.fd)

    def sync(self) -> int:
        """One fdatasync, none once one has failed; the errno, 0 = synced."""
        if not self.sync_errno:
            try:
                os.fdatasync(self.fd)
            except OSError as error:
                self.sync_errno = error.errno or errno.EIO
        return self.sync_errno


class SegmentFile:
    """One open file. Every failure raises StorageFailed, of `sync` FsyncFailed."""

    def __init__(self, path: str, mode: Literal["create", "open", "read"] = "open") -> None:
        if mode not in _FLAGS:
            raise UsageError(f"mode is 'create', 'open' or 'read', not {mode!r}")
        self._path = path
        self._descriptor: Descriptor | None = None
        self._sync_errno = 0
        with self._mapped_errors("open"):
            self._descriptor = Descriptor(os.open(path, _FLAGS[mode], 0o644))

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        with self._mapped_errors("stat"):
            return os.fstat(self._open_fd()).st_size

    @property
    def failed(self) -> bool:
        """True once a sync has failed, be it through a flusher."""
        return self._failed_errno() != 0

    def write(self, position: int, data: Buffer) -> None:
        self._write("write", position, as_view(data))

    def read(self, position: int, size_bytes: int) -> bytes:
        _refuse_negative(position, size_bytes)
        parts: list[bytes] = []
        with self._mapped_errors("read"):
            fd = self._open_fd()
            while size_bytes > 0:
                part = os.pread(fd, size_bytes, position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
                size_bytes -= len(part)
        return b"".join(parts)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        _refuse_negative(position)
        left = memoryview(buffer).cast("B")
        done = 0
        with self._mapped_errors("read"):
            fd = self._open_fd()
            while done < len(left):
                count = os.preadv(fd, [left[done:]], position + done)
                if not count:
                    break
                done += count
        return done

    def zero_fill(self, start: int, end: int) -> None:
        _refuse_negative(start, end)
        for position in range(start, end, len(_ZEROS)):
            self._write("zero_fill", position, memoryview(_ZEROS)[: end - position])

    def allocate(self, start: int, end: int) -> bool:
        _refuse_negative(start, end)
        if start >= end:
            return True
        self._refuse_failed("allocate", StorageFailed)
        with self._mapped_errors("allocate"):
            fd = self._open_fd()
        while True:
            try:
                os.posix_fallocate(fd, start, end - start)
            except InterruptedError:
                continue
            except OSError:
                return False  # whoever asked writes zeros, and learns why
            return True

    def truncate(self, size_bytes: int) -> None:
        _refuse_negative(size_bytes)
        self._refuse_failed("truncate", StorageFailed)
        with self._mapped_errors("truncate"):
            os.ftruncate(self._open_fd(), size_bytes)

    def sync(self) -> None:
        self._refuse_failed("sync", FsyncFailed)
        if self._descriptor is None:
            self._sync_errno = errno.EBADF
        else:
            self._descriptor.sync()
        self._refuse_failed("sync", FsyncFailed)

    def map(self) -> memoryview:
        with self._mapped_errors("map"):
            fd = self._open_fd()
            size_bytes = os.fstat(fd).st_size
            if size_bytes == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(fd, size_bytes, access=mmap.ACCESS_READ))

    def fileno(self) -> int:
        """The file descriptor; -1 once closed."""
        return -1 if self._descriptor is None else self._descriptor.fd

    def close(self) -> None:
        """Close the file, or leave that to a flusher that still syncs it; views of `map` stay valid. Idempotent."""
        if self._descriptor is None:
            return
        self._sync_errno = self._failed_errno()
        descriptor, self._descriptor = self._descriptor, None
        with self._mapped_errors("close"):
            descriptor.release()

    def share(self) -> Descriptor | None:
        """The descriptor, held once more on behalf of a flusher; None once closed."""
        if self._descriptor is not None:
            self._descriptor.hold()
        return self._descriptor

    def _open_fd(self) -> int:
        if self._descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor.fd

    def _failed_errno(self) -> int:
        return self._sync_errno or (self._descriptor.sync_errno if self._descriptor else 0)

    def _write(self, operation: str, position: int, view: memoryview) -> None:
        _refuse_negative(position)
        self._refuse_failed(operation, StorageFailed)
        with self._mapped_errors(operation):
            fd = self._open_fd()
            while view:
                written = os.pwrite(fd, view, position)
                position += written
                view = view[written:]

    def _refuse_failed(self, operation: str, error: type[StorageFailed]) -> None:
        code = self._failed_errno()
        if code:
            raise self._failure(operation, code, error)

    @contextmanager
    def _mapped_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(operation, error.errno or errno.EIO, StorageFailed) from error

    def _failure(self, operation: str, code: int, error: type[StorageFailed]) -> StorageFailed:
        return error(detail=os.strerror(code), operation=operation, path=self._path, errno_code=code)


def _refuse_negative(*numbers: int) -> None:
    if min(numbers) < 0:
        raise UsageError(f"position or size {min(numbers)} is negative")
