"""kafka-python, which has its own codec and its own copy of the schemas, reads from our bytes what we wrote."""

import importlib
import pkgutil
import uuid
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fastquorum.types import ZERO_UUID, Uuid
from fastquorum.wire import Message, Struct, encode

from .strategies import VERSIONED, messages, without_unknown_tags


def _their_classes() -> dict[str, Any]:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas in a way that Python 3.11 deprecates
        for package in ("admin", "consumer", "metadata", "producer"):
            root = importlib.import_module(f"kafka.protocol.{package}")
            for info in pkgutil.iter_modules(root.__path__):
                module = importlib.import_module(f"kafka.protocol.{package}.{info.name}")
                found.update(
                    {name: cls for name, cls in vars(module).items() if name.endswith(("Request", "Response"))}
                )
    return found


THEIRS = _their_classes()
NAMES = {"Fetch", "Produce", "ListOffsets", "DescribeQuorum", "InitProducerId", "FindCoordinator", "CreateTopics"} | {
    "CreateAcls", "DeleteAcls", "DescribeAcls", "AlterClientQuotas", "AlterUserScramCredentials", "UpdateFeatures"
}  # fmt: skip
SHARED = [
    (cls, version)
    for cls, version in VERSIONED
    if cls.__name__.removesuffix("Request").removesuffix("Response") in NAMES
    and version <= THEIRS[cls.__name__].max_version
]


def agree(ours: Any, theirs: Any, version: int) -> bool:
    """Is what they decoded what we encoded? Fields that the version lacks are left out."""
    if isinstance(ours, Struct):
        if theirs is None:  # a tagged struct that was not sent: they say None, we (and Kafka) a struct of defaults
            return ours == type(ours)()
        return all(
            agree(getattr(ours, each.name), getattr(theirs, each.name), version)
            for each in type(ours).__wire__.fields
            if each.versions.has(version) and not each.name.endswith("authorized_operations")  # a set of names there
        )
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(agree(a, b, version) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, Uuid):
        return theirs == (uuid.UUID(bytes=bytes(ours)) if ours != ZERO_UUID else None)
    return bool(ours == theirs)


@pytest.mark.parametrize(("cls", "version"), SHARED, ids=[f"{cls.__name__}-v{version}" for cls, version in SHARED])
def test_they_read_what_we_write(cls: type[Message], version: int) -> None:
    @settings(
        max_examples=5, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(messages(cls, version, cls.__wire__.flexible.has(version)))
    def check(message: Any) -> None:
        message = without_unknown_tags(message)
        raw = encode(message, version)
        theirs = THEIRS[cls.__name__].decode(raw, version=version)
        assert agree(message, theirs, version)

    check()
