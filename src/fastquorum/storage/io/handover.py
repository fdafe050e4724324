"""A replica's epoch and vote change hands between our nodes and Apache Kafka's, offline: KIP-595, KIP-853.

Exactly one of the two files may count. The target's is written and synced first, then the source's is given another
name, durably: a crash in between leaves both, which nobody of ours runs on, and the handover done again ends it.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Final

from fastquorum.errors import DirectoryError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage.contents import check_kind
from fastquorum.storage.identity import Identity, LogKind, read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import held
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.kafka_state import decode_kafka_state, encode_kafka_state
from fastquorum.storage.log.snapshots import find_snapshots
from fastquorum.storage.names import DURABLE_MARK, KAFKA_STATE, LOG_DIRECTORY, QUORUM_STATE, RETIRED_SUFFIX, join
from fastquorum.storage.offline import OfflineLog, trim_log
from fastquorum.storage.ports import Disk
from fastquorum.storage.replacing import REPLACE
from fastquorum.storage.startup import check_state, first_voters
from fastquorum.types import OffsetAndEpoch
from fastquorum.wire.records.control import ControlRecordType, control_type, decode_control_record
from fastquorum.wire.records.control_values import KRaftVersionRecord

_MARK: Final = join(LOG_DIRECTORY, DURABLE_MARK)


def hand_to_kafka(path: str, kernels: Kernels) -> ElectionState:
    """Kafka's node may run on this directory afterwards, ours may not. What was handed over.

    The log is closed as well, and the durable mark, which Kafka would not keep, is removed. Raises DirectoryError (in
    use, not ours, not formatted), UsageError (a user log), CorruptionError, StorageFailed.
    """
    disk = RealDisk.open_directory(path, kernels)
    with held(disk.root):
        identity = _metadata_identity(disk, kernels)
        if not disk.exists(QUORUM_STATE) and disk.exists(KAFKA_STATE):
            raise DirectoryError("it is Kafka's already", path=disk.root)
        voters, first_version = first_voters(disk, kernels, identity)
        state = _check_closed(disk, kernels, lambda: _agreed(disk, _load(disk, kernels, identity)), QUORUM_STATE)
        kraft_version = max(first_version, _kraft_version(disk, kernels))
        written = encode_kafka_state(state, kraft_version=kraft_version, voters=voters)
        disk.replace_file(KAFKA_STATE, written)
        _remove_mark(disk)
        _retire(disk, QUORUM_STATE)
    return state


def take_from_kafka(path: str, kernels: Kernels) -> ElectionState:
    """Our node may run on this directory afterwards, Kafka's no more. What was handed over. Raises as
    `hand_to_kafka`."""
    disk = RealDisk.open_directory(path, kernels)
    with held(disk.root):
        identity = _metadata_identity(disk, kernels)
        if not disk.exists(KAFKA_STATE):
            if disk.exists(QUORUM_STATE):
                raise DirectoryError("it is fastquorum's already", path=disk.root)
            raise DirectoryError("there is no quorum-state of Kafka's here", "name the data directory", disk.root)
        ours, state = _load(disk, kernels, identity), _kafkas(disk)
        _agreed(disk, ours)
        # Before our state is kept, Kafka may have written since the mark was: closing the log renews it.
        _check_closed(disk, kernels, lambda: state, KAFKA_STATE, is_marked=ours is not None)
        if ours is None:  # or the file was made, and nothing kept in it, when that was interrupted
            with _states(disk, kernels, identity) as store:
                store.save(state)
        _retire(disk, KAFKA_STATE)
    return state


def _metadata_identity(disk: Disk, kernels: Kernels) -> Identity:
    identity = read_identity(disk)
    if identity.log_kind is not LogKind.METADATA:
        raise UsageError(
            "a user log cannot be Kafka's: its nodes stop at the first record", "only metadata logs change hands"
        )
    check_kind(disk, kernels, identity)
    return identity


def _kraft_version(disk: Disk, kernels: Kernels) -> int:
    """What log and snapshots say, which is never lowered; 0 if they say nothing. CorruptionError."""
    snapshot = find_snapshots(disk, kernels, LOG_DIRECTORY).latest_state
    found = 0 if snapshot is None else snapshot.kraft_version
    for batch in OfflineLog(disk, kernels).batches():
        if not batch.info.is_control:
            continue
        for record in kernels.decode_records(batch.data, verify_crc=False):
            if record.key is not None and control_type(record.key) == ControlRecordType.KRAFT_VERSION:
                decoded = decode_control_record(record.key, record.value or b"")[1]
                assert isinstance(decoded, KRaftVersionRecord)
                found = max(found, decoded.kraft_version)
    return found


def _check_closed(
    disk: Disk, kernels: Kernels, load: Callable[[], ElectionState | None], name: str, *, is_marked: bool = True
) -> ElectionState:
    """The state, over a log that is closed first and belongs to it: that is seen before anything is changed. `name` is
    the file that it is of; `is_marked` as for `recover`."""
    states: list[ElectionState] = []

    def accept(end: OffsetAndEpoch) -> None:
        path = f"{disk.root}/{name}"
        states.append(check_state(load(), end_offset=end.offset, last_epoch=end.epoch, path=path))

    trim_log(disk, kernels, LOG_DIRECTORY, accept, is_marked=is_marked)
    return states[0]


def _load(disk: RealDisk, kernels: Kernels, identity: Identity) -> ElectionState | None:
    if not disk.exists(QUORUM_STATE):
        return None
    with _states(disk, kernels, identity) as store:
        return store.load()


def _states(disk: RealDisk, kernels: Kernels, identity: Identity) -> closing[LmdbStateStore]:
    return closing(LmdbStateStore(disk.root, identity.owner, kernels))


def _kafkas(disk: Disk) -> ElectionState:
    return decode_kafka_state(disk.read_file(KAFKA_STATE), f"{disk.root}/{KAFKA_STATE}")


def _agreed(disk: Disk, ours: ElectionState | None) -> ElectionState | None:
    """Ours, or, where an interrupted handover made its file and kept nothing in it, Kafka's. DirectoryError where both
    say something, and not the same."""
    if not disk.exists(KAFKA_STATE):
        return ours
    kafkas = _kafkas(disk)
    if ours in (None, kafkas):
        return kafkas
    assert ours is not None
    raise DirectoryError(
        f"Kafka's quorum-state and ours contradict each other (epochs {kafkas.epoch} and {ours.epoch}): both were run, "
        "or a copy of one was put back",
        f"this replica may have voted twice: {REPLACE}",
        disk.root,
    )


def _remove_mark(disk: Disk) -> None:
    if disk.exists(_MARK):
        disk.remove(_MARK)
        disk.sync_directory(LOG_DIRECTORY)


def _retire(disk: Disk, name: str) -> None:
    """It is kept for whoever wants to look, and counts no more."""
    if disk.exists(name):
        disk.rename(name, name + RETIRED_SUFFIX)
        disk.sync_directory(name.rpartition("/")[0])
