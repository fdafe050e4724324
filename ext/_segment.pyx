"""One segment's file, and the native thread that syncs files without ever holding the GIL.

Fail-stop: nothing is retried after a failed sync, because what the page cache holds may differ from what the disk does.
A file is shared with the flusher: closing it while a sync is still queued lets that sync finish first.
"""

import errno
import mmap
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native.core cimport Completion, File, FileRef, FlushThread, make_file

from fastquorum.errors import ClosedError, FsyncFailed, StorageFailed, UsageError

_FLAGS = {
    "create": os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
    "open": os.O_RDWR | os.O_CLOEXEC,
    "read": os.O_RDONLY | os.O_CLOEXEC,
}
cdef int _EBADF = errno.EBADF
cdef int _ENOMEM = errno.ENOMEM


cdef int _refuse_negative(int64_t first, int64_t second) except -1:
    if min(first, second) < 0:
        raise UsageError(f"position or size {min(first, second)} is negative")
    return 0


@cython.final
cdef class SegmentFile:
    """One open file. Every failure raises StorageFailed, of `sync` FsyncFailed."""

    def __init__(self, str path, mode="open"):
        if mode not in _FLAGS:
            raise UsageError(f"mode is 'create', 'open' or 'read', not {mode!r}")
        if self.file.get() != NULL:
            raise UsageError(f"{self._path} is open already")
        self._path = path
        self._sync_error = 0
        try:
            descriptor = os.open(path, _FLAGS[mode], 0o644)
        except OSError as error:
            self.fail("open", error.errno)
        self.file = make_file(descriptor)
        if self.file.get() == NULL:
            os.close(descriptor)
            raise MemoryError

    cdef int fail(self, str operation, int error) except -1:
        cls = FsyncFailed if operation == "sync" else StorageFailed
        raise cls(detail=os.strerror(error), operation=operation, path=self._path, errno_code=error)

    cdef int refuse_failed(self, str operation) except -1:
        if self.file.get() != NULL:
            self._sync_error = self.file.get().sync_error()
        if self._sync_error:
            self.fail(operation, self._sync_error)
        return 0

    cdef int refuse_closed(self, str operation) except -1:
        if self.file.get() == NULL:
            self.fail(operation, _EBADF)
        return 0

    @property
    def path(self):
        return self._path

    @property
    def size_bytes(self):
        self.refuse_closed("stat")
        try:
            return os.fstat(self.file.get().descriptor()).st_size
        except OSError as error:
            self.fail("stat", error.errno)

    @property
    def failed(self):
        """True once a sync has failed, be it through a flusher."""
        if self.file.get() != NULL:
            self._sync_error = self.file.get().sync_error()
        return self._sync_error != 0

    def write(self, int64_t position, data):
        cdef FileRef file
        cdef Py_buffer view
        cdef int error = 0
        _refuse_negative(position, 0)
        self.refuse_failed("write")
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if view.len:
                self.refuse_closed("write")
                file = self.file
                with nogil:
                    error = file.get().write(position, <const uint8_t *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        if error:
            self.fail("write", error)

    def read(self, int64_t position, int64_t size_bytes):
        cdef FileRef file
        cdef int64_t done = 0
        cdef int error
        cdef uint8_t *out
        _refuse_negative(position, size_bytes)
        if size_bytes == 0:
            return b""
        self.refuse_closed("read")
        # Nothing is allocated for bytes that are not there.
        size_bytes = max(0, min(size_bytes, <int64_t>self.size_bytes - position))
        if size_bytes == 0:
            return b""
        data = PyBytes_FromStringAndSize(NULL, size_bytes)
        out = <uint8_t *>PyBytes_AS_STRING(data)
        file = self.file
        with nogil:
            error = file.get().read(position, out, size_bytes, &done)
        if error:
            self.fail("read", error)
        return data if done == size_bytes else data[:done]

    def read_into(self, int64_t position, buffer):
        cdef FileRef file
        cdef Py_buffer view
        cdef int64_t done = 0
        cdef int error = 0
        _refuse_negative(position, 0)
        PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
        try:
            if view.len:
                self.refuse_closed("read")
                file = self.file
                with nogil:
                    error = file.get().read(position, <uint8_t *>view.buf, view.len, &done)
        finally:
            PyBuffer_Release(&view)
        if error:
            self.fail("read", error)
        return done

    def zero_fill(self, int64_t start, int64_t end):
        cdef FileRef file
        cdef int error
        _refuse_negative(start, end)
        if start >= end:
            return
        self.refuse_failed("zero_fill")
        self.refuse_closed("zero_fill")
        file = self.file
        with nogil:
            error = file.get().zero_fill(start, end)
        if error:
            self.fail("zero_fill", error)

    def allocate(self, int64_t start, int64_t end):
        cdef FileRef file
        cdef bint is_done
        _refuse_negative(start, end)
        if start >= end:
            return True
        self.refuse_failed("allocate")
        self.refuse_closed("allocate")
        file = self.file
        with nogil:
            is_done = file.get().allocate(start, end)
        return is_done

    def truncate(self, int64_t size_bytes):
        _refuse_negative(size_bytes, 0)
        self.refuse_failed("truncate")
        self.refuse_closed("truncate")
        try:
            os.ftruncate(self.file.get().descriptor(), size_bytes)
        except OSError as error:
            self.fail("truncate", error.errno)

    def sync(self):
        cdef FileRef file
        cdef int error
        self.refuse_failed("sync")
        if self.file.get() == NULL:
            self._sync_error = _EBADF
            self.fail("sync", _EBADF)
        file = self.file
        with nogil:
            error = file.get().sync()
        if error:
            self.fail("sync", error)

    def map(self):
        self.refuse_closed("map")
        try:
            size_bytes = os.fstat(self.file.get().descriptor()).st_size
            if size_bytes == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(self.file.get().descriptor(), size_bytes, access=mmap.ACCESS_READ))
        except OSError as error:
            self.fail("map", error.errno)

    def fileno(self):
        """The file descriptor; -1 once closed."""
        return -1 if self.file.get() == NULL else self.file.get().descriptor()

    def close(self):
        """Close the file, or leave that to a flusher that still syncs it; views of `map` stay valid. Idempotent."""
        cdef int error = 0
        if self.file.get() == NULL:
            return
        self._sync_error = self.file.get().sync_error()
        if self.file.use_count() == 1:
            error = self.file.get().close()
        self.file.reset()
        if error:
            self.fail("close", error)


