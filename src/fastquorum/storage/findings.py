"""Faults found in a data directory, in a form that people and tables can show."""

import errno
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from fastquorum.errors import DirectoryError, StorageFailed
from fastquorum.storage.ports import Disk
from fastquorum.types import Offset

_MAY_NOT: Final = (errno.EACCES, errno.EPERM)


class Severity(StrEnum):
    """What a finding means for the directory."""

    NOTE = "note"
    """Harmless: a crash leaves it, or it is derived data that is rebuilt."""
    TORN = "torn"
    """The tail of an interrupted write; the next start cuts it off."""
    CORRUPT = "corrupt"
    """Bytes that were whole once are damaged or missing."""


class Finding(NamedTuple):
    """One thing that is not as a closed log should be."""

    severity: Severity
    path: str
    position: int
    """-1 where it is about the whole file."""
    offset: Offset
    """-1 if none is known."""
    text: str


def error_text(error: DirectoryError) -> str:
    """Return the error's fault and its hint as one text."""
    return f"{error.detail}: {error.hint}" if error.hint else error.detail


def finding_of(disk: Disk, name: str, text: str, severity: Severity = Severity.CORRUPT) -> Finding:
    """Return a finding about a file of the data directory as a whole."""
    return Finding(severity, f"{disk.root}/{name}", -1, -1, text)


def raise_unless_odd(error: DirectoryError) -> None:
    """Raise it, where who reads may not look at a file: that says nothing of the file."""
    if isinstance(error.__cause__, StorageFailed) and error.__cause__.errno_code in _MAY_NOT:
        raise error


def up_to_refusal(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a check's findings and, where it cannot go on, the reason as the last one. DirectoryError if that reason is
    the reader's business."""
    try:
        yield from findings
    except DirectoryError as error:
        raise_unless_odd(error)
        yield Finding(Severity.CORRUPT, error.path, -1, -1, error_text(error))
