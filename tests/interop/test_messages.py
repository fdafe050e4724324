"""Our declarations are Kafka's, field by field; its generated classes read and write what we write, byte for byte."""

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from fastquorum.types import ZERO_UUID
from fastquorum.wire import Message, Struct, Versions, encode, to_json
from fastquorum.wire.types import IMPLIED
from tests.wire.golden import blank_records
from tests.wire.strategies import MESSAGES, VERSIONED, messages, without_unknown_tags

from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

MESSAGES_AT_LEAST = 4_000
SCALARS = ("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes", "records")
ZEROS = {"bool": False, "string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID, "float64": 0.0}
PACKAGES = {"metadata": "org.apache.kafka.common.metadata"}


def test_every_declaration_is_kafkas(kafka: Kafka) -> None:
    schemas = _schemas(kafka)
    for cls in MESSAGES:
        schema, wire = schemas[cls.__wire__.name], cls.__wire__
        assert wire.versions == Versions.parse(schema["validVersions"])
        assert wire.flexible == Versions.parse(schema["flexibleVersions"])
        assert (wire.kind, wire.api_key) == (schema["type"], schema.get("apiKey", -1))
        common = {each["name"]: each["fields"] for each in schema.get("commonStructs", [])}
        _compare(cls, schema["fields"], common, cls.__name__)


def _schemas(kafka: Kafka) -> dict[str, dict[str, Any]]:
    """Kafka's message definitions, out of its jars."""
    found = {}
    for jar, folder in (("kafka-clients", "common/message/"), ("kafka-metadata", "common/metadata/")):
        with zipfile.ZipFile(kafka.jar(jar)) as archive:
            for name in archive.namelist():
                if name.startswith(folder) and name.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    schema = json.loads(text)
                    found[schema["name"]] = schema
    return found


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


def test_kafkas_classes_read_and_write_random_messages_byte_for_byte(kafka: Kafka, tmp_path: Path) -> None:
    source = Path(__file__).with_name("Oracle.java")
    classpath = f"{kafka.lib}/*"
    subprocess.run(["javac", "-cp", classpath, "-d", str(tmp_path), str(source)], check=True)
    lines = list(_random_messages())
    assert len(lines) >= MESSAGES_AT_LEAST
    said = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{tmp_path}:{classpath}", "Oracle"],
        input="\n".join(lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[-20:] == [str(len(lines))]


def _random_messages() -> Iterator[str]:
    """Some of every message in every version, unknown tags among them; the same in every run."""
    each_version = -(-MESSAGES_AT_LEAST // len(VERSIONED)) + 1
    for cls, version in VERSIONED:
        for message in _drawn(cls, version, each_version):
            text = to_json(message, version)
            printed = blank_records(text)
            yield json.dumps(
                {
                    "class": _java_class(cls),
                    "version": version,
                    "hex": encode(message, version).hex(),
                    "json": printed,
                    "has_json": message == without_unknown_tags(message) and printed == text,
                }
            )


def _drawn(cls: type[Message], version: int, count: int) -> list[Any]:
    found: list[Any] = []

    @seed(7)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(messages(cls, version, cls.__wire__.flexible.has(version)))
    def collect(message: Any) -> None:
        found.append(message)

    collect()
    return found


def _java_class(cls: type[Message]) -> str:
    name, kind = cls.__wire__.name, cls.__wire__.kind
    if kind not in ("metadata", "data") and not name.endswith("Data"):
        name += "Data"
    return f"{PACKAGES.get(kind, 'org.apache.kafka.common.message')}.{name}"
