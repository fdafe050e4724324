"""A data directory, opened for a replica: locked, formatted if it is empty, recognised as this node's, its log
recovered.

Source: product section 3 (an empty directory is formatted, a foreign one refused); KIP-853 (directory ids).
"""

import secrets
import select
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from fastquorum.errors import ConfigError, DirectoryError, FatalError, UsageError
from fastquorum.kernels import Flusher, Kernels
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.failpoints import failpoint
from fastquorum.node.io.injected import InjectedDisk, InjectedFlusher, InjectedStates
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.settings import NodeSettings
from fastquorum.storage import names
from fastquorum.storage.format import USER_TOPIC_NAME, FormatOptions, format_directory
from fastquorum.storage.identity import Identity, LogKind, format_voters, is_formatted, read_identity
from fastquorum.storage.io_disk import RealDisk
from fastquorum.storage.io_lock import DirectoryLock
from fastquorum.storage.io_state import LmdbStateStore
from fastquorum.storage.log import Log
from fastquorum.storage.ports import Disk, StateStore
from fastquorum.storage.startup import check_state, first_voters
from fastquorum.types import ZERO_UUID, Endpoint, ReplicaKey, Uuid, Voter, VoterSet

FINISH_WAITS: Final = 20
FINISH_WAIT_S: Final = 0.05

_OURS: Final = frozenset(
    (
        names.LOCK,
        names.LOG_DIRECTORY,
        names.BOOTSTRAP_CHECKPOINT,
        names.OWN_PROPERTIES,
        names.QUORUM_STATE,
        "lost+found",
    )
)
"""What an unformatted directory may hold: nothing, or what formatting leaves when it is interrupted."""


@dataclass(slots=True)
class OpenDirectory:
    """Everything of a replica that lives on its disk. `close` it on the replica's thread."""

    identity: Identity
    voters: VoterSet
    """Before any record of the log."""
    kraft_version: int
    log: Log
    states: StateStore
    flusher: WatchedFlusher
    lock: DirectoryLock
    resources: ExitStack
    """Whatever is to be closed, in reverse order."""

    def finish_flushing(self) -> None:
        """Wait, within reason, for the sync under way, so that the log can be closed tidily. Raises FsyncFailed."""
        for _ in range(FINISH_WAITS):
            if not self.log.is_flushing or self.log.failed:
                return
            select.select([self.flusher.fileno()], [], [], FINISH_WAIT_S)
            for token, code in self.flusher.completions():
                self.log.flush_done(token, code)

    def close(self, error: Exception | None) -> None:
        """Close it all. After a storage error the directory stays condemned for this process (architecture decision
        3).
        """
        if isinstance(error, FatalError):
            self.lock.condemn(str(error))
        self.resources.close()


def new_directory_id() -> Uuid:
    """Random, and never one that means something else (Kafka reserves the first hundred)."""
    while True:
        drawn = Uuid(secrets.token_bytes(16))
        if any(drawn[:15]) and not str(drawn).startswith("-"):
            return drawn


def lock_directory(path: str, kernels: Kernels, resources: ExitStack) -> tuple[RealDisk, DirectoryLock]:
    """The locked directory. A foreign one is refused before anything is written into it."""
    disk = RealDisk.open_directory(path, kernels, create=True)
    if not is_formatted(disk):
        foreign = [name for name in disk.list() if name not in _OURS and not name.endswith(names.STALE_SUFFIXES)]
        if foreign:
            raise DirectoryError(
                f"is not a data directory, and not empty: it holds {foreign[0]}", "choose an empty directory", disk.root
            )
    lock = DirectoryLock.acquire(path)
    resources.callback(lock.release)
    return disk, lock


