"""A data directory that is being generated: nothing in it is ever synced, since it is not used before it is whole.

It does not depend on the content. A file of a log is the kernels' own, but for its syncs.
"""

import os
import shutil
from typing import Any, Final, cast

from fastquorum.kernels import SegmentFile
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.names import TEMPORARY_SUFFIX
from fastquorum.storage.ports import FileMode


class _Unsynced:
    """A file of the kernels whose syncs do nothing."""

    def __init__(self, file: SegmentFile) -> None:
        self._file: Final = file

    def sync(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class DraftDisk(RealDisk):
    """A Disk that syncs nothing: thousands of small files are made in the time that their syncs would take."""

    def open(self, name: str, mode: FileMode = "open") -> SegmentFile:
        return cast(SegmentFile, _Unsynced(super().open(name, mode)))

    def sync_directory(self, directory: str = "") -> None:
        """Do nothing."""

    def replace_file(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with self._mapped("write", name):
            with open(path + TEMPORARY_SUFFIX, "wb") as file:
                file.write(data)
            os.rename(path + TEMPORARY_SUFFIX, path)

    def copy_to(self, root: str) -> None:
        """Copy all files to the same places below `root`, which is created. StorageFailed at the first failure."""
        for directory, _, files in os.walk(self.root):
            below = os.path.relpath(directory, self.root)
            os.makedirs(os.path.join(root, below), exist_ok=True)
            for name in sorted(files):
                place = os.path.normpath(os.path.join(below, name))
                with self._mapped("copy", place):
                    shutil.copyfile(os.path.join(self.root, place), os.path.join(root, place))


class NoFlush:
    """A FlushPort that is never called: a draft's log is flushed when it rolls, and when it is closed."""

    failed = False

    def submit(self, token: int, files: object) -> None:
        raise AssertionError("nobody syncs a draft")
