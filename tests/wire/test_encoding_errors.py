"""What cannot be encoded is refused with the field named, and so is what a version lacks."""

from typing import Any

import pytest

from fastquorum.errors import WireError
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode, Message, RequestHeader, decode, encode, encode_request, encode_response, to_json
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, VoteRequest, VoteResponse
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.control import encode_control_record
from fastquorum.wire.records.control_values import SnapshotFooterRecord
from fastquorum.wire.records.metadata import encode_metadata_record

Topic = VoteRequest.TopicData
Partition = VoteRequest.TopicData.PartitionData


def vote(**fields: Any) -> VoteRequest:
    return VoteRequest(topics=[Topic(partitions=[Partition(**fields)])])


def test_pre_vote_needs_version_2() -> None:
    encode(vote(pre_vote=True), 2)
    with pytest.raises(WireError) as caught:
        encode(vote(pre_vote=True), 1)
    error = caught.value
    assert (error.message, error.version, error.field) == ("VoteRequest", 1, "topics[0].partitions[0].pre_vote")
    assert "versions 2+" in str(error)


def test_an_ignorable_field_is_dropped() -> None:
    request = VoteRequest(voter_id=3, topics=[])
    assert decode(VoteRequest, 0, encode(request, 0)) == VoteRequest()
    assert decode(VoteRequest, 1, encode(request, 1)) == request


def test_a_struct_that_the_version_lacks() -> None:
    request = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1))
    with pytest.raises(WireError, match="replica_state"):
        encode(request, 14)
    with pytest.raises(WireError, match="replica_id"):
        encode(FetchRequest(replica_id=1), 15)
    encode(FetchRequest(replica_id=1), 14)


def test_unknown_tags_need_a_flexible_version() -> None:
    with pytest.raises(WireError, match="unknown_tags"):
        encode(BeginQuorumEpochRequest(unknown_tags=((9, b""),)), 0)
    request = BeginQuorumEpochRequest(unknown_tags=((9, b"x"), (300, b"")))
    assert decode(BeginQuorumEpochRequest, 1, encode(request, 1)) == request


@pytest.mark.parametrize("tags", [((0, b""),), ((5, b""), (5, b"")), ((6, b""), (5, b"")), ((5, "text"),)])
def test_unknown_tags_must_be_ascending_and_unknown(tags: Any) -> None:
    with pytest.raises(WireError, match="unknown_tags"):
        encode(VoteResponse(unknown_tags=tags), 2)


def test_unknown_tags_stand_between_known_ones() -> None:
    partition = FetchResponse.FetchableTopicResponse.PartitionData(
        current_leader=FetchResponse.FetchableTopicResponse.PartitionData.LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
        unknown_tags=((3, b"three"), (200, b"y" * 200)),
    )
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    assert decode(FetchResponse, 18, encode(response, 18)) == response


@pytest.mark.parametrize("count", [127, 128, 20_000])
def test_many_unknown_tags(count: int) -> None:
    """The count of a tag section may take more than one byte."""
    tags = tuple((tag, b"") for tag in range(1, count + 1))
    for cls in (VoteRequest, VoteResponse):
        assert decode(cls, 2, encode(cls(unknown_tags=tags), 2)) == cls(unknown_tags=tags)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"partition_index": 2**31}, "partition_index"),
        ({"replica_epoch": "7"}, "replica_epoch"),
        ({"last_offset": 1.5}, "last_offset"),
        ({"last_offset": None}, "last_offset"),
        ({"voter_directory_id": b"short"}, "voter_directory_id"),
        ({"voter_directory_id": None}, "voter_directory_id"),
    ],
)
def test_the_field_that_does_not_fit_is_named(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(WireError) as caught:
        encode(vote(**fields), 2)
    assert caught.value.field == f"topics[0].partitions[0].{field}"


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (VoteRequest(topics=None), "topics"),  # type: ignore[arg-type]
        (VoteRequest(topics=[None]), "topics[0]"),  # type: ignore[list-item]
        (VoteRequest(topics=[VoteRequest()]), "topics[0]"),  # type: ignore[list-item]
        (VoteRequest(topics=[Topic(topic_name=None)]), "topics[0].topic_name"),  # type: ignore[arg-type]
        (VoteRequest(topics=[Topic(topic_name=b"x")]), "topics[0].topic_name"),  # type: ignore[arg-type]
        (VoteRequest(cluster_id="x" * 40_000), "cluster_id"),
        (VoteRequest(cluster_id="\ud800"), "cluster_id"),
        (VoteRequest(cluster_id=7), "cluster_id"),  # type: ignore[arg-type]
    ],
)
def test_values_of_the_wrong_kind(message: Message, field: str) -> None:
    for attempt in (encode, to_json):
        with pytest.raises(WireError) as caught:
            attempt(message, 2)
        assert caught.value.field == field


def test_long_values_and_long_counts() -> None:
    """Lengths beyond one varint byte, in every place that takes the short way otherwise."""
    partitions = [Partition(replica_directory_id=Uuid(bytes([index]) * 16)) for index in range(200)]
    request = VoteRequest(cluster_id="c" * 32_767, topics=[Topic(topic_name="t" * 127, partitions=partitions)])
    assert decode(VoteRequest, 2, encode(request, 2)) == request
    for size in (0, 1, 125, 126, 127, 128, 129, 20_000):
        fetch = FetchRequest(cluster_id="c" * size, rack_id="r" * size)
        assert decode(FetchRequest, 18, encode(fetch, 18)) == fetch


def test_header_and_body_must_agree() -> None:
    header = RequestHeader(request_api_key=52, request_api_version=2, correlation_id=1, client_id="c")
    with pytest.raises(WireError, match="VoteRequest"):
        encode_request(header, FetchRequest())
    with pytest.raises(WireError, match="VoteResponse"):
        encode_response(1, 52, 2, FetchResponse())


def test_records_of_the_wrong_kind() -> None:
    with pytest.raises(WireError):
        encode_metadata_record(VoteRequest(), 0)
    with pytest.raises(WireError):
        encode_control_record(NoOpRecord())
    assert encode_metadata_record(NoOpRecord(), 0) == b"\x01\x14\x00\x00"
    assert encode_control_record(SnapshotFooterRecord()) == (b"\0\0\0\4", b"\0\0\0")


def test_error_codes_are_plain_ints_on_the_wire() -> None:
    response = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert decode(VoteResponse, 0, encode(response, 0)).error_code == 104