def identify(disk: Disk, kernels: Kernels, settings: NodeSettings, listening: Endpoint) -> Identity:
    """Whose directory it is; formatted now if it is empty. Raises DirectoryError, UsageError, ConfigError."""
    if not is_formatted(disk):
        return format_directory(disk, kernels, _format_options(settings, listening), now_ms=wall_clock_ms())
    found = read_identity(disk, cluster_id=settings.cluster_id, node_id=settings.node_id)
    for what, asked, present in (("log", settings.log, found.log_kind), ("topic", settings.topic, found.topic_name)):
        if asked is not None and asked != present:
            raise DirectoryError(f"its {what} is {present}, not {asked}", "choose an empty directory", disk.root)
    return found._replace(voters=_static_voters(disk, settings.voters, found))


def is_empty(disk: Disk) -> bool:
    """Is it yet to be formatted?"""
    return not is_formatted(disk)


def open_log(
    disk: RealDisk,
    lock: DirectoryLock,
    kernels: Kernels,
    settings: NodeSettings,
    identity: Identity,
    resources: ExitStack,
) -> OpenDirectory:
    """Recover the log, open the quorum state. Raises CorruptionError, DirectoryError, StorageFailed."""
    try:
        return _open_log(disk, lock, kernels, settings, identity, resources)
    except FatalError as error:
        lock.condemn(str(error))
        raise


def _open_log(
    disk: RealDisk,
    lock: DirectoryLock,
    kernels: Kernels,
    settings: NodeSettings,
    identity: Identity,
    resources: ExitStack,
) -> OpenDirectory:
    own_disk: Disk = disk
    own_flusher: Flusher = kernels.Flusher()
    if failpoint.are_armed:
        own_disk = InjectedDisk(disk)
        own_flusher = InjectedFlusher(own_flusher)
    flusher = WatchedFlusher(own_flusher)
    resources.callback(flusher.close)
    log = Log.open(own_disk, kernels, settings.quorum, flusher)
    resources.callback(log.close)
    store = LmdbStateStore(disk.root, identity.owner, kernels)
    resources.callback(store.close)
    check_state(store.load(), end_offset=log.end_offset, last_epoch=log.last_epoch, path=disk.root)
    states: StateStore = store
    if isinstance(own_disk, InjectedDisk):
        own_disk.phase = "segment"
        states = InjectedStates(store)
    voters, kraft_version = first_voters(disk, kernels, identity)
    return OpenDirectory(identity, voters, kraft_version, log, states, flusher, lock, resources)


def _format_options(settings: NodeSettings, listening: Endpoint) -> FormatOptions:
    if settings.node_id is None:
        raise ConfigError("an empty directory needs one", "give every node an id of its own, from 0", "node_id")
    voters = settings.voters
    if voters is None:
        # A quorum of one, where it listens now.
        voters = VoterSet([Voter(ReplicaKey(settings.node_id), (listening,))])
    cluster_id = settings.cluster_id
    if cluster_id is None:
        if len(voters) > 1:
            raise ConfigError(
                "an empty directory needs one if there is more than one voter",
                "make one with `fastquorum random-uuid` and give it to every node",
                "cluster_id",
            )
        cluster_id = str(new_directory_id())
    own = voters.get(settings.node_id)
    given = own.key.directory_id if own is not None else ZERO_UUID
    return FormatOptions(
        cluster_id=cluster_id,
        node_id=settings.node_id,
        directory_id=given if given != ZERO_UUID else new_directory_id(),
        voters=voters,
        log_kind=settings.log if settings.log is not None else LogKind.USER,
        topic_name=settings.topic if settings.topic is not None else USER_TOPIC_NAME,
    )


def _static_voters(disk: Disk, asked: VoterSet | None, found: Identity) -> VoterSet:
    """Static voters may move to other addresses, but not become others."""
    if asked is None:
        return found.voters
    if asked.get(found.node_id) is None:
        raise UsageError(f"node {found.node_id} is not among the voters {list(asked.ids)}", "add it")
    if not found.voters and not found.kraft_version:
        return asked  # formatted by Kafka, which keeps static voters in its configuration
    if [voter.key for voter in asked] != [voter.key for voter in found.voters]:
        raise DirectoryError(
            f"its voters are {format_voters(found.voters)}, not {format_voters(asked)}",
            "start with the voters it was formatted with; static voters cannot be added or removed",
            disk.root,
        )
    return asked
