"""The lease promise is of settings of both sides: a member asks each controller for its session timeout before it
registers, and registers with none by whose session it could meet its successor."""

import pytest

from fastquorum.broker.agent import MemberLink
from fastquorum.broker.settings import MemberConfig
from fastquorum.broker.states import State
from fastquorum.errors import ConfigError
from fastquorum.wire import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse
from tests.broker.rig import SECOND
from tests.broker.test_agent import NOW, Member, session_of


def request_of(member: Member) -> Message:
    return member.pending[MemberLink.CONTROLLER].message


def test_a_controller_is_asked_for_its_session_before_anything_else() -> None:
    member = Member().find()
    request = request_of(member)
    assert isinstance(request, DescribeConfigsRequest)
    (resource,) = request.resources
    assert (resource.resource_type, resource.resource_name, resource.configuration_keys) == (
        4,
        "2",
        ["broker.session.timeout.ms"],
    )
    member.hear(MemberLink.CONTROLLER, session_of(8_000))
    assert isinstance(request_of(member), BrokerRegistrationRequest)


@pytest.mark.parametrize("session_ms", [7_999, 6_000, 320])
def test_a_member_that_could_meet_its_successor_does_not_register(session_ms: int) -> None:
    """It may act for 6 s, of a session of 8 s: also if that is longer than the controllers' whole session."""
    member = Member().find().hear(MemberLink.CONTROLLER, session_of(session_ms))
    view = member.agent.view
    assert (view.state, view.epoch, view.lease_until_us) == (State.GONE, -1, -1)
    assert MemberLink.CONTROLLER not in member.pending
    with pytest.raises(
        ConfigError, match=f"session_timeout_us: controller 2 admits a successor after {session_ms * 1000} us"
    ):
        raise view.error or AssertionError("it does not say why")


def test_a_longer_session_only_makes_a_successor_wait() -> None:
    member = Member().find().hear(MemberLink.CONTROLLER, session_of(60_000))
    assert isinstance(request_of(member), BrokerRegistrationRequest)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_a_controller_that_does_not_say_is_believed(code: ErrorCode) -> None:
    result = DescribeConfigsResponse.DescribeConfigsResult(error_code=code)
    member = Member().find().hear(MemberLink.CONTROLLER, DescribeConfigsResponse(results=[result]))
    assert isinstance(request_of(member), BrokerRegistrationRequest)


def test_so_is_one_that_does_not_know_the_question() -> None:
    member = Member().find()
    number = member.pending.pop(MemberLink.CONTROLLER).number
    member.run(member.agent.on_unanswered(MemberLink.CONTROLLER, number, "unknown", NOW, unsupported=True))
    assert isinstance(request_of(member), BrokerRegistrationRequest)
    assert member.pending[MemberLink.CONTROLLER].number == number


def test_one_that_does_not_answer_is_asked_again() -> None:
    member = Member().find()
    number = member.pending.pop(MemberLink.CONTROLLER).number
    member.run(member.agent.on_unanswered(MemberLink.CONTROLLER, number, "the connection failed", NOW))
    member.run(member.agent.on_tick(NOW + SECOND))
    assert isinstance(request_of(member), DescribeConfigsRequest)
    late = session_of(320)
    assert not member.agent.on_answer(MemberLink.CONTROLLER, number, late, NOW + SECOND), "that was given up"
    member.hear(MemberLink.CONTROLLER, session_of(8_000))
    assert isinstance(request_of(member), BrokerRegistrationRequest)


def test_each_controller_that_begins_to_lead_is_asked() -> None:
    member = Member().find().hear(MemberLink.CONTROLLER, session_of(8_000))
    member.hear(MemberLink.CONTROLLER, BrokerRegistrationResponse(broker_epoch=1))
    assert isinstance(request_of(member), BrokerHeartbeatRequest), "the same one is not asked twice"
    member.find(leader_id=3, epoch=4)
    number = member.pending.pop(MemberLink.CONTROLLER).number
    member.run(member.agent.on_unanswered(MemberLink.CONTROLLER, number, "the connection failed", NOW))
    member.run(member.agent.on_tick(NOW + SECOND))
    request = request_of(member)
    assert isinstance(request, DescribeConfigsRequest)
    assert request.resources[0].resource_name == "3"
    member.hear(MemberLink.CONTROLLER, session_of(4_000))
    assert isinstance(member.agent.view.error, ConfigError)


def test_none_is_asked_where_the_lease_promises_nothing() -> None:
    config = MemberConfig(session_timeout_us=8 * SECOND, heartbeat_timeout_us=12 * SECOND)
    assert isinstance(request_of(Member(config).find()), BrokerRegistrationRequest)
