"""A formatted data directory's owner and kind of log: `meta.properties` and `fastquorum.properties`.

Ours is the same in all voters' directories of a cluster, which it names: one of another cluster would have this node
led by other voters. A directory that Apache Kafka formatted has only the former; the rest then takes the values that
Kafka's has by its nature. One of ours that has lost the latter is refused: taken for Kafka's, it would be another log,
of other voters.
Source: KIP-631 (meta.properties), KIP-853 (directory ids).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, NamedTuple

from fastquorum.addresses import AddressError, parse_address
from fastquorum.errors import DirectoryError
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    RETIRED_SUFFIX,
    ZERO_CHECKPOINT,
    join,
)
from fastquorum.storage.ports import Disk
from fastquorum.storage.properties import parse_properties
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import (
    LISTENER_NAME,
    NODE_ID_MAX,
    TOPIC_NAME,
    ZERO_UUID,
    Endpoint,
    NodeId,
    ReplicaKey,
    Uuid,
    Voter,
    VoterSet,
    is_whole,
)

FORMAT_VERSION: Final = 1
"""The version of everything in the directory that is not Kafka's. A newer one is refused."""
META_VERSION: Final = 1
_VOTER: Final = "ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID"
KEY_COUNT: Final = "key.count"
"""How many keys our properties have, this one counted: the first, so that a file that was cut short is known."""
CLUSTER_ID: Final = "cluster.id"
"""In both files. Kafka reads ours nowhere."""
_KEYS: Final = ("format.version", "log.kind", "topic.name", "listener.name", "kraft.version", "voters")
"""Keys that all versions have written."""
_LEFT_BY_VOTERS: Final = (
    QUORUM_STATE,
    QUORUM_STATE + RETIRED_SUFFIX,
    BOOTSTRAP_CHECKPOINT,
    *(join(LOG_DIRECTORY, name) for name in (DURABLE_MARK, PARTITION_METADATA, EPOCH_CHECKPOINT)),
)
"""Files that a format, or a node that runs, leaves in a quorum's directory, and a member that keeps its metadata in one
of its own does not. All of them may be lost but one."""
_WAYS_BACK: Final = {
    META_PROPERTIES: "put it back from a copy of this directory",
    OWN_PROPERTIES: "nothing else says who votes, and what kind of log it is: put it back from a copy, or from another "
    f"voter's directory of this cluster, where it is the same; if there is none, from an empty directory that is "
    f"formatted with the line that this one was formatted with, and the cluster id in {META_PROPERTIES}",
}
"""What to do about one that is lost. Never to format anew: votes and records are there still."""
_IF_KAFKAS: Final = (
    f"; if Apache Kafka's format made this directory, put back the {META_PROPERTIES} that it wrote, which begins with "
    "a '#' line"
)
"""Behind the way back of our properties, which a directory of Kafka's does without: a template may have written over
what tells it from one of ours."""


class LogKind(StrEnum):
    """What the records are; a log never holds both."""

    USER = "user"
    METADATA = "metadata"


class Identity(NamedTuple):
    """What a directory was formatted as."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    log_kind: LogKind
    topic_name: str
    """The name of the topic that clients see in a user log."""
    voters: VoterSet
    """The voters given when formatting: at kraft.version 0 the static voters. Empty if none were given, or if Kafka
    formatted the directory."""
    kraft_version: int
    """The version given when formatting; a later KRAFT_VERSION record in the log overrides it."""
    listener_name: str
    format_version: int
    """0 if Kafka formatted the directory."""
    is_controller: bool = False
    """It was formatted for one of a cluster's controllers: the node is one, unless it is told otherwise."""
    is_port_drawn: bool = False
    """Nobody chose the port of its only voter: it was free then, and any other does where it is taken."""

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def owner(self) -> StateOwner:
        return StateOwner(self.cluster_id, self.node_id, self.directory_id)


def is_formatted(disk: Disk) -> bool:
    """`meta.properties` is written last: a directory without it was never wholly formatted."""
    return disk.exists(META_PROPERTIES)


