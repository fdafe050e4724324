"""Checks that a log is of the kind that its directory was formatted for, where that can be told for certain.

In a controller's log nobody else writes: its first record is one of metadata. Into another metadata log a program may
append anything, as into a log of users, so that no record tells what it is; but a format for users leaves no first
records beside it. Source: KIP-631 (frames), `storage.format`.
"""

from fastquorum.errors import CorruptionError, DirectoryError, StorageFailed, UnsupportedVersion, WireError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.identity import Identity, LogKind
from fastquorum.storage.log.checkpoint import data_values
from fastquorum.storage.log.reading import whole_batches
from fastquorum.storage.ports import Disk
from fastquorum.wire.records.metadata import decode_metadata_record

_ADVICE = (
    f"files of two directories are mixed here: put back the {names.OWN_PROPERTIES}, {names.META_PROPERTIES} and "
    f"{names.BOOTSTRAP_CHECKPOINT} that belong to this log, from a copy of this directory"
)


def check_kind(disk: Disk, kernels: Kernels, identity: Identity) -> None:
    """DirectoryError for a log that is of another kind than the directory. What is damaged says nothing here."""
    if identity.log_kind is LogKind.USER:
        if _has_first_values(disk, kernels):
            raise DirectoryError(
                f"{names.OWN_PROPERTIES} says that it is a user log, and {names.BOOTSTRAP_CHECKPOINT} holds the first "
                "records of a metadata log",
                _ADVICE,
                disk.root,
            )
    elif identity.is_controller and not _is_metadata(_first_value(disk, kernels)):
        raise DirectoryError(
            "it was formatted for a metadata log, and the first record of its log is none of metadata",
            _ADVICE,
            f"{disk.root}/{names.LOG_DIRECTORY}",
        )


def _has_first_values(disk: Disk, kernels: Kernels) -> bool:
    """Whether there are first records beside the log. A file that cannot be read says nothing: once the log has begun,
    nobody needs it."""
    try:
        if not disk.exists(names.BOOTSTRAP_CHECKPOINT):
            return False
        return bool(data_values(disk, kernels, names.BOOTSTRAP_CHECKPOINT))
    except (CorruptionError, DirectoryError):
        return False
    except StorageFailed as failed:
        if not failed.is_refusal:
            raise
        return False


def _is_metadata(value: bytes | None) -> bool:
    """Is it a metadata record, perhaps one of a newer version? None: there is no record yet."""
    if value is None:
        return True
    try:
        decode_metadata_record(value)
    except UnsupportedVersion:
        return True
    except WireError:
        return False
    return True


def _first_value(disk: Disk, kernels: Kernels) -> bytes | None:
    """The first record that is no control record; None if there is none, or something damaged before it."""
    for name in disk.list(names.LOG_DIRECTORY):
        if names.parse_segment(name) is None:
            continue
        file = disk.open(names.join(names.LOG_DIRECTORY, name), "read")
        try:
            for info, data in whole_batches(kernels, file, file.size_bytes):
                if not info.crc_valid:
                    return None
                for value in () if info.is_control else kernels.decode_values(data, verify_crc=False):
                    return value or b""
        except CorruptionError:
            return None
        finally:
            file.close()
    return None
