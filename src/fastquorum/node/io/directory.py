"""A data directory, opened for a replica: recognised as this node's, its log recovered.

A foreign directory is refused. Source: KIP-853 (directory ids); Kafka `MetaProperties`.
"""

import secrets
import select
from collections.abc import Callable, Collection
from functools import partial
from types import MappingProxyType
from typing import Final

from fastquorum.closing import end_all
from fastquorum.config import QuorumConfig
from fastquorum.errors import DirectoryError, FastQuorumError, FatalError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.node.io.failpoints import failpoint
from fastquorum.node.io.injected import InjectedDisk, InjectedFlusher, InjectedStates
from fastquorum.node.io.native.flusher import NativeFlusher
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.records.bootstrap_records import is_without_records
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.storage import names
from fastquorum.storage.format import check_without_log
from fastquorum.storage.identity import Identity, LogKind, format_voters, is_formatted, read_identity
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk, exists, refusals_named
from fastquorum.storage.ports import Disk, StateStore
from fastquorum.storage.startup import first_values
from fastquorum.types import Uuid, VoterSet

FINISH_WAITS: Final = 20
FINISH_WAIT_S: Final = 0.05
MADE: Final = frozenset(
    (names.LOCK, names.LOG_DIRECTORY, names.BOOTSTRAP_CHECKPOINT, names.OWN_PROPERTIES, names.QUORUM_STATE)
)
"""What formatting makes, but for what it makes last, and leaves when it is interrupted: an unformatted directory may
hold it."""
_OURS: Final = MADE | {"lost+found"}
_MADE_AFTER: Final = MappingProxyType(
    {
        names.BOOTSTRAP_CHECKPOINT: names.LOG_DIRECTORY,
        names.OWN_PROPERTIES: names.LOG_DIRECTORY,
        names.META_PROPERTIES: names.OWN_PROPERTIES,
    }
)
"""What formatting writes under a temporary name first, and what is there by then: without that it is somebody
else's."""


class OpenDirectory:
    """Everything of a replica that lives on its disk, the flusher included. `close` it on the replica's thread."""

    def __init__(
        self,
        path: str,
        kernels: Kernels,
        config: QuorumConfig,
        settings: NodeSettings,
        before: Callable[[Identity, VoterSet, bool], None],
        native_flusher: NativeFlusher | None = None,
    ) -> None:
        """Lock, check, recover. Raises DirectoryError, UsageError, CorruptionError, StorageFailed.

        `before` is told whose directory it is, the voters, and whether this node's port was drawn when the directory
        was formatted, once all is checked and nothing in the directory has been touched; what it raises leaves the
        directory as it was. With `native_flusher` the native shell syncs, once that is bound.
        """
        self.voters = VoterSet()

        def accept(identity: Identity, voters: VoterSet, kraft_version: int) -> None:
            self.voters = _voters(path, settings, identity, voters, kraft_version)
            before(identity, self.voters, identity.is_port_drawn and settings.voters is None)

        injected = _InjectedDisks()
        self.flusher: WatchedFlusher | NativeFlusher = native_flusher or _python_flusher(kernels)
        try:
            self._data = DataDirectory.open(
                path,
                kernels,
                config,
                self.flusher,
                cluster_id=settings.cluster_id,
                node_id=settings.node_id,
                wrap=injected.wrap if failpoint.are_armed else lambda disk: disk,
                accept=accept,
            )
        except BaseException:
            self.flusher.close()
            raise
        self.states: StateStore = self._data.states
        if failpoint.are_armed:
            injected.recovered()
            self.states = InjectedStates(self._data.states)
        self.log = self._data.log
        self.disk = self._data.disk
        self.identity: Identity = self._data.identity
        self.kraft_version = self._data.kraft_version
        self.first_records: tuple[bytes, ...] = ()
        """What a metadata log begins with, if it has no records yet and should have."""
        try:
            if self.identity.log_kind is LogKind.METADATA and is_without_records(kernels, self.log):
                with refusals_named():
                    self.first_records = first_values(self._data.disk, kernels)
        except BaseException as error:
            self.close(error if isinstance(error, FastQuorumError) else None)
            raise

    def close(self, error: FastQuorumError | None) -> None:
        """Wait, within reason, for the sync under way; then close it all. Raises StorageFailed.

        After a storage error the directory stays condemned for this process (README, decision 3).
        """
        try:
            if error is None:
                self._finish_flushing()
        except FatalError as failed:
            error = failed
            raise
        finally:
            fatal = error if isinstance(error, FatalError) else None
            end_all((self.flusher.close, partial(self._data.close, fatal)))

    def _finish_flushing(self) -> None:
        log = self.log
        if isinstance(self.flusher, NativeFlusher):
            for token, code in self.flusher.finish():
                log.flush_done(token, code)
            return
        for _ in range(FINISH_WAITS):
            if not log.is_flushing or log.failed:
                return
            select.select([self.flusher.fileno()], [], [], FINISH_WAIT_S)
            for token, code in self.flusher.completions():
                log.flush_done(token, code)

    @property
    def root(self) -> str:
        return self._data.disk.root


