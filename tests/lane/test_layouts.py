"""The lane's Fetch layouts against wire/, which declares Fetch: same bytes, same values, None for the unusual."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.kernels.pure.lane.compact import VERSIONS
from fastquorum.kernels.pure.lane.fetch_requests import REQUEST_ENCODERS, REQUEST_PARSERS
from fastquorum.kernels.pure.lane.fetch_responses import RESPONSE_ENCODERS, RESPONSE_PARSERS
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, ZERO_UUID, Uuid
from fastquorum.wire import decode_request, decode_response, encode_request, encode_response, request_header
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from tests.lane.builders import Partition, fetch_request, fetch_response, value_batch

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4.3.0" / "wire.jsonl.gz"
UNKNOWN_WATERMARK = 0x7FFF_FFFF_FFFF_FFFF

versions = st.sampled_from(VERSIONS)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
uuids = st.binary(min_size=16, max_size=16).map(Uuid)
names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60)


@settings(max_examples=300)
@given(
    version=versions,
    correlation_id=int32s,
    client_id=st.none() | st.text(max_size=40),
    cluster_id=st.none() | names,
    replica_id=st.integers(0, 2**31 - 1),
    numbers=st.tuples(int32s, int32s, int32s, int32s, int64s, int32s),
    any_of=st.tuples(int32s, st.integers(-128, 127), int64s, int32s, int64s),
    topic_id=uuids,
    directory_id=st.just(ZERO_UUID) | uuids,
    high_watermark=st.just(UNKNOWN_WATERMARK) | int64s,
)
def test_a_request_that_wire_encodes_parses_to_the_same_values(
    version: int,
    correlation_id: int,
    client_id: str | None,
    cluster_id: str | None,
    replica_id: int,
    numbers: tuple[int, ...],
    any_of: tuple[int, ...],
    topic_id: Uuid,
    directory_id: Uuid,
    high_watermark: int,
) -> None:
    max_wait_ms, max_bytes, _, epoch, offset, last_epoch = numbers
    min_bytes, isolation_level, log_start_offset, partition_max_bytes, replica_epoch = any_of
    partition = FetchRequest.FetchTopic.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
        replica_directory_id=directory_id,
        high_watermark=high_watermark,
    )
    message = FetchRequest(
        cluster_id=cluster_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[FetchRequest.FetchTopic(topic=TOPIC_NAME, topic_id=topic_id, partitions=[partition])],
    )
    if version < 15:
        message.replica_id = replica_id
    else:
        message.replica_state = FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)
    frame = encode_request(request_header(message, version, correlation_id, client_id), message)
    assert REQUEST_PARSERS[version](frame) == (
        correlation_id,
        None if cluster_id is None else cluster_id.encode(),
        replica_id,
        max_wait_ms,
        max_bytes,
        None if version < 13 else topic_id,
        epoch,
        offset,
        last_epoch,
        None if version < 17 else directory_id,
        UNKNOWN_WATERMARK if version < 18 else high_watermark,
    )


@settings(max_examples=300)
@given(
    version=versions,
    correlation_id=int32s,
    high_watermark=int64s,
    log_start_offset=int64s,
    leader=st.just((-1, -1)) | st.tuples(int32s, int32s),
    topic_id=uuids,
    records=st.binary(max_size=300),
    endpoint=st.none() | st.tuples(st.text(max_size=300), int32s, st.none() | names),
)
def test_a_response_that_wire_encodes_parses_to_the_same_values(
    version: int,
    correlation_id: int,
    high_watermark: int,
    log_start_offset: int,
    leader: tuple[int, int],
    topic_id: Uuid,
    records: bytes,
    endpoint: tuple[str, int, str | None] | None,
) -> None:
    def change(message: FetchResponse) -> None:
        (partition,) = message.responses[0].partitions
        partition.log_start_offset = log_start_offset
        if endpoint is not None and version >= 16:
            host, port, rack = endpoint
            message.node_endpoints = [FetchResponse.NodeEndpoint(node_id=leader[0], host=host, port=port, rack=rack)]

    frame = fetch_response(
        correlation_id,
        records,
        version=version,
        high_watermark=high_watermark,
        leader_id=leader[0],
        epoch=leader[1],
        topic_id=topic_id,
        change=change,
    )
    fields = RESPONSE_PARSERS[version](frame)
    assert fields is not None
    *values, start, end = fields
    assert values == [correlation_id, None if version < 13 else topic_id, high_watermark, log_start_offset, *leader]
    assert frame[start:end] == records


@settings(max_examples=300)
@given(
    version=versions,
    client_id=names,
    cluster_id=st.none() | st.text(max_size=200),
    fixed=st.tuples(st.integers(0, 2**31 - 1), int32s, int32s),
    topic_id=uuids,
    directory_id=st.just(ZERO_UUID) | uuids,
    varying=st.tuples(int32s, int32s, int64s, int32s, int64s.filter(lambda value: value != UNKNOWN_WATERMARK)),
)
def test_a_request_that_the_lane_encodes_is_what_wire_encodes(
    version: int,
    client_id: str,
    cluster_id: str | None,
    fixed: tuple[int, int, int],
    topic_id: Uuid,
    directory_id: Uuid,
    varying: tuple[int, int, int, int, int],
) -> None:
    replica_id, max_wait_ms, max_bytes = fixed
    encode = REQUEST_ENCODERS[version](
        version,
        client_id.encode(),
        None if cluster_id is None else cluster_id.encode(),
        replica_id,
        max_wait_ms,
        max_bytes,
        topic_id,
        directory_id,
    )
    frame = encode(*varying)
    header, message = decode_request(frame)
    assert encode_request(header, message) == frame
    assert (header.request_api_key, header.request_api_version, header.client_id) == (1, version, client_id)
    assert isinstance(message, FetchRequest)
    (topic,) = message.topics
    (partition,) = topic.partitions
    found_replica = message.replica_id if version < 15 else message.replica_state.replica_id
    assert (found_replica, message.max_wait_ms, message.max_bytes, message.cluster_id) == (*fixed, cluster_id)
    assert (message.min_bytes, message.session_id, message.session_epoch, message.rack_id) == (0, 0, -1, "")
    assert (topic.topic == TOPIC_NAME) if version == 12 else (topic.topic_id == topic_id)
    assert (header.correlation_id, partition.current_leader_epoch, partition.fetch_offset) == varying[:3]
    assert partition.last_fetched_epoch == varying[3]
    assert partition.replica_directory_id == (directory_id if version >= 17 else ZERO_UUID)
    assert partition.high_watermark == (varying[4] if version >= 18 else UNKNOWN_WATERMARK)


@settings(max_examples=300)
@given(
    version=versions,
    topic_id=uuids,
    leader=st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)),
    endpoint=st.none() | st.tuples(st.text(min_size=1, max_size=255), st.integers(0, 65535)),
    varying=st.tuples(int32s, int64s, int64s),
    records=st.binary(max_size=20_000),
)
def test_a_response_that_the_lane_encodes_is_what_wire_encodes(
    version: int,
    topic_id: Uuid,
    leader: tuple[int, int],
    endpoint: tuple[str, int] | None,
    varying: tuple[int, int, int],
    records: bytes,
) -> None:
    host, port = (None, -1) if endpoint is None else (endpoint[0].encode(), endpoint[1])
    frame = RESPONSE_ENCODERS[version](topic_id, *leader, host, port)(*varying, records)
    correlation_id, message = decode_response(frame, 1, version)
    assert encode_response(correlation_id, 1, version, message) == frame
    assert isinstance(message, FetchResponse)
    expected = FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=TOPIC_NAME if version == 12 else "",
                topic_id=topic_id if version > 12 else ZERO_UUID,
                partitions=[
                    Partition(
                        high_watermark=varying[1],
                        log_start_offset=varying[2],
                        current_leader=Partition.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
                        records=records,
                    )
                ],
            )
        ]
    )
    if endpoint is not None and version >= 16:
        expected.node_endpoints = [FetchResponse.NodeEndpoint(node_id=leader[0], host=endpoint[0], port=port)]
    assert (correlation_id, message) == (varying[0], expected)


# --- the unusual ------------------------------------------------------------------------------------------------------


def _request(change: Callable[[FetchRequest], Any], version: int = 18) -> bytes:
    def apply(message: FetchRequest) -> None:
        change(message)

    return fetch_request(2, 7, version=version, change=apply)


def _topic(message: FetchRequest) -> FetchRequest.FetchTopic:
    return message.topics[0]


UNUSUAL_REQUESTS: dict[str, Callable[[FetchRequest], Any]] = {
    "a session": lambda message: setattr(message, "session_id", 1),
    "a session to begin": lambda message: setattr(message, "session_epoch", 0),
    "no topic": lambda message: message.topics.clear(),
    "two topics": lambda message: message.topics.append(_topic(message)),
    "no partition": lambda message: _topic(message).partitions.clear(),
    "two partitions": lambda message: _topic(message).partitions.append(_topic(message).partitions[0]),
    "another partition": lambda message: setattr(_topic(message).partitions[0], "partition", 1),
    "a forgotten topic": lambda message: message.forgotten_topics_data.append(
        FetchRequest.ForgottenTopic(topic="t", topic_id=METADATA_TOPIC_ID, partitions=[0])
    ),
    "a rack": lambda message: setattr(message, "rack_id", "r"),
    "an unknown tag": lambda message: setattr(message, "unknown_tags", ((9, b"x"),)),
    "an unknown tag of the topic": lambda message: setattr(_topic(message), "unknown_tags", ((9, b"x"),)),
    "an unknown tag of the partition": lambda message: setattr(
        _topic(message).partitions[0], "unknown_tags", ((9, b"x"),)
    ),
    "a cluster id beyond one byte of length": lambda message: setattr(message, "cluster_id", "c" * 127),
}


@pytest.mark.parametrize("name", UNUSUAL_REQUESTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_unusual_request_is_not_parsed(name: str, version: int) -> None:
    assert REQUEST_PARSERS[version](_request(lambda message: None, version)) is not None
    assert REQUEST_PARSERS[version](_request(UNUSUAL_REQUESTS[name], version)) is None


def test_a_request_by_another_topic_name_is_not_parsed() -> None:
    frame = _request(lambda message: setattr(_topic(message), "topic", "__cluster_metadatb"), 12)
    assert REQUEST_PARSERS[12](frame) is None


def _partition(message: FetchResponse) -> Any:
    return message.responses[0].partitions[0]


UNUSUAL_RESPONSES: dict[str, Callable[[FetchResponse], Any]] = {
    "a throttle time": lambda message: setattr(message, "throttle_time_ms", 1),
    "a top-level error": lambda message: setattr(message, "error_code", 104),
    "a session": lambda message: setattr(message, "session_id", 1),
    "no topic": lambda message: message.responses.clear(),
    "two topics": lambda message: message.responses.append(message.responses[0]),
    "two partitions": lambda message: message.responses[0].partitions.append(_partition(message)),
    "another partition": lambda message: setattr(_partition(message), "partition_index", 1),
    "a partition's error": lambda message: setattr(_partition(message), "error_code", 6),
    "a diverging epoch": lambda message: setattr(
        _partition(message), "diverging_epoch", Partition.EpochEndOffset(epoch=1, end_offset=2)
    ),
    "a snapshot": lambda message: setattr(
        _partition(message), "snapshot_id", Partition.SnapshotId(end_offset=1, epoch=2)
    ),
    "null records": lambda message: setattr(_partition(message), "records", None),
    "an aborted transaction": lambda message: _partition(message).aborted_transactions.append(
        Partition.AbortedTransaction(producer_id=1, first_offset=2)
    ),
    "a preferred replica": lambda message: setattr(_partition(message), "preferred_read_replica", 3),
    "an unknown tag": lambda message: setattr(message, "unknown_tags", ((9, b"x"),)),
    "an unknown tag of the partition": lambda message: setattr(_partition(message), "unknown_tags", ((9, b"x"),)),
}


@pytest.mark.parametrize("name", UNUSUAL_RESPONSES)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_unusual_response_is_not_parsed(name: str, version: int) -> None:
    def frame(change: Callable[[FetchResponse], Any]) -> bytes:
        return fetch_response(1, value_batch(7, 5), version=version, change=change)

    assert RESPONSE_PARSERS[version](frame(lambda message: None)) is not None
    assert RESPONSE_PARSERS[version](frame(UNUSUAL_RESPONSES[name])) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_frame_cut_at_any_byte_or_with_bytes_left_over_is_not_parsed(version: int) -> None:
    request = fetch_request(2, 7, version=version)
    response = fetch_response(1, value_batch(7, 5), version=version)
    for parse, frame in ((REQUEST_PARSERS[version], request), (RESPONSE_PARSERS[version], response)):
        assert parse(frame) is not None
        assert all(parse(frame[:size]) is None for size in range(len(frame)))
        assert parse(frame + b"\0") is None


@settings(max_examples=300)
@given(version=versions, position=st.integers(0, 400), byte=st.integers(0, 255), data=st.binary(max_size=200))
def test_damaged_and_random_frames_parse_to_what_wire_reads_or_to_none(
    version: int, position: int, byte: int, data: bytes
) -> None:
    damaged = bytearray(fetch_response(1, value_batch(7, 5), version=version))
    damaged[position % len(damaged)] = byte
    fields = RESPONSE_PARSERS[version](bytes(damaged))
    if fields is not None:
        _, message = decode_response(bytes(damaged), 1, version)
        assert isinstance(message, FetchResponse)
        assert fields[2] == _partition(message).high_watermark
        assert damaged[fields[-2] : fields[-1]] == _partition(message).records
    assert RESPONSE_PARSERS[version](data) is None
    assert REQUEST_PARSERS[version](data) is None


# --- Kafka's own frames -----------------------------------------------------------------------------------------------


def _golden_fetches() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt") as lines:
        return [pair for pair in map(json.loads, lines) if pair["api"] == "Fetch"]


def _is_steady(pair: dict[str, Any]) -> bool:
    """A raft replica's Fetch, answered without an error."""
    if not pair["request_json"].get("clusterId") or pair["response_json"]["errorCode"]:
        return False
    ((partition,),) = (topic["partitions"] for topic in pair["response_json"]["responses"])
    return partition["errorCode"] == 0 and not partition.keys() & {"divergingEpoch", "snapshotId"}


