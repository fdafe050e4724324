"""`wire spec` says what is declared, of everything that is declared."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fastquorum.cli.wire.fields import default_text, fields_table, placed_fields
from fastquorum.wire import API, ApiKey, Message, layout
from fastquorum.wire.records.control import CONTROL_MESSAGES
from fastquorum.wire.records.metadata import METADATA_RECORDS
from tests.cli.conftest import Ran

Run = Callable[..., Ran]
MESSAGES: list[type[Message]] = [
    *(cls for api in API.values() for cls in (api.request, api.response)),
    *METADATA_RECORDS.values(),
    *CONTROL_MESSAGES.values(),
]


def test_every_declared_api_is_listed(fastquorum: Run) -> None:
    ran = fastquorum("wire", "spec")
    rows = [line.split() for line in ran.out.splitlines()]
    assert (ran.code, rows[0]) == (0, ["KEY", "NAME", "VERSIONS", "FLEXIBLE", "ADVERTISED"])
    assert [int(row[0]) for row in rows[1:]] == list(API)
    assert ["0", "Produce", "3-13", "9+", "0-13"] in rows
    report = [json.loads(line) for line in fastquorum("wire", "spec", "--format", "json").out.splitlines()]
    assert {each["apiKey"]: each["name"] for each in report} == {int(api.key): api.name for api in API.values()}


def test_every_record_is_listed(fastquorum: Run) -> None:
    report = [json.loads(line) for line in fastquorum("wire", "spec", "--records", "--format", "json").out.splitlines()]
    assert [each["key"] for each in report if each["type"] == "metadata"] == list(METADATA_RECORDS)
    assert [each["key"] for each in report if each["type"] == "control"] == list(CONTROL_MESSAGES)
    assert "metadata  3    PartitionRecord" in fastquorum("wire", "spec", "--records").out


@pytest.mark.parametrize("name", ["Vote", "vote", "VOTE", "52"])
def test_an_api_has_its_fields_of_both_messages(fastquorum: Run, name: str) -> None:
    ran = fastquorum("wire", "spec", name)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "VoteRequest, API key 52: versions 0-2, flexible 0+, advertised 0-2"
    assert "VoteResponse, API key 52: versions 0-2, flexible 0+, advertised 0-2" in lines
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith((" ", "c", "n"))}
    assert rows["clusterId"] == ["string", "0+", "0+", "null"]
    assert rows["preVote"] == ["bool", "2+"]
    assert rows["nodeEndpoints"] == ["[]NodeEndpoint", "1+", "0"]


def test_a_version_has_its_own_fields_in_the_order_of_the_bytes(fastquorum: Run) -> None:
    eleven = fastquorum("wire", "spec", "FetchRequest:11").out.splitlines()
    assert eleven[0] == "FetchRequest, API key 1: version 11, not flexible, behind RequestHeader v1"
    names = [line.split()[0] for line in eleven[3:]]
    assert names[:2] == ["replicaId", "maxWaitMs"]
    assert not {"clusterId", "replicaState", "topicId", "(tags)"} & set(names)
    eighteen = fastquorum("wire", "spec", "FetchRequest:18").out.splitlines()
    rows = [line.split() for line in eighteen[3:]]
    assert rows[0][0] == "maxWaitMs"
    assert ["highWatermark", "int64", "8", "bytes", "1", "9223372036854775807"] in rows
    assert ["clusterId", "string", "uvarint", "0", "yes", "null"] in rows


def test_a_record_and_a_header_have_fields_too(fastquorum: Run) -> None:
    record = fastquorum("wire", "spec", "PARTITION_RECORD").out
    assert record.startswith("PartitionRecord, record key 3: versions 0-2, flexible 0+\n")
    assert "eligibleLeaderReplicas  []int32  2+        1    2+" in record
    assert fastquorum("wire", "spec", "VotersRecord").out.startswith("VotersRecord: ")
    assert "never compact" in fastquorum("wire", "spec", "RequestHeader").out


def test_json_is_kafkas_own_notation(fastquorum: Run) -> None:
    report = json.loads(fastquorum("wire", "spec", "Fetch", "--format", "json").out)
    assert (report["apiKey"], report["validVersions"], report["flexibleVersions"]) == (1, "4-18", "12+")
    cluster_id = report["request"]["fields"][0]
    assert cluster_id == {
        "name": "clusterId",
        "type": "string",
        "versions": "12+",
        "tag": 0,
        "taggedVersions": "12+",
        "nullableVersions": "12+",
        "default": None,
        "ignorable": True,
    }
    one = json.loads(fastquorum("wire", "spec", "FetchRequest:11", "--format", "json").out)
    assert "clusterId" not in [each["name"] for each in one["fields"]]


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_no_field_of_any_version_is_left_out(cls: type[Message]) -> None:
    versions = cls.__wire__.versions
    _, everything = fields_table(cls, None)
    assert len(everything) == len(list(placed_fields(cls)))
    for version in range(versions.first, versions.last + 1):
        _, rows = fields_table(cls, version)
        assert [row[1] for row in rows] == [entry.type for entry in layout(cls, version)]
        assert [str(row[0]).strip() for row in rows if row[1] != "tags"] == [
            json_name(cls, entry.path) for entry in layout(cls, version) if entry.type != "tags"
        ]


def json_name(cls: type[Any], path: str) -> str:
    """Found by walking down, as no table does."""
    found = ""
    for part in path.replace("[]", "").split("."):
        each = next(each for each in cls.__wire__.fields if each.name == part)
        found = each.json_name
        cls = (each.type.element or each.type).struct
    return found


def test_every_default_can_be_said() -> None:
    for cls in MESSAGES:
        for placed in placed_fields(cls):
            text = default_text(placed.field)
            assert text == "" or placed.field.default is None or json.loads(text) != placed.field.type.zero


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("Fecth",), "did you mean Fetch?"),
        (("Fetch:99",), "FetchRequest has no version 99; it has 4-18"),
        (("Fetch:x",), "'x' is not a version"),
        (("Fetch:",), "'' is not a version"),
        (("31999",), "the API with key 31999 is not declared here"),
        (("",), "'' is neither an API nor a record"),
        (("Fetch", "--records"), "leave it out to see one"),
    ],
)
def test_what_is_not_there_is_wrong_usage(fastquorum: Run, words: tuple[str, ...], expected: str) -> None:
    ran = fastquorum("wire", "spec", *words)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert len(ran.err.splitlines()) == 1


def test_an_api_that_only_kafka_has_is_said_to_be_one(fastquorum: Run) -> None:
    missing = next(key for key in ApiKey if key not in API)
    for name in (missing.name, missing.name.replace("_", "").lower(), int(missing)):
        ran = fastquorum("wire", "spec", name)
        assert ran.code == 2
        assert f"{missing.name} ({int(missing)}) is not declared here" in ran.err
