"""Formatting a data directory under its lock. Where that fails, whatever it made is taken away again.

Source: Kafka `Formatter`, which leaves what it has made.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from fastquorum.errnos import FULL, remedy
from fastquorum.errors import ConfigError, DirectoryError, StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.directory import MADE, is_unformatted, new_directory_id
from fastquorum.node.settings.log_kinds import check_log_kind, log_kind_of
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.storage.format import ORDER, USER_TOPIC_NAME, FormatOptions, check_options, format_directory
from fastquorum.storage.identity import Identity, LogKind
from fastquorum.storage.io.disk import RealDisk, refusals_named
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.names import LOCK, META_PROPERTIES, TEMPORARY_SUFFIX
from fastquorum.types import LISTENER_NAME, TOPIC_NAME, ZERO_UUID, Endpoint, NodeId, ReplicaKey, Voter, VoterSet

_ANYWHERE: Final = Endpoint(LISTENER_NAME, "127.0.0.1", 1)
"""Stands for where a quorum of one will listen, while its settings are checked."""


def format_locked(path: str, kernels: Kernels, options: FormatOptions) -> Identity:
    """Format the directory, which is made if it is missing. Return what it is formatted as.

    Raises:
        DirectoryError: foreign, in use, formatted as something else, or without room; it is as it was before.
        StorageFailed: the disk failed.
    """
    made = _missing_directories(path)
    try:
        with ExitStack() as resources:
            disk = RealDisk.open_directory(path, kernels, create=True)
            resources.callback(disk.keep_descriptors().close)
            is_unformatted(disk, kernels)
            has_lock_file = os.path.lexists(os.path.join(disk.root, LOCK))
            resources.callback(DirectoryLock.acquire(path).release)
            resources.enter_context(refusals_named())  # nothing runs on it yet
            resources.enter_context(_shortage_named(disk.root))
            if is_unformatted(disk, kernels):
                resources.enter_context(_taken_back(disk.root, has_lock_file=has_lock_file))
            return format_directory(disk, kernels, options, now_ms=wall_clock_ms())
    except BaseException:
        for directory in made:
            with suppress(OSError):  # somebody else's files are in it
                os.rmdir(directory)
        raise


def _missing_directories(path: str) -> list[str]:
    """Return the directory and those above it that are not there, the deepest first."""
    missing = []
    directory = os.path.abspath(path)
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing


@contextmanager
def _taken_back(root: str, *, has_lock_file: bool) -> Iterator[None]:
    """Remove what a format makes, if it fails, and was not there before, while the directory is locked: what says that
    it is formatted comes first, the lock's file last."""
    before = set(_below(root))
    if not has_lock_file:
        before.discard(os.path.join(root, LOCK))
    try:
        yield
    except BaseException:
        made = [each for each in _below(root) if each not in before and _may_be_made(os.path.relpath(each, root))]
        for each in sorted(made, key=lambda each: _turn(os.path.relpath(each, root))):
            with suppress(OSError):  # the next format does without
                os.rmdir(each) if os.path.isdir(each) else os.unlink(each)
        raise


def _may_be_made(path: str) -> bool:
    """Not what somebody else puts there meanwhile. A directory is removed only if it is empty."""
    return path.partition(os.sep)[0].removesuffix(TEMPORARY_SUFFIX) in (*MADE, META_PROPERTIES)


def _turn(path: str) -> int:
    """Return when it is removed: what was made last goes first, so that what is left is an interrupted format's."""
    last_first = ORDER[::-1]
    path = path.removesuffix(TEMPORARY_SUFFIX)
    return last_first.index(path) if path in last_first else len(ORDER) if path == LOCK else 0


def _below(root: str) -> Iterator[str]:
    for directory, directories, files in os.walk(root, topdown=False):
        yield from (os.path.join(directory, name) for name in (*files, *directories))


@contextmanager
def _shortage_named(root: str) -> Iterator[None]:
    """Say of want of room, or of descriptors, that the directory cannot be formatted: no replica has stopped."""
    try:
        yield
    except StorageFailed as error:
        if error.errno_code not in FULL and not error.lacks_descriptor:
            raise
        where = os.path.relpath(error.path, root)
        raise DirectoryError(
            f"cannot be formatted: {error.detail} ({error.operation} of {where})",
            f"{remedy(error.errno_code)}, and format it again",
            root,
        ) from error


def check_format(settings: NodeSettings) -> NodeId:
    """Return the id of the node that an empty directory may be formatted for by these settings. Touches nothing. Raises
    UsageError, ConfigError."""
    options = _format_options(settings, _ANYWHERE)
    check_options(options)
    check_log_kind(settings, options.log_kind, is_controller=options.is_controller)
    if options.log_kind is LogKind.METADATA and settings.topic not in (None, TOPIC_NAME):
        raise ConfigError(f"the topic of a metadata log is {TOPIC_NAME}", "leave it out", "topic")
    return options.node_id


def format_for(path: str, kernels: Kernels, settings: NodeSettings, reached: Endpoint) -> None:
    """Format an empty directory, after `check_format`; its only voter is `reached` there if no voters were said.
    Raises as `format_locked`."""
    format_locked(path, kernels, _format_options(settings, reached))


def _format_options(settings: NodeSettings, reached: Endpoint) -> FormatOptions:
    if settings.node_id is None:
        raise ConfigError("an empty directory needs one", "give every node an id of its own, from 0", "node_id")
    voters = settings.voters
    if voters is None:
        # A quorum of one, where it listens now.
        voters = VoterSet([Voter(ReplicaKey(settings.node_id), (reached,))])
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
        log_kind=log_kind_of(settings),
        topic_name=settings.topic if settings.topic is not None else USER_TOPIC_NAME,
        is_controller=bool(settings.controller),
        is_port_drawn=settings.voters is None and (settings.listen is None or settings.listen.port == 0),
    )
