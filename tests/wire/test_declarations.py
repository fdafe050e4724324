"""The declarations themselves: no number twice, sensible versions, classes that behave like dataclasses."""

import copy
import pickle
from collections import Counter

import pytest

from fastquorum.types import METADATA_TOPIC_ID, ZERO_UUID
from fastquorum.wire import API, ApiKey, ErrorCode, Message, Struct, layout
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import VoteRequest
from fastquorum.wire.types import Versions

from .strategies import MESSAGES, VERSIONED


def structs(cls: type[Struct]) -> list[type[Struct]]:
    """The class and every struct inside it."""
    found = [cls]
    for each in cls.__wire__.fields:
        inner = each.type.struct or (each.type.element.struct if each.type.element else None)
        if inner is not None:
            found += structs(inner)
    return found


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_names_and_tags_are_unique(cls: type[Message]) -> None:
    for struct in structs(cls):
        fields = struct.__wire__.fields
        assert not [name for name, count in Counter(each.name for each in fields).items() if count > 1]
        assert not [name for name, count in Counter(each.json_name for each in fields).items() if count > 1]
        tags = sorted(each.tag for each in fields if each.tag >= 0)
        assert tags == list(range(len(tags)))


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_tagged_fields_live_in_flexible_versions(cls: type[Message]) -> None:
    for struct in structs(cls):
        for each in struct.__wire__.fields:
            if each.tag >= 0:
                assert all(cls.__wire__.flexible.has(v) for v in range(20) if each.tagged.has(v))


def test_every_api_that_a_quorum_needs_is_there() -> None:
    ranges = {api.name: str(api.versions) for api in API.values()}
    needed = {
        "Produce": "3-13",
        "Fetch": "4-18",
        "ListOffsets": "1-11",
        "Metadata": "0-13",
        "ApiVersions": "0-4",
        "Vote": "0-2",
        "BeginQuorumEpoch": "0-1",
        "EndQuorumEpoch": "0-1",
        "DescribeQuorum": "0-2",
        "FetchSnapshot": "0-1",
    }
    assert needed.items() <= ranges.items()
    assert API[ApiKey.VOTE].request is VoteRequest
    for api in API.values():
        assert api.key.name.replace("_", "") == api.name.upper()


def test_versions_notation() -> None:
    for text in ("none", "3", "1-4", "2+"):
        assert str(Versions.parse(text)) == text
    assert [version for version in range(9) if Versions.parse("1-4").has(version)] == [1, 2, 3, 4]


def test_messages_behave_like_dataclasses() -> None:
    first, second = FetchRequest(), FetchRequest()
    assert first == second
    assert first != VoteRequest()
    first.topics.append(FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID))
    first.replica_state.replica_id = 1
    assert (second.topics, second.replica_state.replica_id) == ([], -1)
    assert first != second
    assert copy.deepcopy(first) == first
    assert pickle.loads(pickle.dumps(first)) == first
    with pytest.raises(AttributeError):
        first.no_such_field = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        FetchRequest(no_such_field=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hash(first)
    assert repr(FetchResponse.NodeEndpoint(node_id=1, host="h", port=2)) == (
        "FetchResponse.NodeEndpoint(node_id=1, host='h', port=2, rack=None)"
    )


def test_a_few_codes_and_keys() -> None:
    assert (ErrorCode(-1).name, ErrorCode(125).name) == ("UNKNOWN_SERVER_ERROR", "INVALID_VOTER_KEY")
    assert (ApiKey(52).name, ApiKey(82).name) == ("VOTE", "UPDATE_RAFT_VOTER")


def test_the_layout_of_a_vote() -> None:
    entries = [(each.depth, each.path, each.type, each.framing) for each in layout(VoteRequest, 0)]
    assert entries == [
        (0, "cluster_id", "string", "uvarint"),
        (0, "topics", "[]TopicData", "uvarint"),
        (1, "topics[].topic_name", "string", "uvarint"),
        (1, "topics[].partitions", "[]PartitionData", "uvarint"),
        (2, "topics[].partitions[].partition_index", "int32", "fixed"),
        (2, "topics[].partitions[].replica_epoch", "int32", "fixed"),
        (2, "topics[].partitions[].replica_id", "int32", "fixed"),
        (2, "topics[].partitions[].last_offset_epoch", "int32", "fixed"),
        (2, "topics[].partitions[].last_offset", "int64", "fixed"),
        (2, "topics[].partitions[].(tags)", "tags", "tags"),
        (1, "topics[].(tags)", "tags", "tags"),
        (0, "(tags)", "tags", "tags"),
    ]


def test_the_layout_of_a_fetch_has_its_tags_in_order() -> None:
    entries = {each.path: each for each in layout(FetchRequest, 18)}
    directory = entries["topics[].partitions[].replica_directory_id"]
    assert (directory.tag, directory.size, directory.default, directory.depth) == (0, 16, ZERO_UUID, 3)
    assert entries["replica_state"].framing == "inline"
    paths = list(entries)
    assert paths.index("(tags)") < paths.index("cluster_id") < paths.index("replica_state")


@pytest.mark.parametrize(("cls", "version"), VERSIONED, ids=lambda value: getattr(value, "__name__", f"v{value}"))
def test_every_layout_lists_every_field_once(cls: type[Message], version: int) -> None:
    entries = layout(cls, version)
    assert len({each.path for each in entries}) == len(entries)
    top = [each.path for each in entries if "." not in each.path and "(" not in each.path]
    assert sorted(top) == sorted(each.name for each in cls.__wire__.fields if each.versions.has(version))
