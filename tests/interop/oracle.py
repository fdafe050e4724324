"""Kafka's generated message classes as a process that judges our messages and makes its own: see Oracle.java."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum.wire import Message, encode, to_json
from tests.wire.golden import blank_records
from tests.wire.strategies import VERSIONED

from .java_driver import JavaDriver
from .kafka import KAFKA, OLD_CLIENTS, Kafka, Release

SOURCES: Final = ("Oracle.java", "RandomValues.java")
_PACKAGES: Final = {"metadata": "org.apache.kafka.common.metadata"}


def release_of(cls: type[Message]) -> Release | None:
    """The Kafka that has this message; None if none ever had."""
    match cls.__module__.rpartition(".")[2]:
        case "inter_broker":
            return OLD_CLIENTS
        case "controller_heartbeat":
            return None
        case _:
            return KAFKA


def versioned_in(release: Release) -> list[tuple[type[Message], int]]:
    """Every message that the release judges, in every version declared here."""
    return [(cls, version) for cls, version in VERSIONED if release_of(cls) is release]


class Made(NamedTuple):
    """A message of Kafka's making."""

    raw: bytes
    """The bytes as laid out: tagged fields may be present although they are at their default."""
    canonical: bytes
    """The bytes that Kafka's class writes."""
    json: dict[str, Any]
    """Kafka's JSON, with records as ""."""


class Oracle(JavaDriver):
    """One release's classes, running. A context manager."""

    def __init__(self, kafka: Kafka, scratch: Path) -> None:
        super().__init__(kafka, scratch, SOURCES)

    def judge(self, cls: type[Message], version: int, messages: Sequence[tuple[Message, bool]]) -> list[str | None]:
        """None or what differs, for each message; beside it whether JSON carries all of it."""
        given = [
            {"hex": encode(each, version).hex(), "json": blank_records(to_json(each, version)), "has_json": has_json}
            for each, has_json in messages
        ]
        return self.ask({"class": _java_class(cls), "version": version, "judge": given})

    def read(self, cls: type[Message], version: int, raw: bytes) -> str | None:
        """None, or what Kafka's class has against these bytes."""
        given = [{"hex": raw.hex(), "json": None, "has_json": False}]
        (verdict,) = self.ask({"class": _java_class(cls), "version": version, "judge": given})
        assert verdict is None or isinstance(verdict, str)
        return verdict

    def make(self, cls: type[Message], version: int, count: int, seed: int) -> list[Made]:
        """Random messages."""
        made = self.ask({"class": _java_class(cls), "version": version, "make": count, "seed": seed})
        return [Made(bytes.fromhex(each["raw"]), bytes.fromhex(each["hex"]), each["json"]) for each in made]


def _java_class(cls: type[Message]) -> str:
    name, kind = cls.__wire__.name, cls.__wire__.kind
    if kind not in ("metadata", "data") and not name.endswith("Data"):
        name += "Data"
    return f"{_PACKAGES.get(kind, 'org.apache.kafka.common.message')}.{name}"