def _python_flusher(kernels: Kernels) -> WatchedFlusher:
    flusher = kernels.Flusher()
    return WatchedFlusher(InjectedFlusher(flusher) if failpoint.are_armed else flusher)


def _voters(path: str, settings: NodeSettings, found: Identity, first: VoterSet, kraft_version: int) -> VoterSet:
    """The first voters. Static ones may have moved to other addresses, but not become others."""
    configured = settings.voters
    for what, wanted, present in (("log", settings.log, found.log_kind), ("topic", settings.topic, found.topic_name)):
        if wanted is not None and wanted != present:
            raise DirectoryError(f"its {what} is {present}, not {wanted}", "choose an empty directory", path)
    if configured is None:
        return first
    if configured.get(found.node_id) is None:
        raise UsageError(f"node {found.node_id} is not among the voters {list(configured.ids)}", "add it")
    if found.voters and [voter.key for voter in configured] != [voter.key for voter in found.voters]:
        raise DirectoryError(
            f"its voters are {format_voters(found.voters)}, not {format_voters(configured)}",
            "start with the voters it was formatted with; static voters cannot be added or removed",
            path,
        )
    return first if kraft_version else configured


class _InjectedDisks:
    """Remembers the disk it wrapped, to tell it when recovery is over."""

    def __init__(self) -> None:
        self._disk: InjectedDisk | None = None

    def wrap(self, disk: Disk) -> Disk:
        self._disk = InjectedDisk(disk)
        return self._disk

    def recovered(self) -> None:
        assert self._disk is not None
        self._disk.phase = "segment"


def new_directory_id() -> Uuid:
    """Random, and never one that means something else (Kafka reserves the first hundred)."""
    while True:
        drawn = Uuid(secrets.token_bytes(16))
        if any(drawn[:15]) and not str(drawn).startswith("-"):
            return drawn


def is_unformatted(disk: Disk, kernels: Kernels) -> bool:
    """Is there nothing yet? A directory that holds something else, or a log without the file that says whose it is, is
    refused, before anything is written into it."""
    if is_formatted(disk):
        return False
    listing = disk.list()
    foreign = [name for name in listing if name not in _OURS and not _is_half_made(name, listing)]
    if foreign:
        raise DirectoryError(
            f"is not a data directory, and not empty: it holds {foreign[0]}", "choose an empty directory", disk.root
        )
    check_without_log(disk, kernels)
    return True


def _is_half_made(name: str, listing: Collection[str]) -> bool:
    """Has a format that was interrupted left it, while it wrote a file?"""
    whole = name.removesuffix(names.TEMPORARY_SUFFIX)
    return whole != name and _MADE_AFTER.get(whole) in listing


def needs_format(path: str, kernels: Kernels) -> bool:
    """Is the directory missing or empty? Changes nothing. DirectoryError if it is foreign."""
    with refusals_named():
        return not exists(path) or is_unformatted(RealDisk.open_directory(path, kernels), kernels)


def present_identity(path: str, kernels: Kernels) -> Identity | None:
    """What the directory was formatted as; None: it is missing, or not formatted. Changes nothing. DirectoryError."""
    with refusals_named():
        return None if needs_format(path, kernels) else read_identity(RealDisk.open_directory(path, kernels))
