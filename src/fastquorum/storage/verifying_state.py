"""The quorum state of a data directory that nobody runs: would its node start with it, and with this log?

A node forgets no vote: it does not start where the file of its epoch and vote is damaged, is missing beside records, or
is older than the log. Reading changes nothing, opens nothing for writing, and needs no lock.
"""

from collections.abc import Iterator
from typing import Final

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage import names
from fastquorum.storage.identity import is_formatted, read_identity
from fastquorum.storage.kafka_state import decode_kafka_state
from fastquorum.storage.lmdb_file import value_in
from fastquorum.storage.ports import Disk
from fastquorum.storage.startup import check_state
from fastquorum.storage.state_value import STATE_KEY, decode_state
from fastquorum.storage.verifying import Finding, Severity, Verification

_BACK: Final = "restore the file, or format an empty directory under a new directory id and let it fetch the log"


def check_quorum_state(disk: Disk, kernels: Kernels, directory: str, seen: Verification) -> list[Finding]:
    """What is wrong with the state beside a log that was verified before: a node writes its epoch first. StorageFailed.

    A log's directory by itself, and one that was never formatted, may do without the file: no node starts there.
    """
    here = [name for name in _state_names(directory) if disk.exists(name)]
    if not here and directory and is_formatted(disk):
        is_ours = disk.exists(names.OWN_PROPERTIES)
        here = [names.QUORUM_STATE if is_ours else names.KAFKA_STATE]
    return [each for name in here for each in _checked(disk, kernels, name, seen)]


def _state_names(directory: str) -> list[str]:
    """Of our file and Kafka's, as the disk has them."""
    kafkas = names.join(directory, names.KAFKA_STATE.rpartition("/")[2])
    return [names.QUORUM_STATE, kafkas] if directory else [kafkas]


def _checked(disk: Disk, kernels: Kernels, name: str, seen: Verification) -> Iterator[Finding]:
    try:
        state = _read(disk, kernels, name) if disk.exists(name) else None
        check_state(state, end_offset=seen.end_offset, last_epoch=seen.last_epoch, path=name)
    except DirectoryError as error:
        yield _finding(disk, name, f"{error.detail}: {error.hint}" if error.hint else error.detail)
    except CorruptionError as error:
        if error.reason == "stale_state":
            why = f"older than the log, which has records of epoch {seen.last_epoch}: one of them was put back"
        else:
            why = f"damaged ({error.reason}): nobody can tell how this replica voted"
        yield _finding(disk, name, f"{why}: {_BACK} from the others")


def _read(disk: Disk, kernels: Kernels, name: str) -> ElectionState | None:
    """None if nothing was ever saved. A node may be writing it: what looks damaged is looked at until it no longer
    changes. CorruptionError, DirectoryError."""
    data = disk.read_file(name)
    while True:
        try:
            return _decoded(disk, kernels, name, data)
        except CorruptionError:
            before, data = data, disk.read_file(name)
            if data == before:
                raise


def _decoded(disk: Disk, kernels: Kernels, name: str, data: bytes) -> ElectionState | None:
    if name != names.QUORUM_STATE:
        return decode_kafka_state(data, name)
    value = value_in(data, STATE_KEY, name)
    return None if value is None else decode_state(kernels, read_identity(disk).owner, value, name)


def _finding(disk: Disk, name: str, text: str) -> Finding:
    return Finding(Severity.CORRUPT, f"{disk.root}/{name}", -1, -1, text)
