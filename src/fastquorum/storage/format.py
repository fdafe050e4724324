"""Formatting a data directory: what `fastquorum format` does, what Kafka's `kafka-storage format` does, and what only
we need.

`meta.properties` comes last, so a crash in the middle leaves a directory that counts as unformatted and can be
formatted again. Source: KIP-853 (initial controllers); Kafka `Formatter`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastquorum.addresses import AddressError, check_reachable, place
from fastquorum.errors import CorruptionError, DirectoryError, UsageError, VoterCountError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.identity import (
    CLUSTER_ID,
    FORMAT_VERSION,
    KEY_COUNT,
    META_VERSION,
    Identity,
    LogKind,
    format_voters,
    is_formatted,
    read_identity,
)
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.log.epochs import format_epochs, write_epochs
from fastquorum.storage.log.mark import LogPosition, Mark, read_mark, write_mark
from fastquorum.storage.log.segment import create_segment
from fastquorum.storage.log.voter_sets import voter_fault
from fastquorum.storage.ports import Disk
from fastquorum.storage.properties import format_properties
from fastquorum.storage.startup import first_values
from fastquorum.types import (
    LISTENER_NAME,
    METADATA_TOPIC_ID,
    NODE_ID_MAX,
    TOPIC_NAME,
    VOTERS_MAX,
    ZERO_UUID,
    NodeId,
    Uuid,
    VoterSet,
)
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record

METADATA_VERSION: Final = 30
"""metadata.version 4.3-IV0."""
DEFAULT_FEATURES: Final = (
    ("eligible.leader.replicas.version", 1),
    ("group.version", 1),
    ("share.version", 1),
    ("streams.version", 1),
    ("transaction.version", 2),
)
"""The other features, at the levels that go with it by default. Source: Kafka 4.3 `Feature`, `BootstrapMetadata`."""
USER_TOPIC_NAME: Final = "quorum"
_TOPIC_NAME_MAX: Final = 249
ORDER: Final = (
    names.LOG_DIRECTORY,
    names.BOOTSTRAP_CHECKPOINT,
    names.join(names.LOG_DIRECTORY, names.segment_name(0)),
    names.join(names.LOG_DIRECTORY, names.EPOCH_CHECKPOINT),
    names.join(names.LOG_DIRECTORY, names.DURABLE_MARK),
    names.join(names.LOG_DIRECTORY, names.PARTITION_METADATA),
    names.OWN_PROPERTIES,
    names.META_PROPERTIES,
)
"""What every format makes, one after the other: one that is there without another before it has lost that."""
_BEGIN: Final = LogPosition(0, 0, 0)
"""The position of a log in which nothing was written yet."""


class FormatOptions(NamedTuple):
    """What a directory is to become. At kraft.version 1 every voter has a directory id, at 0 none."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    """This directory's id: the one given for this node among the voters, else one drawn at random."""
    voters: VoterSet
    log_kind: LogKind = LogKind.USER
    topic_name: str = USER_TOPIC_NAME
    listener_name: str = LISTENER_NAME
    is_observer: bool = False
    """The node is not among the voters, and is meant not to be."""
    has_bootstrap: bool = True
    """A metadata log begins with the feature levels that Kafka's nodes need, appended by its first leader."""
    is_controller: bool = False
    """The node is one of a cluster's controllers: its log begins with all the feature levels that Kafka's own format
    gives a cluster by default, not metadata.version alone."""
    is_port_drawn: bool = False
    """The port of the only voter is one that was free: it may be another after a restart."""

    @property
    def kraft_version(self) -> int:
        return int(any(voter.key.directory_id != ZERO_UUID for voter in self.voters))


