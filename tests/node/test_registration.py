"""A controller registers with the active one until what is committed says so. KIP-919; Kafka
`ControllerRegistrationManagerTest`."""

from typing import Any

import pytest

from fastquorum.config import MS, SECOND, QuorumConfig
from fastquorum.controller.image.features import SUPPORTED
from fastquorum.controller.image.registrations import Controller, Feature, Listener
from fastquorum.node.clients.server import SERVED, api_versions
from fastquorum.node.metadata.registration import AGAIN_US, AGAIN_US_MAX, JITTER
from fastquorum.node.metadata.requests import CONTROLLER_APIS
from fastquorum.storage.identity import LogKind
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode, encode_response
from fastquorum.wire.messages.brokers import ControllerRegistrationRequest, ControllerRegistrationResponse
from fastquorum.wire.records.brokers import RegisterControllerRecord
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.lane.builders import fetch_response
from tests.node.rig import Rig, endpoint
from tests.node.test_controller_role import after_restart, leader, rig_of

FEATURES = tuple(Feature(name, low, high) for name, (low, high) in sorted(SUPPORTED.items()))
SPEAKS = api_versions(served=(*SERVED, *CONTROLLER_APIS))
NO_TIMEOUT_US = 3_600 * SECOND
LATE_US = 10
"""The rig's clock moves a little with every look."""


def level(number: int) -> bytes:
    return encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=number), 0)


def registered(rig: Rig, node_id: int = 1) -> Controller | None:
    """In its committed image."""
    role = rig.replica.controller
    assert role is not None
    return role.replay.image.controllers.get(node_id)


def settled(rig: Rig) -> Controller:
    rig.pass_time(1)
    rig.sync()
    found = registered(rig)
    assert found is not None
    return found


def requests_of(rig: Rig, node_id: int, lane: int) -> list[tuple[int, Any, ControllerRegistrationRequest]]:
    """(connection, header, request) of every registration that a node was asked for since the last look, beside the
    lane's Fetches."""
    rig.establish()
    return [
        (connection, header, message)
        for connection in rig.outgoing(node_id)
        if connection != lane
        for header, message in rig.requests_on(connection)
        if isinstance(message, ControllerRegistrationRequest)
    ]


class Follower:
    """Controller 1 of three, which has all that a leader has committed, and asks what it asks."""

    def __init__(self, *, metadata_version: int = 30, speaks: Any = SPEAKS, **config: Any) -> None:
        fields = {"fetch_timeout_us": NO_TIMEOUT_US, "request_timeout_us": NO_TIMEOUT_US} | config
        self.source = Rig(kind=LogKind.METADATA, first_records=(level(metadata_version),)).lead()
        self.epoch = self.source.replica.raft.epoch
        self.rig = rig_of(1, 2, 3, config=QuorumConfig(preallocate_bytes=4096, **fields), versions=speaks)
        self._lane = self.rig.follow(2, self.epoch)
        self._end = 0
        self.take_in()

    def take_in(self, *values: bytes) -> None:
        """The leader commits these, and the follower fetches all that there is."""
        if values:
            self.source.append(*values)
            self.source.sync()
        end = self.source.log.end_offset
        records = self.source.log.read(self._end, 1 << 20)
        ((header, _),) = self.rig.requests_on(self._lane)
        answer = fetch_response(header.correlation_id, records, leader_id=2, epoch=self.epoch, high_watermark=end)
        self.rig.replica.on_frame(self._lane, answer, self.rig.now_us)
        self.rig.sync()
        self._end = end

    def asks(self) -> list[tuple[int, Any, ControllerRegistrationRequest]]:
        """(connection, header, request) of every registration that it asked for since the last look."""
        return requests_of(self.rig, 2, self._lane)

    def ask(self) -> tuple[int, Any, ControllerRegistrationRequest]:
        """The one that is due now."""
        self.rig.pass_time(1)
        (request,) = self.asks()
        return request

    def answer(self, connection: int, header: Any, code: ErrorCode) -> None:
        answer = ControllerRegistrationResponse(error_code=code, error_message="")
        self.rig.reply(connection, header, answer)

    def refuse(self, code: ErrorCode) -> None:
        connection, header, _ = self.ask()
        self.answer(connection, header, code)

    def waits(self) -> int:
        """Until it asks again, in microseconds."""
        rig, began_us = self.rig, self.rig.now_us
        while rig.now_us <= began_us + 2 * AGAIN_US_MAX:
            rig.pass_time(max(rig.replica.deadline_us - rig.now_us, 1))
            links = [number for number in rig.outgoing(2) if number != self._lane]
            if any(rig.transport.sent[number] or number in rig.transport.begun for number in links):
                return rig.now_us - began_us
        raise AssertionError("it does not ask again")

    def keeps(self, connection: int) -> int:
        """Until it gives a connection up, on which nothing is said, in microseconds."""
        rig, began_us = self.rig, self.rig.now_us
        while connection in rig.transport.open:
            assert rig.now_us <= began_us + 2 * AGAIN_US_MAX, "it waits on"
            rig.pass_time(max(rig.replica.deadline_us - rig.now_us, 1))
        return rig.now_us - began_us