def test_kafkas_own_steady_state_frames_parse_and_are_encoded_alike() -> None:
    steady = [pair for pair in _golden_fetches() if _is_steady(pair)]
    assert len(steady) >= 15
    for pair in steady:
        version = pair["api_version"]
        request, response = bytes.fromhex(pair["request"]), bytes.fromhex(pair["response"])
        request_fields, answered = REQUEST_PARSERS[version](request), RESPONSE_PARSERS[version](response)
        assert request_fields is not None
        assert answered is not None
        correlation_id, cluster_id, replica_id, wait, max_bytes, topic_id, epoch, offset, last_epoch, directory, hw = (
            request_fields
        )
        assert topic_id is not None
        assert directory is not None
        client = pair["request_header"]["clientId"].encode()
        encode = REQUEST_ENCODERS[version](
            version, client, cluster_id, replica_id, wait, max_bytes, topic_id, directory
        )
        assert encode(correlation_id, epoch, offset, last_epoch, hw) == request
        endpoint = pair["response_json"]["nodeEndpoints"][0]
        maker = RESPONSE_ENCODERS[version](
            topic_id, answered[4], answered[5], endpoint["host"].encode(), endpoint["port"]
        )
        assert maker(answered[0], answered[2], answered[3], response[answered[6] : answered[7]]) == response


def test_kafkas_other_frames_are_not_parsed() -> None:
    for pair in _golden_fetches():
        if not _is_steady(pair):
            parsed = (
                REQUEST_PARSERS[pair["api_version"]](bytes.fromhex(pair["request"])),
                RESPONSE_PARSERS[pair["api_version"]](bytes.fromhex(pair["response"])),
            )
            assert None in parsed
