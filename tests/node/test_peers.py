"""Outgoing connections: handshake and its fallbacks, versions, one request at a time, links that are stuck, backoff."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels import load
from fastquorum.kernels.lane import NO_CONNECTION
from fastquorum.node.clients.server import api_versions
from fastquorum.node.lane.peer_events import FetchFrame, FetchLink, PeerAnswer, PeerEvent, UnansweredRequest
from fastquorum.node.network.links import Purpose
from fastquorum.node.network.peers import FETCH_VERSION_MIN, RECONNECT_BACKOFF_US, RECONNECT_BACKOFF_US_MAX, Peers
from fastquorum.types import Endpoint
from fastquorum.wire import ApiKey, ErrorCode, Message, decode_request, encode_response, frames_of
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.inter_broker import UpdateMetadataRequest
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse
from tests.node.rig import FakeTransport, Rig, endpoint

AT_US = 5_000_000


class Outside:
    """Peers over a fake transport, and the other end of every connection."""

    def __init__(self) -> None:
        self.transport = FakeTransport([])
        self.config = QuorumConfig()
        self.peers = Peers(
            self.transport, self.transport.send, frames_of(load("native")), self.config, "raft-client-1", "0.1.0"
        )
        self.now_us = AT_US
        self.spoiled: set[int] = set()
        """Links that the lane may not fetch on any more."""

    def request(self, correlation_id: int = 1, *, pre_vote: bool = False) -> list[PeerEvent]:
        return self.peers.request(2, endpoint(2), correlation_id, vote_request(pre_vote=pre_vote), self.now_us)

    def ask_who_leads(self, correlation_id: int) -> list[PeerEvent]:
        return self.peers.request(2, endpoint(2), correlation_id, FetchRequest(), self.now_us)

    def fetch_link(self) -> list[PeerEvent]:
        return self.peers.connect_fetch(2, endpoint(2), self.now_us, lambda connection: connection not in self.spoiled)

    def come_up(self) -> int:
        """The connection begun last is there."""
        connection = self.transport.begun.pop()
        self.peers.on_connected(connection, self.now_us)
        return connection

    def received(self, connection: int) -> list[tuple[Any, Message]]:
        return [decode_request(frame) for frame in self.transport.take(connection)]

    def shake(self, connection: int, **limits: tuple[int, int]) -> list[PeerEvent]:
        """Answer the handshake; `limits` are other versions than ours, by API name."""
        ((header, _),) = self.received(connection)
        answer = api_versions()
        for each in answer.api_keys:
            limit = limits.get(ApiKey(each.api_key).name.lower())
            each.min_version, each.max_version = limit or (each.min_version, each.max_version)
        if header.request_api_version < 3:
            answer.supported_features = []
        frame = encode_response(header.correlation_id, ApiKey.API_VERSIONS, header.request_api_version, answer)
        return self.peers.on_frame(connection, frame, self.now_us)

    def ready(self, **limits: tuple[int, int]) -> int:
        connection = self.come_up()
        self.shake(connection, **limits)
        return connection


def vote_request(*, pre_vote: bool = False) -> VoteRequest:
    topic = VoteRequest.TopicData
    partition = topic.PartitionData(replica_epoch=3, replica_id=1, pre_vote=pre_vote)
    return VoteRequest(topics=[topic(topic_name="__cluster_metadata", partitions=[partition])])


def unsupported(correlation_id: int) -> bytes:
    """What a server says to an ApiVersions version that it does not know: version 0's form."""
    body = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return encode_response(correlation_id, ApiKey.API_VERSIONS, 0, body)


# --- handshake --------------------------------------------------------------------------------------------------------


def test_a_connection_begins_with_the_handshake_and_then_says_what_waited() -> None:
    outside = Outside()
    assert outside.request(1) == []
    connection = outside.come_up()
    ((header, hello),) = [decode_request(frame) for frame in outside.transport.sent[connection]]
    assert isinstance(hello, ApiVersionsRequest)
    assert (header.request_api_version, header.client_id) == (4, "raft-client-1")
    assert outside.shake(connection) == []
    ((header, message),) = outside.received(connection)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (ApiKey.VOTE, 2, 1)
    assert message == vote_request()


