"""Our declarations are Kafka's, field by field; its generated classes and our codec read and write each other's
messages, byte for byte."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import WireError
from fastquorum.types import ZERO_UUID
from fastquorum.wire import Struct, Versions, decode, encode
from fastquorum.wire.codec.source import foreign_tags
from fastquorum.wire.types import IMPLIED
from tests.wire.strategies import MESSAGES

from .kafka import KAFKA, OLD_CLIENTS, Kafka
from .messages_campaign import Exchange, exchange
from .oracle import Oracle, release_of, versioned_in

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

EACH_VERSION = 5
EACH_DROPPED = 100
SCALARS = ("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes", "records")
ZEROS = {"bool": False, "string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID, "float64": 0.0}


def test_every_declaration_is_kafkas(kafka: Kafka) -> None:
    schemas = _schemas(kafka, "kafka-clients", "common/message/") | _schemas(
        kafka, "kafka-metadata", "common/metadata/"
    )
    judged = [cls for cls in MESSAGES if release_of(cls) is KAFKA]
    assert len(judged) > 100
    for cls in judged:
        schema, wire = schemas[cls.__wire__.name], cls.__wire__
        assert wire.versions == Versions.parse(schema["validVersions"])
        assert wire.flexible == Versions.parse(schema["flexibleVersions"])
        assert (wire.kind, wire.api_key) == (schema["type"], schema.get("apiKey", -1))
        _compare(cls, schema["fields"], _common(schema), cls.__name__)


def test_what_kafka_has_dropped_is_declared_as_it_was_in_one_version(old_clients: Kafka) -> None:
    schemas = _schemas(old_clients, "kafka-clients", "common/message/")
    judged = [cls for cls in MESSAGES if release_of(cls) is OLD_CLIENTS]
    assert len(judged) == 8
    for cls in judged:
        schema, wire = schemas[cls.__wire__.name], cls.__wire__
        version = wire.versions.first
        assert wire.versions.last == version
        assert Versions.parse(schema["validVersions"]).has(version)
        assert wire.flexible == Versions.parse(schema["flexibleVersions"])
        assert (wire.kind, wire.api_key) == (schema["type"], schema["apiKey"])
        common = {name: _present(fields, version) for name, fields in _common(schema).items()}
        _compare(cls, _present(schema["fields"], version), common, cls.__name__)


def test_every_message_is_judged_by_one_kafka_save_those_that_none_ever_had() -> None:
    unjudged = {cls.__wire__.name.removesuffix("Request") for cls in MESSAGES if release_of(cls) is None}
    assert unjudged == {"MetadataHeartbeat", "MetadataHeartbeatResponse", "IsrChange", "IsrChangeResponse"}


def _schemas(kafka: Kafka, jar: str, folder: str) -> dict[str, dict[str, Any]]:
    """Kafka's message definitions, out of a jar."""
    found = {}
    with zipfile.ZipFile(kafka.jar(jar)) as archive:
        for name in archive.namelist():
            if name.startswith(folder) and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                found[schema["name"]] = schema
    return found


def _common(schema: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {each["name"]: each["fields"] for each in schema.get("commonStructs", [])}


def _present(fields: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    """The fields that one version has; what is said about them stays as it is."""
    return [
        each | {"fields": _present(each["fields"], version)} if "fields" in each else each
        for each in fields
        if Versions.parse(each["versions"]).has(version)
    ]


def _compare(cls: type[Struct], fields: list[dict[str, Any]], common: dict[str, Any], path: str) -> None:
    own = cls.__wire__.fields
    assert [each["name"][0].lower() + each["name"][1:] for each in fields] == [each.json_name for each in own], path
    for schema, ours in zip(fields, own, strict=True):
        where = f"{path}.{ours.name}"
        assert ours.type.name == schema["type"], where
        for key, versions in (
            ("versions", ours.versions),
            ("nullableVersions", ours.nullable),
            ("taggedVersions", ours.tagged),
        ):
            assert versions == Versions.parse(schema.get(key, "none")), f"{where} {key}"
        assert ours.tag == schema.get("tag", -1), where
        assert ours.ignorable == bool(schema.get("ignorable")), where
        assert ours.flexible == (schema.get("flexibleVersions") != "none"), where
        default = _default(schema)
        assert (ours.default, type(ours.default)) == (default, type(default)), where
        inner = ours.type.struct or (ours.type.element.struct if ours.type.element else None)
        if inner is not None:
            _compare(inner, schema.get("fields") or common[schema["type"].removeprefix("[]")], common, where)


def _default(schema: dict[str, Any]) -> Any:
    kind, default = schema["type"], schema.get("default")
    if "default" not in schema:
        return ZEROS.get(kind, 0) if kind in SCALARS else IMPLIED
    if default == "null":
        return None
    if kind == "bool":
        return str(default).lower() == "true"
    return default if kind == "string" else int(str(default), 0)


@pytest.mark.long
def test_random_messages_there_and_back_byte_for_byte(kafka: Kafka, tmp_path: Path) -> None:
    versioned, done = versioned_in(KAFKA), Exchange()
    with Oracle(kafka, tmp_path) as oracle:
        exchange(oracle, versioned, EACH_VERSION, 7, done)
    for direction in (done.ours, done.theirs):
        assert not direction.differ, "\n".join(direction.differences)
        assert direction.messages == EACH_VERSION * len(versioned) > 1_500
        counts = direction.census.counts
        assert min(counts[what] for what in ("null", "empty array", "large array", "tagged field", "unknown tag")) > 30


def test_a_tag_that_belongs_to_another_version_is_refused_by_both(kafka: Kafka, tmp_path: Path) -> None:
    tried = 0
    with Oracle(kafka, tmp_path) as oracle:
        for cls, version in versioned_in(KAFKA):
            foreign = foreign_tags(cls.__wire__.fields, version) if cls.__wire__.flexible.has(version) else ()
            for tag in foreign:
                raw = encode(cls(), version)
                assert raw.endswith(b"\0"), "no tags"
                raw = raw[:-1] + bytes((1, tag, 1, 0))
                verdict = oracle.read(cls, version, raw)
                assert f"Tag {tag} is not valid for version {version}" in str(verdict)
                with pytest.raises(WireError, match=f"tag {tag} belongs to another version"):
                    decode(cls, version, raw)
                tried += 1
    assert tried > 20


def test_random_messages_that_kafka_has_dropped_there_and_back(old_clients: Kafka, tmp_path: Path) -> None:
    versioned, done = versioned_in(OLD_CLIENTS), Exchange()
    with Oracle(old_clients, tmp_path) as oracle:
        exchange(oracle, versioned, EACH_DROPPED, 7, done)
    for direction in (done.ours, done.theirs):
        assert not direction.differ, "\n".join(direction.differences)
        assert direction.messages == EACH_DROPPED * 8
        assert not [each for cls, version in versioned for each in direction.census.missing(cls, version)]
