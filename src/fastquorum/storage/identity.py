"""Who a formatted data directory belongs to, and what kind of log it holds: `meta.properties` and
`fastquorum.properties`.

A directory that Apache Kafka formatted has only the former; the rest then takes the values that Kafka's has by its
nature. Source: KIP-631 (meta.properties), KIP-853 (directory ids).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from fastquorum.addresses import AddressError, parse_address
from fastquorum.errors import DirectoryError
from fastquorum.storage.names import META_PROPERTIES, OWN_PROPERTIES, ZERO_CHECKPOINT
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
"""Of everything in the directory that is not Kafka's. A newer one is refused."""
META_VERSION: Final = 1
_VOTER: Final = "ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID"


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
    """How the clients' door shows a user log."""
    voters: VoterSet
    """As given when formatting: at kraft.version 0 the static voters. Empty if Kafka formatted the directory, or none
    were given."""
    kraft_version: int
    """As given when formatting; a later KRAFT_VERSION record in the log overrides it."""
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
        DirectoryError: not formatted, unreadable, of a newer format, or foreign (both sides are named).
    """
    if not is_formatted(disk):
        raise DirectoryError("the directory is not formatted", "format it first: `fastquorum format`", disk.root)
    meta = _read(disk, META_PROPERTIES)
    own = _read(disk, OWN_PROPERTIES) if disk.exists(OWN_PROPERTIES) else {}
    try:
        identity = _parse(disk, meta, own)
    except (KeyError, ValueError) as error:
        if isinstance(error, DirectoryError):
            raise
        what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise DirectoryError(f"its properties cannot be used: {what}", "restore the file", disk.root) from error
    for what, asked, found in (("cluster", cluster_id, identity.cluster_id), ("node", node_id, identity.node_id)):
        if asked is not None and asked != found:
            raise DirectoryError(
                f"it belongs to {what} {found}, not to {what} {asked}", "give each replica its own directory", disk.root
            )
    return identity


def _parse(disk: Disk, meta: dict[str, str], own: dict[str, str]) -> Identity:
    if meta["version"] != str(META_VERSION):
        raise ValueError(f"meta.properties has version {meta['version']}, only {META_VERSION} is known")
    format_version = int(own["format.version"]) if own else 0
    if format_version > FORMAT_VERSION:
        raise DirectoryError(
            f"it has on-disk format version {format_version}, this fastquorum knows {FORMAT_VERSION}",
            "use the version that wrote it",
            disk.root,
        )
    listener_name = own.get("listener.name", LISTENER_NAME)
    return Identity(
        cluster_id=meta["cluster.id"],
        node_id=_stored_id(meta["node.id"]),
        directory_id=Uuid.parse(meta["directory.id"]),
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
    try:
        return parse_properties(disk.read_file(name))
    except ValueError as error:
        raise DirectoryError(f"{name} is no properties file: {error}", "restore the file", disk.root) from error


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
