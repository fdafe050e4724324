"""What a data directory has beside its log: would a node start with it? Reading changes nothing, and needs no lock."""

from collections.abc import Callable, Iterator
from typing import Final

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.findings import Finding, Severity, error_text, finding_of
from fastquorum.storage.format import check_without_log
from fastquorum.storage.identity import is_formatted
from fastquorum.storage.ports import Disk
from fastquorum.storage.startup import check_owner, first_values

_OURS: Final = (names.OWN_PROPERTIES, names.join(names.LOG_DIRECTORY, names.DURABLE_MARK))
"""What says that a node of ours was formatted, or ran, here."""


def check_data_directory(
    disk: Disk, kernels: Kernels, directory: str, has_first_records: Callable[[], bool]
) -> Iterator[Finding]:
    """Yield faults of the files that name the directory's owner, of its lock, of the records that a first leader begins
    a log with, and of the files that name the votes' owner. `directory`: the log's; if empty, the log is looked at by
    itself. `has_first_records`: a leader has begun the log, or will begin it with others."""
    if not directory:
        return
    yield from _lock_faults(disk)
    yield from _bootstrap_faults(disk, kernels, has_first_records)
    if is_formatted(disk) or disk.exists(names.QUORUM_STATE):
        if not disk.exists(names.KAFKA_STATE) or disk.exists(names.QUORUM_STATE):
            yield from _refusal(disk, names.QUORUM_STATE, lambda: check_owner(disk))
        elif disk.exists(names.OWN_PROPERTIES):
            text = "Apache Kafka keeps this replica's votes: no node of ours starts on it (`fastquorum handover`)"
            yield finding_of(disk, names.KAFKA_STATE, text, Severity.NOTE)
    elif any(disk.exists(name) for name in _OURS):
        yield from _refusal(disk, names.META_PROPERTIES, lambda: _check_unformatted(disk, kernels))


def _check_unformatted(disk: Disk, kernels: Kernels) -> None:
    """DirectoryError, for one reason or another: no node starts without meta.properties."""
    check_without_log(disk, kernels)
    raise DirectoryError(
        f"{names.META_PROPERTIES} is missing, which a format writes last: no node starts here",
        "put it back from a copy; or, where a format was interrupted and nothing was ever run, format it again",
        disk.root,
    )


def _lock_faults(disk: Disk) -> Iterator[Finding]:
    """What keeps a node from opening its lock's file. It is not opened here: closing it again would end the lock that
    this process may have on it."""
    try:
        if disk.exists(names.LOCK) and disk.exists(names.join(names.LOCK, ".")):
            yield finding_of(disk, names.LOCK, "a directory lies where a file should: move it away")
    except DirectoryError as error:
        yield finding_of(disk, names.LOCK, error_text(error))


def _bootstrap_faults(disk: Disk, kernels: Kernels, has_first_records: Callable[[], bool]) -> Iterator[Finding]:
    """Yield faults of the first records as a node reads them: once the log has begun, it reads them never again."""
    try:
        first_values(disk, kernels)
    except (CorruptionError, DirectoryError) as error:
        if has_first_records():
            text = f"damaged, and no longer needed: the log has begun ({error})"
            yield finding_of(disk, names.BOOTSTRAP_CHECKPOINT, text, Severity.NOTE)
        else:
            yield finding_of(disk, names.BOOTSTRAP_CHECKPOINT, str(error))


def _refusal(disk: Disk, name: str, check: Callable[[], None]) -> Iterator[Finding]:
    """What `run` says of it; about the file of that name."""
    try:
        check()
    except DirectoryError as error:
        yield finding_of(disk, name, error_text(error))
