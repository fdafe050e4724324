"""The quorum state of a data directory that nobody runs: would its node start with it, and with this log?

A node forgets no vote: it does not start where the file of its epoch and vote is damaged, is missing beside records, or
is older than the log. Reading changes nothing, opens nothing for writing, and needs no lock.
"""

from collections.abc import Iterator

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage import names
from fastquorum.storage.contents import check_kind
from fastquorum.storage.findings import Finding, Severity, error_text, finding_of
from fastquorum.storage.identity import is_formatted, is_of_quorum, read_identity
from fastquorum.storage.kafka_state import decode_kafka_state
from fastquorum.storage.ports import Disk
from fastquorum.storage.startup import check_state
from fastquorum.storage.state_value import StateOwner, settled, state_in
from fastquorum.storage.verifying import Verification


def check_quorum_state(disk: Disk, kernels: Kernels, directory: str, seen: Verification) -> Iterator[Finding]:
    """Yield faults of the state beside a log that was verified before: a node writes its epoch first. StorageFailed,
    and DirectoryError where the files cannot be listed.

    A log's directory by itself, and one that was never formatted, may do without the file: no node starts there.
    """
    here = [name for name in _state_names(directory) if disk.exists(name)]
    is_ours = disk.exists(names.OWN_PROPERTIES) or is_of_quorum(disk.exists)
    owner: StateOwner | None = None
    if directory and is_formatted(disk):
        here = here or [names.QUORUM_STATE if disk.exists(names.OWN_PROPERTIES) else names.KAFKA_STATE]
    if directory and (names.QUORUM_STATE in here or (is_ours and is_formatted(disk))):
        try:
            identity = read_identity(disk)
            owner = identity.owner
            check_kind(disk, kernels, identity)
        except DirectoryError as error:
            yield Finding(Severity.CORRUPT, error.path, -1, -1, error_text(error))
    for name in here:
        yield from _checked(disk, kernels, name, owner, seen)


def _state_names(directory: str) -> list[str]:
    """Return the names of our file and Kafka's, as the disk has them."""
    kafkas = names.join(directory, names.KAFKA_STATE.rpartition("/")[2])
    return [names.QUORUM_STATE, kafkas] if directory else [kafkas]


def _checked(
    disk: Disk, kernels: Kernels, name: str, owner: StateOwner | None, seen: Verification
) -> Iterator[Finding]:
    """`owner`: of our file; None, if nobody knows whose it should be: that it can be read is all there is to see."""
    try:
        is_there = disk.exists(name)
        if is_there and name == names.QUORUM_STATE and owner is None:
            disk.read_file(name)
            return
        state = _read(disk, kernels, name, owner) if is_there else None
        check_state(state, end_offset=seen.end.offset, last_epoch=seen.end.epoch, path=name)
    except DirectoryError as error:
        yield finding_of(disk, name, error_text(error))
    except CorruptionError as error:
        is_whole = error.reason == "stale_state"
        yield finding_of(disk, name, error.detail if is_whole else f"damaged ({error.reason}): {error.detail}")


def _read(disk: Disk, kernels: Kernels, name: str, owner: StateOwner | None) -> ElectionState | None:
    """None if nothing was ever saved. CorruptionError, DirectoryError."""
    return settled(lambda: disk.read_file(name), lambda data: _decoded(kernels, name, data, owner))


def _decoded(kernels: Kernels, name: str, data: bytes, owner: StateOwner | None) -> ElectionState | None:
    if owner is None or name != names.QUORUM_STATE:
        return decode_kafka_state(data, name)
    return state_in(kernels, owner, data, name)