def format_directory(disk: Disk, kernels: Kernels, options: FormatOptions, *, now_ms: int) -> Identity:
    """Format the directory, or do nothing if it is formatted the same already.

    Raises:
        UsageError: the options contradict themselves or each other.
        DirectoryError: it is formatted as something else, or holds a log.
    """
    check_options(options)
    wanted = _identity(options)
    if is_formatted(disk):
        found = read_identity(disk)
        own = options.voters.get(options.node_id)
        if own is None or own.key.directory_id == ZERO_UUID:
            wanted = wanted._replace(directory_id=found.directory_id)  # nobody asked for a particular one
        _refuse_other(disk, wanted._replace(is_port_drawn=found.is_port_drawn), found)
        return found
    check_without_log(disk, kernels)
    disk.make_directory(names.LOG_DIRECTORY)
    times = CheckpointTimes.at(now_ms)
    disk.replace_file(names.BOOTSTRAP_CHECKPOINT, bootstrap_checkpoint(kernels, times, options))
    if wanted.kraft_version:
        first = encode_checkpoint(
            kernels, times._replace(last_contained_ms=now_ms), kraft_version=wanted.kraft_version, voters=options.voters
        )
        disk.replace_file(names.ZERO_CHECKPOINT, first)
    create_log(disk, kernels)
    disk.replace_file(names.OWN_PROPERTIES, _own_properties(wanted))
    disk.replace_file(names.META_PROPERTIES, meta_properties(wanted))
    return wanted


def create_log(disk: Disk, kernels: Kernels, *, directory: str = names.LOG_DIRECTORY) -> None:
    """The files of an empty log. Idempotent until something is appended."""
    disk.make_directory(directory)
    if not disk.exists(names.join(directory, names.segment_name(0))):
        create_segment(disk, kernels, directory, 0, 0).file.close()
    write_epochs(disk, directory, [])
    write_mark(disk, kernels, directory, _BEGIN, [])
    disk.replace_file(names.join(directory, names.PARTITION_METADATA), partition_metadata())


def partition_metadata() -> bytes:
    """Kafka's file, without a newline at its end, as Kafka leaves it."""
    return f"version: 0\ntopic_id: {METADATA_TOPIC_ID}".encode("ascii")


def meta_properties(identity: Identity) -> bytes:
    return format_properties(
        {
            "version": str(META_VERSION),
            CLUSTER_ID: identity.cluster_id,
            "node.id": str(identity.node_id),
            "directory.id": str(identity.directory_id),
        }
    )


def bootstrap_checkpoint(kernels: Kernels, times: CheckpointTimes, options: FormatOptions) -> bytes:
    """What a first leader appends to an empty metadata log; nothing for a user log, which no controller reads."""
    values: tuple[bytes, ...] = ()
    if options.log_kind is LogKind.METADATA and options.has_bootstrap:
        values = _first_values(DEFAULT_FEATURES if options.is_controller else ())
    return encode_checkpoint(kernels, times, values=values)