def test_an_older_server_is_greeted_in_older_versions() -> None:
    outside = Outside()
    outside.request(1)
    connection = outside.come_up()
    for version in (4, 3):
        ((header, _),) = outside.received(connection)
        assert header.request_api_version == version
        assert outside.peers.on_frame(connection, unsupported(header.correlation_id), AT_US) == []
    assert outside.shake(connection) == []
    assert len(outside.received(connection)) == 1


def test_a_server_that_knows_no_version_of_the_handshake_is_given_up() -> None:
    outside = Outside()
    outside.request(1)
    connection = outside.come_up()
    events: list[PeerEvent] = []
    for _ in range(3):
        ((header, _),) = outside.received(connection)
        events = outside.peers.on_frame(connection, unsupported(header.correlation_id), AT_US)
    assert events == [UnansweredRequest(2, 1, unsupported=False)]
    assert connection not in outside.transport.open


@pytest.mark.parametrize("garbage", [b"", b"\x00\x00", b"\x3f\xff\xff\xff", b"\xff" * 30])
def test_garbage_instead_of_a_handshake_ends_the_connection(garbage: bytes) -> None:
    outside = Outside()
    outside.request(1)
    connection = outside.come_up()
    assert outside.peers.on_frame(connection, garbage, AT_US) == [UnansweredRequest(2, 1, unsupported=False)]
    assert not outside.peers.owns(connection)


# --- versions ---------------------------------------------------------------------------------------------------------


def test_a_request_goes_out_in_the_highest_version_both_speak() -> None:
    outside = Outside()
    outside.request(1)
    connection = outside.ready(vote=(0, 1))
    ((header, _),) = outside.received(connection)
    assert header.request_api_version == 1


def test_a_version_that_would_lose_the_pre_vote_is_not_used() -> None:
    outside = Outside()
    outside.request(1, pre_vote=True)
    connection = outside.come_up()
    assert outside.shake(connection, vote=(0, 1)) == [UnansweredRequest(2, 1, unsupported=True, api_key=ApiKey.VOTE)]
    assert outside.received(connection) == []


def test_an_api_without_a_common_version_is_unsupported() -> None:
    outside = Outside()
    outside.request(1)
    connection = outside.come_up()
    assert outside.shake(connection, vote=(7, 9)) == [UnansweredRequest(2, 1, unsupported=True, api_key=ApiKey.VOTE)]
    assert connection in outside.transport.open


@pytest.mark.parametrize("limits", [(0, FETCH_VERSION_MIN - 1), (30, 40), (-5, -1)])
def test_a_leader_whose_fetch_the_lane_does_not_speak_is_not_reachable(limits: tuple[int, int]) -> None:
    outside = Outside()
    outside.fetch_link()
    connection = outside.come_up()
    assert outside.shake(connection, fetch=limits) == [FetchLink(2, NO_CONNECTION, -1)]
    assert connection not in outside.transport.open


def test_how_often_the_leader_is_tried_is_not_decided_here() -> None:
    """A destination that is reported as failed must have been tried: raft/ takes a process that refuses for gone."""
    outside = Outside()
    for _ in range(3):
        assert outside.fetch_link() == []
        connection = outside.transport.begun.pop()
        lost = outside.peers.on_disconnected(connection, outside.now_us)
        assert lost == [FetchLink(2, NO_CONNECTION, -1)]


def test_a_follower_of_a_leader_without_a_common_fetch_goes_on_looking() -> None:
    old = api_versions()
    for each in old.api_keys:
        if each.api_key == ApiKey.FETCH:
            each.max_version = 11
    rig = Rig(1, 2, 3, versions=old)
    rig.follow()
    assert not rig.replica.stopped
    tried = len(rig.transport.sent)
    rig.pass_time(1_000 * MS)
    assert len(rig.transport.sent) > tried


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_told_with_its_request() -> None:
    outside = Outside()
    outside.request(7)
    connection = outside.ready()
    frame = encode_response(7, ApiKey.VOTE, 2, VoteResponse())
    assert outside.peers.on_frame(connection, frame, AT_US) == [PeerAnswer(2, 7, ApiKey.VOTE, VoteResponse())]