@cython.final
cdef class Flusher:
    """One native thread that syncs files in the order submitted; its eventfd is readable when completions wait."""

    def __cinit__(self):
        cdef int error
        self._thread = FlushThread.start(&error)
        if self._thread == NULL:
            raise OSError(error, os.strerror(error), "flusher thread")

    def __dealloc__(self):
        # In a forked child the thread is not there to be joined, and its lock may be held for ever: leave all of it alone.
        if self._thread != NULL and self._thread.is_in_own_process():
            with nogil:
                self._thread.close()
            del self._thread

    cdef int _refuse_child(self) except -1:
        if not self._thread.is_in_own_process():
            raise ClosedError("the flusher belongs to the parent process", "make a new one after fork")
        return 0

    def fileno(self):
        """The eventfd; readable when completions wait. -1 once closed."""
        return self._thread.descriptor()

    @property
    def failed(self):
        """True once a sync has failed, before its completion is reported."""
        return self._thread.failed()

    def submit(self, int64_t token, files):
        cdef vector[FileRef] refs
        cdef SegmentFile file
        cdef int error
        self._refuse_child()
        for file in files:
            # A closed file is reported like any other that cannot be synced: in its turn, by its errno.
            refs.push_back(make_file(-1) if file.file.get() == NULL else file.file)
        error = self._thread.submit(token, refs.data(), refs.size())
        if error == _ENOMEM:
            raise MemoryError
        if error:
            raise UsageError("the flusher is closed")

    def completions(self):
        cdef Completion completion
        found = []
        self._refuse_child()
        while self._thread.take(&completion):
            found.append((completion.token, completion.error))
        return found

    def close(self):
        """Finish what was submitted, end the thread. Idempotent; completions can still be read."""
        if self._thread.is_in_own_process():
            with nogil:
                self._thread.close()