def record_of(request: ControllerRegistrationRequest, incarnation_id: Uuid | None = None) -> bytes:
    """Return the record as an active controller writes it."""
    record = RegisterControllerRecord(
        controller_id=request.controller_id, incarnation_id=incarnation_id or request.incarnation_id
    )
    return encode_metadata_record(record, 0)


# --- the active one ---------------------------------------------------------------------------------------------------


def test_the_active_controller_registers_itself_with_all_that_it_supports() -> None:
    rig = leader()
    assert registered(rig) is None
    found = settled(rig)
    at = endpoint(1)
    assert found == Controller(1, found.incarnation_id, False, (Listener(at.name, at.host, at.port, 0),), FEATURES)
    assert found.incarnation_id[6] >> 4 == 4, "a random id"
    end = rig.log.end_offset
    rig.pass_time(100 * MS)
    assert rig.log.end_offset == end, "once"


def test_after_a_restart_another_incarnation_takes_its_place() -> None:
    rig = leader()
    first = settled(rig)
    again = rig_of(files=after_restart(rig).disk.contents(), state=rig.states.state, chance=2).lead()
    second = settled(again)
    assert second.incarnation_id != first.incarnation_id
    assert second._replace(incarnation_id=first.incarnation_id) == first


def test_what_the_lead_has_not_committed_is_asked_of_the_next_leader() -> None:
    rig = rig_of(1, 2, 3, versions=SPEAKS).lead()
    follower = rig.accept()
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    end = rig.log.end_offset
    rig.pass_time(1)
    assert rig.log.end_offset == end + 1
    assert registered(rig) is None, "on no majority yet"
    lane = rig.follow(2, rig.replica.raft.epoch + 1)
    rig.pass_time(1)
    assert len(requests_of(rig, 2, lane)) == 1


def test_one_that_cannot_append_tries_again() -> None:
    rig = rig_of()
    rig.lead()
    rig.shell.refuse_appends(True)
    rig.pass_time(50 * MS)
    assert registered(rig) is None
    rig.shell.refuse_appends(False)
    rig.pass_time(AGAIN_US)
    rig.sync()
    assert registered(rig) is not None


# --- whoever follows --------------------------------------------------------------------------------------------------


def test_a_follower_asks_the_leader_until_what_is_committed_says_so() -> None:
    follower = Follower()
    connection, header, request = follower.ask()
    at = endpoint(1)
    assert (request.controller_id, request.zk_migration_ready) == (1, False)
    listeners = [(each.name, each.host, each.port, each.security_protocol) for each in request.listeners]
    assert listeners == [(at.name, at.host, at.port, 0)]
    features = [(each.name, each.min_supported_version, each.max_supported_version) for each in request.features]
    assert features == [tuple(each) for each in FEATURES]
    follower.answer(connection, header, ErrorCode.NONE)
    follower.rig.pass_time(SECOND)
    assert follower.asks() == [], "it is committed, and has yet to be read"
    follower.take_in(record_of(request))
    follower.rig.pass_time(2 * AGAIN_US_MAX)
    assert follower.asks() == []