@pytest.mark.parametrize(
    "frame", [b"", b"\0\0\0\7", b"\0\0\0\7\xff", encode_response(8, ApiKey.VOTE, 2, VoteResponse())]
)
def test_an_answer_that_cannot_be_read_or_answers_nothing_ends_the_connection(frame: bytes) -> None:
    outside = Outside()
    outside.request(7)
    connection = outside.ready()
    assert outside.peers.on_frame(connection, frame, AT_US) == [UnansweredRequest(2, 7, unsupported=False)]
    assert connection not in outside.transport.open


def test_frames_of_the_lanes_link_are_passed_on_untouched() -> None:
    outside = Outside()
    outside.fetch_link()
    connection = outside.come_up()
    assert outside.shake(connection, fetch=(12, 16)) == [FetchLink(2, connection, 16)]
    assert outside.peers.on_frame(connection, b"anything", AT_US) == [FetchFrame(connection, b"anything")]


# --- links that are of no use -----------------------------------------------------------------------------------------


def test_a_request_over_a_link_that_owes_an_answer_for_too_long_takes_a_new_connection() -> None:
    outside = Outside()
    outside.request(1)
    stuck = outside.ready()
    outside.now_us += outside.config.request_timeout_us
    assert outside.request(2) == [
        UnansweredRequest(2, 1, unsupported=False),
        UnansweredRequest(2, 2, unsupported=False),
    ]
    assert stuck not in outside.transport.open
    outside.now_us += RECONNECT_BACKOFF_US
    assert outside.request(3) == []
    assert len(outside.received(outside.ready())) == 1


@pytest.mark.parametrize("is_up", [True, False])
def test_no_fetch_goes_out_behind_one_that_is_not_answered(*, is_up: bool) -> None:
    """raft/ gives up what it asked whenever its role changes."""
    outside = Outside()
    outside.request(1)
    connection = outside.ready() if is_up else -1
    assert outside.ask_who_leads(2) == []
    assert outside.ask_who_leads(3) == [UnansweredRequest(2, 3, unsupported=False)]
    assert outside.request(4) == [], "anything else may"
    connection = connection if is_up else outside.ready()
    fetches = [header for header, message in outside.received(connection) if isinstance(message, FetchRequest)]
    assert [header.correlation_id for header in fetches] == [2]
    answer = encode_response(2, ApiKey.FETCH, fetches[0].request_api_version, FetchResponse())
    outside.peers.on_frame(connection, answer, outside.now_us)
    assert outside.ask_who_leads(5) == []


def test_a_link_that_does_not_come_up_is_given_up() -> None:
    outside = Outside()
    outside.request(1)
    (stuck,) = outside.transport.begun
    outside.now_us += outside.config.request_timeout_us
    outside.request(2)
    assert stuck not in outside.transport.open


def test_an_attempt_at_the_lanes_link_that_hangs_makes_room_for_the_next_and_is_not_told_as_failed() -> None:
    """raft/ has given it up by then; a host of which nothing is heard has not refused anything."""
    outside = Outside()
    outside.fetch_link()
    hanging = outside.transport.begun.pop()
    outside.now_us += outside.config.request_timeout_us
    assert outside.fetch_link() == []
    assert hanging not in outside.transport.open
    assert len(outside.transport.begun) == 1


def test_a_silent_link_of_the_lane_is_replaced_when_it_is_asked_for_again_but_one_that_speaks_is_kept() -> None:
    outside = Outside()
    outside.fetch_link()
    connection = outside.ready()
    outside.now_us += outside.config.request_timeout_us // 2
    assert outside.fetch_link() == [FetchLink(2, connection, 18)]
    outside.now_us += outside.config.request_timeout_us
    assert outside.fetch_link() == []
    assert connection not in outside.transport.open
    assert outside.transport.begun, "raft/ has ordered another one"


def test_a_link_that_the_lane_may_not_fetch_on_any_more_is_replaced() -> None:
    outside = Outside()
    outside.fetch_link()
    connection = outside.ready()
    outside.spoiled.add(connection)
    assert outside.fetch_link() == []
    assert connection not in outside.transport.open
    again = outside.come_up()
    assert outside.shake(again) == [FetchLink(2, again, 18)]


