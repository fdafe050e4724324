"""A member's own port: what it answers, to whom, and when."""

from typing import Any

import pytest

from fastquorum.broker.control_server import ControlRequestServer, HangUp, Reply
from fastquorum.kernels import load
from fastquorum.wire import (
    API,
    ApiKey,
    ErrorCode,
    Message,
    decode_response,
    encode_request,
    frames_of,
    request_header,
)
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from tests.broker.test_pushed import lead, stop

CONNECTION, OTHER = 5, 6


def server(epoch: int | None = 40) -> ControlRequestServer:
    made = ControlRequestServer(7, frames_of(load("pure")))
    if epoch is not None:
        assert made.registered(epoch) == []
    return made


def frame(message: Message, number: int = 1) -> bytes:
    version = message.__wire__.versions.first
    return encode_request(request_header(message, version, number, "controller"), message)


def handshake(version: int) -> bytes:
    """Number 9."""
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name="controller", client_software_version="1")
    return encode_request(request_header(request, version, 9, "controller"), request)


def read(reply: Reply | HangUp, message: Message) -> tuple[int, Any]:
    assert isinstance(reply, Reply)
    return decode_response(reply.frame, message.__wire__.api_key, message.__wire__.versions.first)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_it_says_what_it_can_be_asked(version: int) -> None:
    (reply,) = server().on_frame(CONNECTION, handshake(version))
    assert isinstance(reply, Reply)
    number, answer = decode_response(reply.frame, ApiKey.API_VERSIONS, version)
    assert isinstance(answer, ApiVersionsResponse)
    assert (number, answer.error_code) == (9, ErrorCode.NONE)
    versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert (versions[4], versions[5], versions[6], len(versions)) == ((2, 2), (1, 1), (5, 5), 4)


def test_a_newer_handshake_is_told_which_versions_there_are() -> None:
    newer = bytearray(handshake(4))
    newer[2:4] = (99).to_bytes(2, "big")
    (reply,) = server().on_frame(CONNECTION, bytes(newer))
    assert isinstance(reply, Reply)
    number, answer = decode_response(reply.frame, ApiKey.API_VERSIONS, 0)
    assert isinstance(answer, ApiVersionsResponse)
    assert (number, answer.error_code) == (9, ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize(
    "sent", [b"", b"what is this", frame(BrokerHeartbeatRequest()), frame(lead())[:-1], frame(lead()) + b"x"]
)
def test_whoever_says_anything_else_is_hung_up_on(sent: bytes) -> None:
    assert server().on_frame(CONNECTION, sent) == [HangUp(CONNECTION)]


@pytest.mark.parametrize("kind", [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest])
def test_what_is_meant_for_it_is_done_and_for_its_former_run_refused(kind: type[Message]) -> None:
    at = server()
    for epoch, code in ((39, ErrorCode.STALE_BROKER_EPOCH), (40, ErrorCode.NONE)):
        request = kind(controller_epoch=1, broker_epoch=epoch)  # type: ignore[call-arg]
        (reply,) = at.on_frame(CONNECTION, frame(request, epoch))
        number, answer = read(reply, request)
        assert isinstance(answer, API[kind.__wire__.api_key].response)
        assert (number, answer.error_code) == (epoch, code)
        assert at.pushed.controller_epoch == (1 if code is ErrorCode.NONE else -1)


def test_it_is_told_once_a_leader_and_isr_of_its_present_epoch_has_come() -> None:
    at = server(None)
    assert not at.is_initialized
    at.registered(40)
    at.on_frame(CONNECTION, frame(stop("t")))
    assert not at.is_initialized
    at.on_frame(CONNECTION, frame(lead(("t", 7, 1))))
    assert at.is_initialized
    at.registered(41)
    assert not at.is_initialized, "it has another one now"


def test_what_is_for_a_later_epoch_is_answered_when_the_member_has_it() -> None:
    at = server(None)
    request = lead(("t", 7, 1))
    assert at.on_frame(CONNECTION, frame(request, 3)) == []
    assert len(at.pushed.held) == 0
    (reply,) = at.registered(40)
    assert reply.connection == CONNECTION
    number, answer = read(reply, request)
    assert (number, answer.error_code, len(at.pushed.held)) == (3, ErrorCode.NONE, 1)


def test_what_waits_is_forgotten_with_its_connection_and_comes_again_on_the_next() -> None:
    at = server()
    later = lead(("t", 7, 1), epoch=41)
    assert at.on_frame(CONNECTION, frame(later, 1)) == []
    assert at.on_frame(OTHER, frame(stop("u"), 2)) == [], "nothing overtakes it"
    (behind,) = at.forget(CONNECTION)
    assert behind.connection == OTHER
    assert at.on_frame(OTHER, frame(later, 3)) == []
    assert [each.connection for each in at.registered(41)] == [OTHER], "it is done once"