def test_what_a_client_is_told_of_features_is_what_it_registers() -> None:
    _, _, request = Follower().ask()
    features = {(each.name, each.min_version, each.max_version) for each in api_versions(levels={}).supported_features}
    assert {
        (each.name, each.min_supported_version, each.max_supported_version) for each in request.features
    } == features


def test_nobody_asks_before_all_that_is_committed_is_known() -> None:
    rig = rig_of(1, 2, 3, versions=SPEAKS)
    lane = rig.follow(2, 5)
    rig.pass_time(100 * MS)
    assert requests_of(rig, 2, lane) == []


def test_below_the_level_that_knows_of_it_nobody_asks_and_once_it_is_raised_all_do() -> None:
    follower = Follower(metadata_version=14)
    follower.rig.pass_time(AGAIN_US_MAX)
    assert follower.asks() == []
    follower.take_in(level(15))
    assert follower.ask()[2].controller_id == 1


def test_another_that_takes_its_place_has_it_replaced_at_once() -> None:
    follower = Follower()
    connection, header, request = follower.ask()
    follower.answer(connection, header, ErrorCode.NONE)
    follower.take_in(record_of(request))
    follower.take_in(record_of(request, Uuid(b"o" * 16)))
    assert follower.ask()[2] == request


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_refusal_is_asked_again_after_twice_as_long_each_time(code: ErrorCode) -> None:
    follower = Follower()
    follower.refuse(code)
    for failures in range(14):
        expected_us = min(AGAIN_US << failures, AGAIN_US_MAX)
        spread_us = expected_us * JITTER // 100
        waited_us = follower.waits()
        assert expected_us - spread_us <= waited_us + LATE_US
        assert waited_us <= min(expected_us + spread_us, AGAIN_US_MAX) + LATE_US
        follower.refuse(code)


def test_after_a_success_the_wait_is_short_again() -> None:
    follower = Follower()
    for _ in range(5):
        follower.refuse(ErrorCode.NOT_CONTROLLER)
        follower.waits()
    connection, header, request = follower.ask()
    follower.answer(connection, header, ErrorCode.NONE)
    follower.take_in(record_of(request))
    follower.take_in(record_of(request, Uuid(b"o" * 16)))
    follower.refuse(ErrorCode.NOT_CONTROLLER)
    assert follower.waits() <= AGAIN_US + AGAIN_US * JITTER // 100 + LATE_US


def test_another_leader_is_asked_at_once() -> None:
    follower = Follower()
    for _ in range(8):
        follower.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        follower.waits()
    follower.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
    rig = follower.rig
    lane = rig.follow(3, follower.epoch + 1)
    rig.pass_time(1)
    assert len(requests_of(rig, 3, lane)) == 1


def test_an_answer_that_does_not_come_in_time_is_not_waited_for() -> None:
    follower = Follower(request_timeout_us=5 * SECOND)
    connection, header, _ = follower.ask()
    waited_us = follower.keeps(connection)
    assert 5 * SECOND <= waited_us + LATE_US <= 5 * SECOND + 2 * AGAIN_US
    late = ControllerRegistrationResponse(error_message="")
    frame = encode_response(header.correlation_id, header.request_api_key, 0, late)
    follower.rig.replica.on_frame(connection, frame, follower.rig.now_us)
    assert not follower.rig.replica.stopped


def test_a_leader_that_does_not_know_of_it_is_asked_again_and_costs_nothing_else() -> None:
    """One of ours that only keeps the log leads."""
    follower = Follower(speaks=api_versions())
    follower.rig.pass_time(1)
    follower.rig.establish()
    follower.rig.pass_time(AGAIN_US_MAX)
    assert follower.asks() == []
    assert not follower.rig.replica.stopped


def test_what_is_committed_meanwhile_hurries_nobody() -> None:
    follower = Follower()
    for _ in range(8):
        follower.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        follower.waits()
    follower.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
    follower.take_in(level(30))
    follower.rig.pass_time(AGAIN_US << 7)
    assert follower.asks() == []
