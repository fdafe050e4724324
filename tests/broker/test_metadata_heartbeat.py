"""A member that beats as KIP-343 has it, beside controllers that are told to hear it."""

from pathlib import Path

import pytest

from fastquorum.broker import State
from fastquorum.broker.metadata_heartbeat import request_of, response_of
from fastquorum.controller.state.broker_info import BROKER_INFO_VERSION
from fastquorum.errors import NotAdmitted
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.controller_heartbeat import BrokerState, MetadataHeartbeatResponse
from tests.api.nodes import WAIT_S
from tests.broker.clusters import create_topic, join, one_controller, seen

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    ("wishes", "target"),
    [
        ({}, BrokerState.ACTIVE),
        ({"want_fence": True}, BrokerState.INACTIVE),
        ({"want_shut_down": True}, BrokerState.STOPPING),
        ({"want_shut_down": True, "want_fence": True}, BrokerState.STOPPING),
    ],
)
def test_a_heartbeat_names_the_process_and_the_state_it_would_like_to_get_to(
    wishes: dict[str, bool], target: BrokerState
) -> None:
    """ "The heartbeat request contains the broker ID and incarnation ID of the broker. It also has the target state
    which the broker would like to achieve." """
    request = request_of(BrokerHeartbeatRequest(broker_id=7, broker_epoch=40, current_metadata_offset=50, **wishes))
    assert (request.broker_id, request.incarnation_id, request.target_state) == (7, 40, target)


@pytest.mark.parametrize(
    ("state", "wanted_to_stop", "is_fenced", "may_go"),
    [
        (BrokerState.ACTIVE, False, False, False),
        (BrokerState.INACTIVE, False, True, False),
        (BrokerState.STOPPING, True, False, False),
        (BrokerState.INACTIVE, True, True, True),
    ],
)
def test_the_answer_says_what_it_is_to_be(
    state: BrokerState, wanted_to_stop: bool, is_fenced: bool, may_go: bool
) -> None:
    """ "The responses to these heartbeats contain the actual state which the controller has determined that the broker
    should transition to." """
    response = response_of(MetadataHeartbeatResponse(current_state=state), wanted_to_stop=wanted_to_stop)
    assert (response.error_code, response.is_fenced, response.should_shut_down) == (0, is_fenced, may_go)


def test_a_refused_incarnation_is_a_stale_epoch() -> None:
    refused = MetadataHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert response_of(refused, wanted_to_stop=True).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_it_is_active_leads_and_goes_in_good_order(tmp_path: Path) -> None:
    with (
        one_controller(tmp_path, older_brokers=True) as endpoint,
        join(endpoint, 7, metadata_heartbeats=True) as seven,
        join(endpoint, 8) as eight,
    ):
        epoch = seven.wait_active(WAIT_S)
        eight.wait_active(WAIT_S)
        registered = seen(eight, lambda view: 7 in view.image.brokers).image.brokers[7]
        named = {each.name: each.level_max for each in registered.features}
        assert (registered.epoch, named[BROKER_INFO_VERSION]) == (epoch, 5)
        create_topic(endpoint, "t", 7, 8)
        seen(eight, lambda view: view.image.topics.named("t") is not None)
        seven.close()
        assert seven.view.state is State.GONE
        assert seven.view.reason == "let go by the controller"
        topic = seen(eight, lambda view: view.image.brokers[7].fenced).image.topics.named("t")
        assert topic is not None
        (partition,) = (each for _, each in topic.partitions.items())
        assert (partition.leader, partition.isr) == (8, (8,))


def test_a_controller_that_was_not_told_to_does_not_hear_it(tmp_path: Path) -> None:
    with one_controller(tmp_path) as endpoint, join(endpoint, 7, metadata_heartbeats=True) as member:
        with pytest.raises(NotAdmitted):
            member.wait_active(2.0)
        assert member.view.state is State.FENCED
        assert member.view.epoch >= 0, "it is registered, as anybody may be"
