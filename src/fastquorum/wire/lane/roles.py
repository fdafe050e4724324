"""What the steady state makes of each field of Fetch: `REQUEST` and `RESPONSE`, for the layout of the native lane.

Only the steady state has a layout: one topic, one partition, no session, no error, no tag that the declarations lack.
Types, order, versions and tags are declared in `wire.messages.fetch`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from fastquorum.types import TOPIC_NAME
from fastquorum.wire.codec.source import wire_fields
from fastquorum.wire.message import Struct
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.types import Field

ONE_BYTE: Final = 0x7F
"""The largest varint of one byte."""


class Kind(Enum):
    """What the steady state makes of a field."""

    CONST = "const"
    """Always this value: a parser demands it, an encoder writes it."""
    ANY = "any"
    """A parser passes over it; an encoder writes the value, or its argument of that name."""
    FIXED = "fixed"
    """The same in every frame of a connection: a parser returns it, an encoder is made with it."""
    VARY = "vary"
    """Another one in every frame: a parser returns it, an encoder takes it at each call."""
    STRUCT = "struct"
    """A struct whose fields have roles of their own."""
    ONE = "one"
    """An array of exactly one struct."""
    OPTIONAL_ONE = "optional_one"
    """A tagged array that a parser passes over; an encoder writes one struct unless the argument `name` is None."""
    NONE = "none"
    """An empty array, or a tagged field that is absent."""


@dataclass(frozen=True, slots=True)
class Role:
    """A field's part in the steady state."""

    kind: Kind
    value: Any = None
    name: str = ""


Roles = dict[str, Role]
Part = tuple[type[Struct], int]
"""A class and the version of it (a header's differs from its body's)."""


def names(roles: Roles, *kinds: Kind) -> list[str]:
    """The names that roles of these kinds give, each once, in the order of the table."""
    return list(dict.fromkeys(role.name for role in roles.values() if role.name and role.kind in kinds))


Parts = dict[int, tuple[Part, ...]]
"""By version: the header's declaration and the body's."""

VERSIONS: Final = range(12, 19)
_CONST, _ANY, _FIXED, _VARY = Kind.CONST, Kind.ANY, Kind.FIXED, Kind.VARY

REQUEST: Final[Roles] = {
    "request_api_key": Role(_CONST, FetchRequest.__wire__.api_key),
    "request_api_version": Role(_ANY, name="api_version"),
    "correlation_id": Role(_VARY, name="correlation_id"),
    "client_id": Role(_ANY, name="client_id"),
    "cluster_id": Role(_FIXED, name="cluster_id"),
    "replica_id": Role(_FIXED, name="replica_id"),
    "replica_state": Role(Kind.STRUCT),
    "replica_state.replica_id": Role(_FIXED, name="replica_id"),
    "replica_state.replica_epoch": Role(_ANY, -1),
    "max_wait_ms": Role(_FIXED, name="max_wait_ms"),
    "min_bytes": Role(_ANY, 0),
    "max_bytes": Role(_FIXED, name="max_bytes"),
    "isolation_level": Role(_ANY, 0),
    "session_id": Role(_CONST, 0),
    "session_epoch": Role(_CONST, -1),
    "topics": Role(Kind.ONE),
    "topics.topic": Role(_CONST, TOPIC_NAME),
    "topics.topic_id": Role(_FIXED, name="topic_id"),
    "topics.partitions": Role(Kind.ONE),
    "topics.partitions.partition": Role(_CONST, 0),
    "topics.partitions.current_leader_epoch": Role(_VARY, name="leader_epoch"),
    "topics.partitions.fetch_offset": Role(_VARY, name="fetch_offset"),
    "topics.partitions.last_fetched_epoch": Role(_VARY, name="last_fetched_epoch"),
    "topics.partitions.log_start_offset": Role(_ANY, -1),
    "topics.partitions.partition_max_bytes": Role(_ANY, 0),
    "topics.partitions.replica_directory_id": Role(_FIXED, name="directory_id"),
    "topics.partitions.high_watermark": Role(_VARY, name="high_watermark"),
    "forgotten_topics_data": Role(Kind.NONE),
    "rack_id": Role(_CONST, ""),
}

RESPONSE: Final[Roles] = {
    "correlation_id": Role(_VARY, name="correlation_id"),
    "throttle_time_ms": Role(_CONST, 0),
    "error_code": Role(_CONST, 0),
    "session_id": Role(_CONST, 0),
    "responses": Role(Kind.ONE),
    "responses.topic": Role(_CONST, TOPIC_NAME),
    "responses.topic_id": Role(_FIXED, name="topic_id"),
    "responses.partitions": Role(Kind.ONE),
    "responses.partitions.partition_index": Role(_CONST, 0),
    "responses.partitions.error_code": Role(_CONST, 0),
    "responses.partitions.high_watermark": Role(_VARY, name="high_watermark"),
    "responses.partitions.last_stable_offset": Role(_ANY, -1),
    "responses.partitions.log_start_offset": Role(_VARY, name="log_start_offset"),
    "responses.partitions.diverging_epoch": Role(Kind.NONE),
    "responses.partitions.current_leader": Role(Kind.STRUCT),
    "responses.partitions.current_leader.leader_id": Role(_FIXED, name="leader_id"),
    "responses.partitions.current_leader.leader_epoch": Role(_FIXED, name="leader_epoch"),
    "responses.partitions.snapshot_id": Role(Kind.NONE),
    "responses.partitions.aborted_transactions": Role(Kind.NONE),
    "responses.partitions.preferred_read_replica": Role(_CONST, -1),
    "responses.partitions.records": Role(_VARY, name="records"),
    "node_endpoints": Role(Kind.OPTIONAL_ONE, name="host"),
    "node_endpoints.node_id": Role(_FIXED, name="leader_id"),
    "node_endpoints.host": Role(_FIXED, name="host"),
    "node_endpoints.port": Role(_FIXED, name="port"),
    "node_endpoints.rack": Role(_CONST, None),
}


def element_of(each: Field) -> type[Struct]:
    """The struct class that an array field holds."""
    assert each.type.element is not None
    assert each.type.element.struct is not None
    return each.type.element.struct


def tag_members(path: str, each: Field, roles: Roles, version: int) -> list[tuple[str, Any]]:
    """The names that a tagged field gives, with what they are where it is absent."""
    role = roles[path]
    if role.kind is Kind.OPTIONAL_ONE:
        return []
    if role.kind is not Kind.STRUCT:
        return [(role.name, bytes(each.default) if isinstance(each.default, bytes) else each.default)]
    assert each.type.struct is not None
    members = wire_fields(each.type.struct.__wire__.fields, version)[0]
    named = [(roles[f"{path}.{member.name}"], member.default) for member in members]
    return [(inner.name, default) for inner, default in named if inner.name and inner.kind is not Kind.ANY]
