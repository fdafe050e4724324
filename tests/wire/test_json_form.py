"""Reading JSON: everything that does not fit is refused with its path."""

from typing import Any

import pytest

from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.wire import from_json, to_json
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.quorum import VoteRequest


def partition(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "partitionIndex": 0,
        "replicaEpoch": 1,
        "replicaId": 2,
        "replicaDirectoryId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "lastOffsetEpoch": 0,
        "lastOffset": 0,
        "preVote": True,
    }
    value.update(changes)
    return value


def vote(**changes: Any) -> dict[str, Any]:
    return {"clusterId": None, "voterId": -1, "topics": [{"topicName": "t", "partitions": [partition(**changes)]}]}


def test_reads_what_it_prints() -> None:
    assert to_json(from_json(VoteRequest, 2, vote()), 2) == vote()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"replicaEpoch": 2**31}, "replicaEpoch"),
        ({"replicaEpoch": True}, "replicaEpoch"),
        ({"replicaEpoch": 1.0}, "replicaEpoch"),
        ({"replicaEpoch": None}, "replicaEpoch"),
        ({"preVote": 1}, "preVote"),
        ({"voterDirectoryId": "short"}, "voterDirectoryId"),
        ({"voterDirectoryId": 7}, "voterDirectoryId"),
        ({"preVotes": True}, "preVotes"),
    ],
)
def test_a_value_that_does_not_fit(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(WireError) as caught:
        from_json(VoteRequest, 2, vote(**changes))
    assert caught.value.field == f"topics[0].partitions[0].{key}"


def test_missing_keys_unless_tagged() -> None:
    value = vote()
    del value["topics"][0]["topicName"]
    with pytest.raises(WireError, match="missing"):
        from_json(VoteRequest, 2, value)
    response = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
    assert from_json(FetchResponse, 18, response) == FetchResponse()


@pytest.mark.parametrize("value", [None, [], "text", {"topics": {}}])
def test_values_of_another_kind(value: object) -> None:
    with pytest.raises(WireError):
        from_json(VoteRequest, 2, value)


def test_fields_of_other_versions_are_refused() -> None:
    with pytest.raises(WireError, match="preVote"):
        from_json(VoteRequest, 1, vote())
    with pytest.raises(UnsupportedVersion):
        from_json(VoteRequest, 3, vote())
    with pytest.raises(UnsupportedVersion):
        to_json(VoteRequest(), 3)


def test_records_are_base64() -> None:
    value = {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1,
        "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": "AP8="}, {"index": 1, "records": None}]}],
    }
    request = from_json(ProduceRequest, 9, value)
    assert [each.records for each in request.topic_data[0].partition_data] == [b"\x00\xff", None]
    assert to_json(request, 9) == value
    value["topicData"][0]["partitionData"][0]["records"] = "no base64"  # type: ignore[index]
    with pytest.raises(WireError, match="records"):
        from_json(ProduceRequest, 9, value)