def _first_values(features: Sequence[tuple[str, int]]) -> tuple[bytes, ...]:
    """The records of the levels of metadata.version and of these features."""
    levels = (("metadata.version", METADATA_VERSION), *features)
    return tuple(
        encode_metadata_record(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels
    )


def _own_properties(identity: Identity) -> bytes:
    values = {
        "format.version": str(identity.format_version),
        CLUSTER_ID: identity.cluster_id,
        "log.kind": identity.log_kind,
        "topic.name": identity.topic_name,
        "listener.name": identity.listener_name,
        "kraft.version": str(identity.kraft_version),
        "voters": format_voters(identity.voters),
        "controller": "true" if identity.is_controller else "false",
        **({"port.drawn": "true"} if identity.is_port_drawn else {}),
    }
    return format_properties(
        {KEY_COUNT: str(len(values) + 1), **values},
        comment="What Apache Kafka has no file for. Written once, by format.",
    )


def _identity(options: FormatOptions) -> Identity:
    return Identity(
        cluster_id=options.cluster_id,
        node_id=options.node_id,
        directory_id=options.directory_id,
        log_kind=options.log_kind,
        topic_name=TOPIC_NAME if options.log_kind is LogKind.METADATA else options.topic_name,
        voters=options.voters,
        kraft_version=options.kraft_version,
        listener_name=options.listener_name,
        format_version=FORMAT_VERSION,
        is_controller=options.is_controller,
        is_port_drawn=options.is_port_drawn,
    )


def check_options(options: FormatOptions) -> None:
    """UsageError if the options contradict themselves or each other. Touches nothing."""
    voters = options.voters
    if not 1 <= len(voters) <= VOTERS_MAX:
        raise VoterCountError(f"{len(voters)} voters were given, a quorum has 1 to {VOTERS_MAX}", count=len(voters))
    if not options.cluster_id:
        raise UsageError("the cluster id is empty", "make one with `fastquorum random-uuid` and give it to every node")
    if not options.cluster_id.isprintable() or any(char.isspace() for char in options.cluster_id):
        raise UsageError(
            f"{options.cluster_id!r} is not a cluster id", "use text without spaces, or `fastquorum random-uuid`"
        )
    if not 0 <= options.node_id <= NODE_ID_MAX:
        raise UsageError(f"node id {options.node_id} is outside 0..{NODE_ID_MAX}")
    if options.directory_id == ZERO_UUID:
        raise UsageError("the directory id is all zeros, which stands for an unknown one", "draw a random one")
    without = [voter.key.id for voter in voters if voter.key.directory_id == ZERO_UUID]
    if options.kraft_version and without:
        raise UsageError(
            f"voters {without} have no directory id, others do",
            "give one for every voter (kraft.version 1) or for none",
        )
    for voter in voters:
        if fault := voter_fault(voter):
            raise UsageError(f"voter {voter.key.id} {fault}")
    _check_apart(voters)
    own = voters.get(options.node_id)
    if own is None and not options.is_observer:
        raise UsageError(
            f"node {options.node_id} is not among the voters {list(voters.ids)}", "add it, or format it as an observer"
        )
    if own is not None and options.is_observer:
        raise UsageError(
            f"node {options.node_id} is to be an observer, and is among the voters {list(voters.ids)}",
            "leave out --observer for a voter, or take the node out of the voters",
        )
    if own is not None and own.key.directory_id not in (ZERO_UUID, options.directory_id):
        raise UsageError(
            f"the voters give node {options.node_id} directory id {own.key.directory_id}, "
            f"but the directory's is to be {options.directory_id}"
        )
    if options.log_kind is LogKind.USER:
        _check_topic_name(options.topic_name)


def _check_apart(voters: VoterSet) -> None:
    """Each voter can be somewhere, is somewhere else than the others, and is its own directory."""
    places: dict[tuple[str, int], int] = {}
    directories: dict[Uuid, int] = {}
    for voter in voters:
        for endpoint in voter.endpoints:
            try:
                check_reachable(endpoint.host)
            except AddressError as error:
                raise UsageError(f"voter {voter.key.id}: {error}", "give an address that the others reach") from error
            other = places.setdefault(place(endpoint), voter.key.id)
            if other != voter.key.id:
                raise UsageError(f"voters {other} and {voter.key.id} are both at {endpoint.address}")
        if voter.key.directory_id == ZERO_UUID:
            continue
        other = directories.setdefault(voter.key.directory_id, voter.key.id)
        if other != voter.key.id:
            raise UsageError(
                f"voters {other} and {voter.key.id} have the same directory id {voter.key.directory_id}",
                "draw one for each: `fastquorum random-uuid`",
            )


def _check_topic_name(name: str) -> None:
    is_legal = all(char.isascii() and (char.isalnum() or char in "._-") for char in name)
    if not is_legal or not 0 < len(name) <= _TOPIC_NAME_MAX or name in (".", ".."):
        raise UsageError(f"{name!r} is not a topic name", "use ASCII letters, digits, '.', '_' and '-', at most 249")
    if name == TOPIC_NAME:
        raise UsageError(f"{TOPIC_NAME} is the name of metadata logs", "choose another topic name")


def _refuse_other(disk: Disk, wanted: Identity, found: Identity) -> None:
    for field, expected, present in zip(Identity._fields, wanted, found, strict=True):
        if expected == present:
            continue
        what = field.removeprefix("is_").replace("_", " ")
        raise DirectoryError(
            f"it is formatted already, with {what} {_shown(present)}, not {_shown(expected)}",
            "use it as it is, or choose an empty directory; formatting again would forget votes and records",
            disk.root,
        )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_voters(value) if isinstance(value, VoterSet) else str(value)


def check_without_log(disk: Disk, kernels: Kernels) -> None:
    """Raise DirectoryError for anything that a format does not leave, without meta.properties: somebody's directory
    that lost a file, not one to write over. One that is being formatted meanwhile, and run, is none."""
    found = next(_traces(disk, kernels), None)
    is_foreign = found is None and _is_foreign_bootstrap(disk, kernels)
    found = found or _out_of_order(disk)
    if is_formatted(disk):
        return
    if is_foreign:
        raise DirectoryError(
            f"it holds a {names.BOOTSTRAP_CHECKPOINT} that `fastquorum format` has not made",
            "choose an empty directory, or move that file away",
            disk.root,
        )
    if found is not None:
        raise DirectoryError(
            f"it holds {found}, but no {names.META_PROPERTIES}", "put that file back from a copy", disk.root
        )


def _out_of_order(disk: Disk) -> str | None:
    """Return, in words, what is left of a whole format; None if an interrupted one may have left it. The last file is
    looked for first: if a format goes on meanwhile, everything made before that file is there by then."""
    later: str | None = None
    missing: str | None = None
    for name in reversed(ORDER[:-1]):
        if disk.exists(name):
            later = later or name
        elif later is not None:
            missing = name
    return None if missing is None else f"{later} without {missing}"


def _traces(disk: Disk, kernels: Kernels) -> Iterator[str]:
    """What votes or records have left, in words."""
    for state in (names.QUORUM_STATE, names.KAFKA_STATE):
        if disk.exists(state) or disk.exists(state + names.RETIRED_SUFFIX):
            yield "a quorum state"
    listing = disk.list(names.LOG_DIRECTORY)
    for name in listing:
        path = names.join(names.LOG_DIRECTORY, name)
        if names.parse_segment(name) is not None and (name != names.segment_name(0) or _size(disk, path)):
            yield f"a log ({name})"
        elif names.parse_checkpoint(name) is not None and path != names.ZERO_CHECKPOINT:
            yield f"a snapshot ({name})"
        elif name == names.EPOCH_CHECKPOINT and disk.read_file(path) != format_epochs([]):
            yield f"epochs of a log ({name})"
        elif name == names.DURABLE_MARK and _says_more(read_mark(disk, kernels, names.LOG_DIRECTORY)):
            yield f"the mark of a log that had records ({name})"
    yield from (f"an index of a log ({name})" for name in listing if names.parse_index(name) is not None)


def _says_more(mark: Mark | None) -> bool:
    """Is it not the mark of an empty log, which is never written in part?"""
    return mark is None or (mark.at, mark.start_offset) != (_BEGIN, 0)


def _is_foreign_bootstrap(disk: Disk, kernels: Kernels) -> bool:
    """Is there one that no format leaves? That writes no other records than these, whatever it was asked for."""
    if not disk.exists(names.BOOTSTRAP_CHECKPOINT):
        return False
    try:
        found = first_values(disk, kernels)
    except CorruptionError:
        return True
    return found not in ((), _first_values(()), _first_values(DEFAULT_FEATURES))


def _size(disk: Disk, name: str) -> int:
    file = disk.open(name, "read")
    try:
        return file.size_bytes
    finally:
        file.close()
