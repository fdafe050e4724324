"""Errors of the native shell: the numbers that stand for them there, and why it cut the lane off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, FsyncFailed, StorageFailed
from fastquorum.storage.log.log import Log

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Shell

BARRIER_FAILED: Final = -1000
"""What a barrier that will never pass is told; appends that fail are told numbers below it, each with its error."""
_KEPT: Final = 64


class ErrorNumbers:
    """The errors of appends that waited when a lead ended; the latest of them. Looked at from any thread."""

    def __init__(self) -> None:
        self._errors: dict[int, FastQuorumError] = {}
        self._forgotten: FastQuorumError | None = None
        """The newest error that is not kept any more: what was appended in a lead so long ago may be committed, too."""
        self._latest = BARRIER_FAILED

    def number(self, error: FastQuorumError) -> int:
        """A new one, which stands for it. On one thread."""
        self._latest -= 1
        self._errors[self._latest] = error
        if len(self._errors) > _KEPT:
            oldest = max(self._errors)
            self._forgotten = self._errors[oldest]  # before it goes: somebody may be looking
            del self._errors[oldest]
        return self._latest

    def error(self, number: int) -> FastQuorumError | None:
        """None: it stands for no error of its own."""
        found = self._errors.get(number)
        return self._forgotten if found is None and number < BARRIER_FAILED else found


def failure_of(shell: Shell, log: Log) -> FastQuorumError:
    """Why the shell cut the lane off from this log."""
    operation, code, offset = shell.failure()
    path, detail = log.path, os.strerror(code)
    if operation == "sync":
        return FsyncFailed(detail=detail, operation="sync", path=path, errno_code=code)
    if operation == "memory":
        return lacks_memory()
    if operation == "read":
        try:
            log.read_stored(offset)
        except (CorruptionError, FatalError) as error:
            return error
    return StorageFailed(detail=detail, operation=operation or "use", path=path, errno_code=code)


def lacks_memory() -> FatalError:
    """What was begun could not be finished, on whichever thread."""
    return FatalError(
        "there is no memory left for what this node has to keep: what of its work is done is not known; give the "
        "process more, and start it anew"
    )
