"""Whatever a declaration allows goes through bytes and through JSON, and comes back equal."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastquorum.wire import Message, decode, encode, from_json, to_json
from fastquorum.wire.types import Shape

from .strategies import VERSIONED, messages, without_unknown_tags

EVERY = pytest.mark.parametrize(
    ("cls", "version"), VERSIONED, ids=[f"{cls.__name__}-v{version}" for cls, version in VERSIONED]
)
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@EVERY
def test_bytes_and_json(cls: type[Message], version: int) -> None:
    @FEW
    @given(messages(cls, version, cls.__wire__.flexible.has(version)))
    def round_trip(message: Message) -> None:
        raw = encode(message, version)
        assert decode(cls, version, raw) == message
        assert decode(cls, version, memoryview(raw)) == message
        text = json.dumps(to_json(message, version))
        assert from_json(cls, version, json.loads(text)) == without_unknown_tags(message)

    round_trip()


@EVERY
def test_defaults(cls: type[Message], version: int) -> None:
    """A message of defaults can be written in every version, and every field it lacks comes back at its default."""
    message = cls()
    for each in cls.__wire__.fields:
        if getattr(message, each.name) is None and each.versions.has(version) and not each.is_nullable(version):
            setattr(message, each.name, "")
    decoded = decode(cls, version, encode(message, version))
    assert decoded == message
    for each in cls.__wire__.fields:
        if each.type.shape in (Shape.ARRAY, Shape.STRUCT) and getattr(decoded, each.name) is not None:
            assert getattr(decoded, each.name) is not getattr(message, each.name)


@EVERY
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_repr_and_equality(cls: type[Message], version: int, data: st.DataObject) -> None:
    strategy = messages(cls, version, cls.__wire__.flexible.has(version))
    a, b = data.draw(strategy), data.draw(strategy)
    assert (a == b) == (repr(a) == repr(b))
    assert a == decode(cls, version, encode(a, version))
    assert (a == object()) is False
