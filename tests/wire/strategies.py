"""Hypothesis strategies for any message in any version, built from the declarations alone."""

import functools
from typing import Any

from hypothesis import strategies as st

from fastquorum.types import Uuid
from fastquorum.wire import API, Message, RequestHeader, ResponseHeader, Struct
from fastquorum.wire.messages.cluster import DefaultPrincipalData
from fastquorum.wire.records.control import CONTROL_MESSAGES
from fastquorum.wire.records.metadata import METADATA_RECORDS
from fastquorum.wire.types import Field, Shape, WireType

MESSAGES: tuple[type[Message], ...] = (
    RequestHeader,
    ResponseHeader,
    *(cls for api in API.values() for cls in (api.request, api.response)),
    *METADATA_RECORDS.values(),
    *CONTROL_MESSAGES.values(),
    DefaultPrincipalData,
)
VERSIONED = [
    (cls, version) for cls in MESSAGES for version in range(cls.__wire__.versions.first, cls.__wire__.versions.last + 1)
]
"""Every declared message in every version."""

UNKNOWN_TAG_MIN = 100
"""Above every declared tag."""

_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False).map(lambda value: value + 0.0),  # -0.0 equals 0.0 but prints otherwise
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "string": st.one_of(st.text(max_size=8), st.just("x" * 200)),
    "bytes": st.one_of(st.binary(max_size=8), st.just(b"x" * 200)),
    "records": st.binary(max_size=8),
}


@functools.cache
def messages(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Values of `cls` that `version` can carry; nulls, empties and unknown tags among them."""
    fields = {each.name: _values(each, version, flexible) for each in cls.__wire__.fields if each.versions.has(version)}
    if flexible:
        tags = st.dictionaries(st.integers(UNKNOWN_TAG_MIN, 2**21), st.binary(max_size=4), max_size=2)
        fields["unknown_tags"] = tags.map(lambda entries: tuple(sorted(entries.items())))
    return st.builds(cls, **fields)


def _values(each: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    values = _typed(each.type, version, flexible)
    if each.default is not None and each.type.shape is not Shape.STRUCT:
        values = st.one_of(st.builds(each.fresh_default), values)
    return st.one_of(st.none(), values) if each.is_nullable(version) else values


def _typed(wire_type: WireType[Any], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if wire_type.struct is not None:
        return messages(wire_type.struct, version, flexible)
    if wire_type.element is not None:
        return st.lists(_typed(wire_type.element, version, flexible), max_size=2)
    return _SCALARS[wire_type.name]


def without_unknown_tags(value: Any) -> Any:
    """The same value as JSON can carry it."""
    if isinstance(value, list):
        return [without_unknown_tags(each) for each in value]
    if isinstance(value, Struct):
        return type(value)(
            **{each.name: without_unknown_tags(getattr(value, each.name)) for each in type(value).__wire__.fields}
        )
    return value