def test_reconnecting_waits_longer_each_time_up_to_a_bound_and_starts_anew_after_success() -> None:
    outside = Outside()
    waits = []
    for _ in range(6):
        outside.request(1)
        outside.peers.on_disconnected(outside.transport.begun.pop(), outside.now_us)
        began = outside.now_us
        while not outside.transport.begun:
            outside.now_us += 10 * MS
            outside.request(1)
        waits.append(outside.now_us - began)
    assert waits[0] == RECONNECT_BACKOFF_US
    assert waits == sorted(waits)
    assert waits[-1] == RECONNECT_BACKOFF_US_MAX
    connection = outside.ready()
    outside.peers.on_disconnected(connection, outside.now_us)
    outside.now_us += RECONNECT_BACKOFF_US
    assert outside.request(1) == []


def test_following_somebody_else_closes_the_link_to_the_former_leader() -> None:
    outside = Outside()
    outside.fetch_link()
    connection = outside.ready()
    outside.peers.connect_fetch(3, endpoint(3), outside.now_us, lambda connection: True)
    assert connection not in outside.transport.open
    assert not outside.peers.owns(connection)


def test_a_node_that_moved_is_reached_at_its_new_address() -> None:
    outside = Outside()
    outside.request(1)
    old = outside.ready()
    moved = endpoint(2)._replace(port=7777)
    outside.peers.request(2, moved, 2, vote_request(), outside.now_us)
    assert old not in outside.transport.open
    assert moved in outside.transport.open.values()


def test_what_a_broker_is_told_goes_by_a_link_of_its_own_whatever_its_id() -> None:
    outside = Outside()
    assert outside.request(1) == []
    broker = Endpoint("PLAINTEXT", "b", 9092)
    request = UpdateMetadataRequest(broker_epoch=5)
    assert outside.peers.request(2, broker, 2, request, outside.now_us, Purpose.CONTROL) == []
    assert list(outside.transport.open.values()) == [endpoint(2), broker]
    outside.peers.hang_up(Purpose.CONTROL)
    assert list(outside.transport.open.values()) == [endpoint(2)]


def test_a_node_that_cannot_be_reached_is_named_with_the_reason_until_it_can() -> None:
    outside = Outside()
    outside.transport.errors[endpoint(2)] = "host2 cannot be resolved: Name or service not known"
    outside.request(1)
    assert outside.peers.unreachable() == []  # nothing is known yet
    outside.peers.on_disconnected(outside.transport.begun.pop(), outside.now_us)
    (found,) = outside.peers.unreachable()
    assert (found.node_id, found.endpoint) == (2, endpoint(2))
    assert "Name or service not known" in found.reason
    assert outside.peers.last_error(2) == found.reason
    outside.transport.errors.clear()
    outside.now_us += RECONNECT_BACKOFF_US
    outside.request(2)
    connection = outside.come_up()
    outside.shake(connection)
    assert outside.peers.unreachable() == []
    outside.peers.on_disconnected(connection, outside.now_us)
    assert outside.peers.unreachable() == []  # which says nothing of the next attempt
    assert outside.peers.last_error(2) == "the connection ended"


def test_whoever_accepts_and_does_not_shake_hands_is_looked_for_elsewhere() -> None:
    outside = Outside()
    outside.request(1)
    outside.peers.on_disconnected(outside.transport.begun.pop(), outside.now_us)
    assert outside.transport.doubted == []  # the connection was not made, at any address
    outside.now_us += RECONNECT_BACKOFF_US
    outside.request(2)
    outside.peers.on_disconnected(outside.come_up(), outside.now_us)
    assert outside.transport.doubted == [endpoint(2)]
    outside.now_us += RECONNECT_BACKOFF_US_MAX
    outside.request(3)
    connection = outside.come_up()
    outside.shake(connection)
    outside.peers.on_disconnected(connection, outside.now_us)
    assert outside.transport.doubted == [endpoint(2)]


def test_a_node_with_one_link_up_is_reachable() -> None:
    outside = Outside()
    outside.fetch_link()
    outside.shake(outside.come_up())
    outside.request(1)
    outside.peers.on_disconnected(outside.transport.begun.pop(), outside.now_us)
    assert outside.peers.last_error(2) == "the connection ended"
    assert outside.peers.unreachable() == []
