"""What a data directory has beside its log: would a node start with it? Reading changes nothing, and needs no lock."""

from collections.abc import Iterator

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.checkpoint import read_checkpoint
from fastquorum.storage.ports import Disk
from fastquorum.storage.startup import check_owner
from fastquorum.storage.verifying import Finding, Severity


def check_data_directory(disk: Disk, kernels: Kernels, directory: str) -> Iterator[Finding]:
    """What is wrong with the records that a first leader begins a log with, and with whose the votes are. `directory`:
    the log's; empty: it is looked at by itself."""
    if not directory:
        return
    if disk.exists(names.BOOTSTRAP_CHECKPOINT):
        try:
            read_checkpoint(disk, kernels, names.BOOTSTRAP_CHECKPOINT)
        except (CorruptionError, DirectoryError) as error:
            yield _finding(disk, names.BOOTSTRAP_CHECKPOINT, str(error))
    if disk.exists(names.QUORUM_STATE):
        try:
            check_owner(disk)
        except DirectoryError as error:
            yield _finding(disk, names.QUORUM_STATE, f"{error.detail}: {error.hint}")


def _finding(disk: Disk, name: str, text: str) -> Finding:
    return Finding(Severity.CORRUPT, f"{disk.root}/{name}", -1, -1, text)