def read_identity(disk: Disk, *, cluster_id: str | None = None, node_id: NodeId | None = None) -> Identity:
    """Read whose directory it is, and refuse it if another cluster or node was expected.

    Raises:
        DirectoryError: not formatted, incomplete, unreadable, of a newer format, or foreign (both sides are named).
    """
    if not is_formatted(disk):
        if disk.exists(QUORUM_STATE):
            raise _unusable(disk, META_PROPERTIES, "is missing")
        raise DirectoryError("the directory is not formatted", "format it first: `fastquorum format`", disk.root)
    identity = _parse(disk, _read(disk, META_PROPERTIES), _read_own(disk))
    for what, expected, found in (("cluster", cluster_id, identity.cluster_id), ("node", node_id, identity.node_id)):
        if expected is not None and expected != found:
            raise DirectoryError(
                f"it belongs to {what} {found}, not to {what} {expected}",
                "give each replica its own directory",
                disk.root,
            )
    return identity


def is_of_quorum(exists: Callable[[str], bool]) -> bool:
    """Is it the directory of a quorum's node, whoever formatted it, and no member's? `exists`: of the directory's
    files."""
    return any(exists(name) for name in _LEFT_BY_VOTERS)


def is_of_another_cluster(meta: dict[str, str], own: dict[str, str]) -> bool:
    """Do our properties name another cluster than meta.properties? Older versions wrote none into ours."""
    return CLUSTER_ID in meta and own.get(CLUSTER_ID, meta[CLUSTER_ID]) != meta[CLUSTER_ID]


def meta_by_kafka(data: bytes) -> bool:
    """Did Apache Kafka write this meta.properties? Java's `Properties.store` begins with a comment, the time; our
    `format` writes none."""
    return data.startswith(b"#")


def _read_own(disk: Disk) -> dict[str, str]:
    """Return our own properties; nothing where Kafka formatted the directory. DirectoryError if they are lost."""
    if disk.exists(OWN_PROPERTIES):
        with _named(disk, OWN_PROPERTIES):
            data = disk.read_file(OWN_PROPERTIES)
            own = parse_properties(data)
            is_complete = _is_complete(own, has_end=data.endswith(b"\n"))
        if not own:
            raise _unusable(disk, OWN_PROPERTIES, "is empty")
        # Part of a list of voters is a list of voters, whose majority may be this node alone.
        if not is_complete:
            raise _unusable(disk, OWN_PROPERTIES, "is cut short")
        return own
    if is_of_quorum(disk.exists) and not meta_by_kafka(disk.read_file(META_PROPERTIES)):
        raise _unusable(disk, OWN_PROPERTIES, "is missing", _IF_KAFKAS)
    return {}


def _is_complete(own: dict[str, str], *, has_end: bool) -> bool:
    """Are all keys there? Somebody may have added some; older versions wrote no count. `has_end`: of the last line."""
    return has_end and len(own) >= int(own.get(KEY_COUNT, "0")) and all(key in own for key in _KEYS)


def _parse(disk: Disk, meta: dict[str, str], own: dict[str, str]) -> Identity:
    with _named(disk, META_PROPERTIES):
        if meta["version"] != str(META_VERSION):
            raise ValueError(f"it has version {meta['version']}, only {META_VERSION} is known")
        cluster_id, node_id, directory_id = meta[CLUSTER_ID], meta["node.id"], meta["directory.id"]
        key = ReplicaKey(_stored_id(node_id), Uuid.parse(directory_id))
    if is_of_another_cluster(meta, own):
        raise DirectoryError(
            f"{OWN_PROPERTIES} is of cluster {own[CLUSTER_ID]}, {META_PROPERTIES} of cluster {cluster_id}",
            "one of them is another directory's: put back the one that belongs to this log, from a copy of this "
            f"directory, or, for {OWN_PROPERTIES}, from another voter's of its cluster, where it is the same",
            disk.root,
        )
    with _named(disk, OWN_PROPERTIES):
        format_version = int(own["format.version"]) if own else 0
        if format_version > FORMAT_VERSION:
            raise DirectoryError(
                f"it has on-disk format version {format_version}, this fastquorum knows {FORMAT_VERSION}",
                "use the version that wrote it",
                disk.root,
            )
        listener_name = own.get("listener.name", LISTENER_NAME)
        return Identity(
            cluster_id=cluster_id,
            node_id=key.id,
            directory_id=key.directory_id,
            log_kind=LogKind(own.get("log.kind", LogKind.METADATA)),
            topic_name=own.get("topic.name", TOPIC_NAME),
            voters=_stored_voters(own.get("voters", ""), listener_name),
            kraft_version=int(own.get("kraft.version", "1" if disk.exists(ZERO_CHECKPOINT) else "0")),
            listener_name=listener_name,
            format_version=format_version,
            is_controller=own.get("controller") == "true",
            is_port_drawn=own.get("port.drawn") == "true",
        )


