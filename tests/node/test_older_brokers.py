"""Brokers of KIP-343 and KIP-380: served where the settings say so, and nowhere else."""

from typing import Any

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.controller.requests import DECIDED_FOR_OLDER
from fastquorum.controller.state.broker_info import BROKER_INFO_VERSION
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.storage.identity import LogKind
from fastquorum.wire import API, ApiKey, ErrorCode, Message
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest, BrokerRegistrationResponse
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse
from tests.lane.builders import CLUSTER
from tests.node.rig import Rig
from tests.node.test_controller_role import SESSION, leader, registration
from tests.node.test_first_records import LEVELS

REQUESTS: list[tuple[Message, int]] = [
    (MetadataHeartbeatRequest(broker_id=1, incarnation_id=1, target_state=BrokerState.ACTIVE), 0),
    (IsrChangeRequest(broker_id=1, incarnation_id=1), 0),
    (ControlledShutdownRequest(broker_id=1, broker_epoch=1), 2),
]


def older(*voters: int) -> Rig:
    return Rig(
        *voters,
        config=QuorumConfig(preallocate_bytes=4096),
        kind=LogKind.METADATA,
        first_records=LEVELS,
        controller=ControllerSettings(CLUSTER, older_brokers=True),
    )


def join(rig: Rig, version: int) -> int:
    """Broker 1 registers with this version; its incarnation id."""
    request = registration()
    feature = BrokerRegistrationRequest.Feature
    request.features.append(feature(name=BROKER_INFO_VERSION, min_supported_version=0, max_supported_version=version))
    connection = rig.accept()
    rig.ask(connection, request, 4)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert answer.error_code == 0
    return answer.broker_epoch


def is_active(rig: Rig) -> bool:
    role = rig.replica._controller
    assert role is not None
    return role.replay.image.brokers[1].is_active


def test_all_of_them_are_tried_here() -> None:
    assert {type(message) for message, _ in REQUESTS} == {*DECIDED_FOR_OLDER}


@pytest.mark.parametrize(("message", "version"), REQUESTS)
def test_unless_it_was_said_they_are_hung_up_on(message: Message, version: int) -> None:
    rig = leader()
    end, connection = rig.log.end_offset, rig.accept()
    rig.ask(connection, message, version)
    rig.sync()
    assert connection not in rig.transport.open
    assert rig.log.end_offset == end


def test_they_are_not_advertised_where_they_are_heard() -> None:
    answer = older().lead().answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    offered = {each.api_key for each in answer.api_keys}
    assert ApiKey.BROKER_HEARTBEAT in offered
    assert not offered & {ApiKey.METADATA_HEARTBEAT, ApiKey.ISR_CHANGE, ApiKey.CONTROLLED_SHUTDOWN}


@pytest.mark.parametrize(("message", "version"), REQUESTS)
def test_whoever_is_not_the_controller_says_so(message: Message, version: int) -> None:
    """ "The top level error code will be NOT_CONTROLLER if the recipient was not the current controller." """
    rig = older(1, 2, 3)
    rig.follow()
    answer: Any = rig.answer_to(API[message.__wire__.api_key].response, message, version)
    code = answer.top_level_error_code if isinstance(answer, IsrChangeResponse) else answer.error_code
    assert code == ErrorCode.NOT_CONTROLLER


def test_a_heartbeat_is_answered_when_what_comes_of_it_is_committed() -> None:
    rig = older().lead()
    incarnation_id, connection = join(rig, 5), rig.accept()
    request = MetadataHeartbeatRequest(broker_id=1, incarnation_id=incarnation_id, target_state=BrokerState.ACTIVE)
    rig.ask(connection, request, 0)
    assert rig.answers(connection) == [], "nothing of it is on a disk yet"
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, MetadataHeartbeatResponse)
    assert (answer.error_code, answer.current_state) == (0, BrokerState.ACTIVE)
    assert is_active(rig)


def test_a_shutdown_is_answered_and_the_broker_is_on_its_way() -> None:
    rig = older().lead()
    incarnation_id = join(rig, 4)
    rig.sync()
    request = ControlledShutdownRequest(broker_id=1, broker_epoch=incarnation_id)
    connection = rig.accept()
    rig.ask(connection, request, 2)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, ControlledShutdownResponse)
    assert (answer.error_code, answer.remaining_partitions) == (0, [])
    assert not is_active(rig)


@pytest.mark.parametrize("says_more", [True, False])
def test_a_wish_to_go_is_a_sign_of_life(says_more: bool) -> None:
    """Like a heartbeat: a broker that still asks, while its leaders move, is not taken for dead."""
    rig = older().lead()
    incarnation_id = join(rig, 5)
    rig.ask(rig.accept(), MetadataHeartbeatRequest(broker_id=1, incarnation_id=incarnation_id, target_state=2), 0)
    rig.sync()
    for _ in range(3):
        rig.pass_time(SESSION // 2)
        if says_more:
            rig.ask(rig.accept(), ControlledShutdownRequest(broker_id=1, broker_epoch=incarnation_id), 2)
        rig.sync()
    role = rig.replica._controller
    assert role is not None
    assert role.replay.image.brokers[1].fenced is not says_more


def test_a_refusal_says_why_and_writes_nothing() -> None:
    rig = older().lead()
    end = rig.log.end_offset
    beaten = rig.answer_to(MetadataHeartbeatResponse, REQUESTS[0][0], 0)
    assert (beaten.error_code, beaten.error_string) == (ErrorCode.STALE_BROKER_EPOCH, "broker 1 is not registered")
    proposed = rig.answer_to(IsrChangeResponse, REQUESTS[1][0], 0)
    assert proposed.top_level_error_code == ErrorCode.STALE_BROKER_EPOCH
    assert proposed.top_level_error_message == "broker 1 is not registered"
    assert rig.log.end_offset == end


def test_a_legacy_broker_is_active_as_soon_as_it_has_registered() -> None:
    """ "Legacy brokers are always considered to be active, even if they don't send heartbeats." """
    rig = older().lead()
    join(rig, 4)
    rig.sync()
    assert is_active(rig)


def test_one_that_is_to_beat_is_not() -> None:
    rig = older().lead()
    join(rig, 5)
    rig.sync()
    assert not is_active(rig)


def test_without_the_setting_no_broker_is_active_unasked() -> None:
    rig = leader()
    join(rig, 4)
    rig.sync()
    assert not is_active(rig)
