"""A data directory opened for a replica: lock, identity, log and quorum state, in an order where every check counts."""

from collections.abc import Callable
from functools import partial
from typing import Self

from fastquorum.closing import end_all
from fastquorum.config import QuorumConfig
from fastquorum.errors import DirectoryReplaced, FatalError, StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage.contents import check_kind
from fastquorum.storage.identity import Identity, LogKind, read_identity
from fastquorum.storage.io.disk import RealDisk, refusals_named
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.io.reserve import DescriptorReserve
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import QUORUM_STATE
from fastquorum.storage.ports import Disk, FlushPort
from fastquorum.storage.startup import check_owner, check_state, first_values, first_voters
from fastquorum.storage.state_value import state_in
from fastquorum.types import NodeId, OffsetAndEpoch, VoterSet


def _as_it_is(disk: Disk) -> Disk:
    return disk


def _check_beside(disk: Disk, kernels: Kernels, identity: Identity, end: OffsetAndEpoch) -> None:
    """Does the quorum state belong to this directory, and to a log that ends there, and can be read what a first leader
    begins with, where nothing was written yet? That is seen before anything is changed, and again when it is opened.
    CorruptionError, DirectoryError, StorageFailed."""
    path = f"{disk.root}/{QUORUM_STATE}"
    state: ElectionState | None = None
    if disk.exists(QUORUM_STATE):
        state = state_in(kernels, identity.owner, disk.read_file(QUORUM_STATE), path)
    check_state(state, end_offset=end.offset, last_epoch=end.epoch, path=path)
    if end.offset == 0 and identity.log_kind is LogKind.METADATA:
        first_values(disk, kernels)


def _accept(identity: Identity, voters: VoterSet, kraft_version: int) -> None:
    pass


class DataDirectory:
    """What a replica runs on. Close it, with the error that ended the replica if there was one."""

    def __init__(
        self,
        lock: DirectoryLock,
        disk: RealDisk,
        reserve: DescriptorReserve,
        identity: Identity,
        first: tuple[VoterSet, int],
        log: Log,
        states: LmdbStateStore,
        election: ElectionState,
    ) -> None:
        self._lock = lock
        self.disk = disk
        self._reserve = reserve
        self.identity = identity
        self.voters, self.kraft_version = first
        """Before any record of the log says otherwise."""
        self.log = log
        self.states = states
        self.election = election
        """The saved state; the initial one if nothing was ever saved."""

    @classmethod
    def open(
        cls,
        path: str,
        kernels: Kernels,
        config: QuorumConfig,
        flush_port: FlushPort,
        *,
        cluster_id: str | None = None,
        node_id: NodeId | None = None,
        wrap: Callable[[Disk], Disk] = _as_it_is,
        accept: Callable[[Identity, VoterSet, int], None] = _accept,
    ) -> Self:
        """Lock a formatted directory, recover its log, and check that log and quorum state belong together.

        `wrap` may put something around the disk that the log is recovered and written through. `accept` sees whose the
        directory is (first voters and kraft.version with it) before anything in it is written, and may raise.

        Raises:
            DirectoryError: in use, not formatted, foreign (`cluster_id`, `node_id`), read-only, newer, or incomplete.
            CorruptionError: what had been synced is damaged.
            StorageFailed: the disk failed; this process cannot open the directory again.
        """
        disk = RealDisk.open_directory(path, kernels)
        lock = DirectoryLock.acquire(disk.root)
        reserve = disk.keep_descriptors()
        log: Log | None = None
        states: LmdbStateStore | None = None
        try:
            identity = read_identity(disk, cluster_id=cluster_id, node_id=node_id)
            check_owner(disk)
            check_kind(disk, kernels, identity)
            first = first_voters(disk, kernels, identity)
            accept(identity, *first)
            state_path = f"{disk.root}/{QUORUM_STATE}"
            belongs = partial(_check_beside, disk, kernels, identity)
            log = Log.open(wrap(disk), kernels, config, flush_port, accept=belongs)
            states = LmdbStateStore(disk.root, identity.owner, kernels)
            election = check_state(states.load(), end_offset=log.end_offset, last_epoch=log.last_epoch, path=state_path)
            states.renew()
            disk.sync_directory()
        except BaseException as error:
            is_refused = isinstance(error, StorageFailed) and error.is_refusal
            if isinstance(error, FatalError) and not is_refused:
                lock.condemn(str(error))
            end_all([*(each.close for each in (states, log) if each is not None), reserve.close, lock.release])
            with refusals_named():
                raise
        return cls(lock, disk, reserve, identity, first, log, states, election)

    def close(self, error: FatalError | None = None) -> None:
        """Close log and state, release the lock. Idempotent. The flush port is closed already.

        After a fatal error nothing is written any more, and this process cannot open the directory again.
        """
        if error is not None:
            self._condemn(error)
            self.log.abandon()
        try:
            self.log.close()
        except FatalError as failure:
            self._condemn(failure)
            raise
        finally:
            end_all((self.states.close, self._reserve.close, self._lock.release))

    def _condemn(self, error: FatalError) -> None:
        if not isinstance(error, DirectoryReplaced):  # no disk has failed: it may be put back
            self._lock.condemn(str(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close(error if isinstance(error, FatalError) else None)