def _stored_id(text: str) -> NodeId:
    node_id = int(text)
    if not 0 <= node_id <= NODE_ID_MAX:
        raise ValueError(f"node.id {node_id} is outside 0..{NODE_ID_MAX}")
    return node_id


def _read(disk: Disk, name: str) -> dict[str, str]:
    with _named(disk, name):
        return parse_properties(disk.read_file(name))


@contextmanager
def _named(disk: Disk, name: str) -> Iterator[None]:
    """Name the file, as a DirectoryError, whose values cannot be used inside."""
    try:
        yield
    except DirectoryError:
        raise
    except (KeyError, ValueError) as error:
        what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise _unusable(disk, name, f"cannot be used: {what}") from error


def _unusable(disk: Disk, name: str, how: str, more: str = "") -> DirectoryError:
    return DirectoryError(f"{name} {how}", _WAYS_BACK[name] + more, disk.root)


def format_voters(voters: VoterSet) -> str:
    """`ID@HOST:PORT[:DIRID],...`, the first endpoint of each."""
    parts = []
    for voter in voters:
        directory = f":{voter.key.directory_id}" if any(voter.key.directory_id) else ""
        parts.append(f"{voter.key.id}@{voter.endpoints[0].address}{directory}")
    return ",".join(parts)


def parse_voters(text: str, listener_name: str = LISTENER_NAME) -> VoterSet:
    """Read `ID@HOST:PORT[:DIRID],...`; an IPv6 host stands in brackets. ValueError naming the part."""
    return VoterSet([_parse_voter(part, listener_name, _address) for part in _parts(text)])


def _stored_voters(text: str, listener_name: str) -> VoterSet:
    """Read back what `format_voters` made. A host that no name server knows, or that an older version let in, must not
    keep a directory from being opened."""
    return VoterSet([_parse_voter(part, listener_name, _stored_address) for part in _parts(text)])


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_voter(text: str, listener_name: str, read_address: Callable[[str], tuple[str, int]]) -> Voter:
    node, at, _ = text.partition("@")
    if not at or not node:
        raise ValueError(f"{text!r} is not a voter: expected {_VOTER}; the id is missing")
    if not is_whole(node):
        raise ValueError(f"{text!r} is not a voter: expected {_VOTER}; id {node!r} is not a number")
    if int(node) > NODE_ID_MAX:
        raise ValueError(f"{text!r} is not a voter: its id is above {NODE_ID_MAX}")
    host, port = read_address(text)
    directory = _split(text)[2]
    if directory and Uuid.parse(directory) == ZERO_UUID:
        raise ValueError(f"{text!r} is not a voter: the directory id is all zeros, which stands for an unknown one")
    key = ReplicaKey(int(node), Uuid.parse(directory)) if directory else ReplicaKey(int(node))
    return Voter(key, (Endpoint(listener_name, host, port),))


def _address(text: str) -> tuple[str, int]:
    host, port, _ = _split(text)
    if "[" not in text and text.count(":") > 2:
        raise ValueError(f"{text!r} is not a voter: an IPv6 address stands in brackets, as in 1@[::1]:9093")
    try:
        return parse_address(f"{host}:{port}" if port else host, may_be_everywhere=False)
    except AddressError as error:
        raise ValueError(f"{text!r} is not a voter: expected {_VOTER}; {error}") from error


def _stored_address(text: str) -> tuple[str, int]:
    host, port, _ = _split(text)
    if not is_whole(port):
        raise ValueError(f"{text!r} is not a voter: expected {_VOTER}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _split(text: str) -> tuple[str, str, str]:
    """Host, an IPv6 one in its brackets, port and directory id, as text."""
    address = text.partition("@")[2]
    bracket = address.rfind("]") + 1
    host, _, rest = address[bracket:].partition(":")
    port, _, directory = rest.partition(":")
    return address[:bracket] + host, port, directory
