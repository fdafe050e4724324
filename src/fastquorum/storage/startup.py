"""Before a replica starts: who votes at first, and do its log and its quorum state belong together? KIP-595, KIP-853.

A replica that forgot its vote can vote twice in one epoch; one that forgot its records can help elect a leader
without them.
"""

from typing import Final

from fastquorum.errors import DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage.identity import Identity
from fastquorum.storage.log.checkpoint import data_values, read_checkpoint
from fastquorum.storage.log.snapshots import find_snapshots
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    KAFKA_STATE,
    LOG_DIRECTORY,
    QUORUM_STATE,
    RETIRED_SUFFIX,
    ZERO_CHECKPOINT,
    join,
    segment_name,
)
from fastquorum.storage.ports import Disk
from fastquorum.storage.replacing import RESTORE, damaged_state
from fastquorum.types import Epoch, Offset, VoterSet

_FORGOTTEN: Final = "this replica no longer knows how it voted"


def first_voters(disk: Disk, kernels: Kernels, identity: Identity) -> tuple[VoterSet, int]:
    """Voters and kraft.version before any record of the log: those of checkpoint (0,0), else the static ones.

    Apache Kafka removes (0,0) once its log starts later; the latest snapshot tells then.
    """
    state = None
    if disk.exists(ZERO_CHECKPOINT):
        state = read_checkpoint(disk, kernels, ZERO_CHECKPOINT)
    elif not disk.exists(join(LOG_DIRECTORY, segment_name(0))):
        state = find_snapshots(disk, kernels, LOG_DIRECTORY).latest_state
    if state is not None and state.voters is not None:
        return state.voters, state.kraft_version
    return identity.voters, 0


def first_values(disk: Disk, kernels: Kernels) -> tuple[bytes, ...]:
    """The records in `bootstrap.checkpoint`; none if there is no such file. CorruptionError if a byte of it is damaged,
    StorageFailed or DirectoryError if it cannot be read."""
    if not disk.exists(BOOTSTRAP_CHECKPOINT):
        return ()
    read_checkpoint(disk, kernels, BOOTSTRAP_CHECKPOINT)
    return data_values(disk, kernels, BOOTSTRAP_CHECKPOINT)


def check_owner(disk: Disk) -> None:
    """DirectoryError unless the votes in this directory are ours to give, and are known if it ever changed hands."""
    if not disk.exists(KAFKA_STATE):
        retired = [each for each in (QUORUM_STATE, KAFKA_STATE) if disk.exists(each + RETIRED_SUFFIX)]
        if retired and not disk.exists(QUORUM_STATE):
            raise DirectoryError(
                f"the quorum state is missing, and {retired[0]}{RETIRED_SUFFIX} says that this replica has voted",
                f"{_FORGOTTEN}: {RESTORE}",
                f"{disk.root}/{QUORUM_STATE}",
            )
        return
    if disk.exists(QUORUM_STATE):
        raise DirectoryError(
            "two files say how this replica voted, Kafka's and ours: a handover was interrupted",
            "finish it: `fastquorum handover`, the same way as before",
            disk.root,
        )
    raise DirectoryError(
        "Apache Kafka keeps this replica's votes",
        "stop Kafka's node, and take it over: `fastquorum handover --from-kafka`",
        disk.root,
    )


def check_state(state: ElectionState | None, *, end_offset: Offset, last_epoch: Epoch, path: str) -> ElectionState:
    """The state to start from.

    Raises:
        DirectoryError: the log has records, but the state is gone.
        CorruptionError: the log is of a later epoch than the state (reason "stale_state"): one of them was put back
        from a copy.
    """
    if state is None:
        if end_offset > 0:
            raise DirectoryError(
                f"the quorum state is missing, but the log has records up to offset {end_offset}",
                f"{_FORGOTTEN}: {RESTORE}",
                path,
            )
        return ElectionState()
    if state.epoch < last_epoch:
        why = f"older than the log, which has records of epoch {last_epoch}: one of them was put back"
        raise damaged_state("stale_state", path, why, offset=end_offset)
    return state
