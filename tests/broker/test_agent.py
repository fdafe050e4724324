"""A member whole, as its core has it: what it makes of answers that come when it is over."""

from collections.abc import Iterable

from fastquorum.broker.agent import Agent, Effect, Keep, MemberLink, MemberSend
from fastquorum.broker.settings import MemberConfig
from fastquorum.broker.states import State
from fastquorum.kernels import load
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatResponse, BrokerRegistrationResponse
from fastquorum.wire.messages.configs import DescribeConfigsResponse
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from fastquorum.wire.records.brokers import RegisterBrokerRecord
from tests.broker.rig import CONFIG, SECOND, SETTINGS, NoChance
from tests.broker.test_follower import LEADER, LEVEL, batch, topic

NOW = 1_000 * SECOND
Fetched = FetchResponse.FetchableTopicResponse


def session_of(session_ms: int) -> DescribeConfigsResponse:
    """What a controller says of its session timeout."""
    result = DescribeConfigsResponse.DescribeConfigsResult
    entry = result.DescribeConfigsResourceResult(name="broker.session.timeout.ms", value=str(session_ms))
    return DescribeConfigsResponse(results=[result(resource_type=4, resource_name="2", configs=[entry])])


class Member:
    """An Agent, and what it asked of either side and was not answered yet."""

    def __init__(self, config: MemberConfig = CONFIG) -> None:
        self.agent = Agent(SETTINGS, config, load("pure"), NoChance())
        self.pending: dict[MemberLink, MemberSend] = {}
        self.kept: list[int] = []
        """Where its metadata stood whenever it was to be kept."""
        self.run(self.agent.start(NOW))

    def run(self, effects: Iterable[Effect]) -> "Member":
        for effect in effects:
            if isinstance(effect, MemberSend):
                self.pending[effect.link] = effect
            elif isinstance(effect, Keep):
                self.kept.append(self.agent.view.metadata_offset)
        return self

    def hear(self, link: MemberLink, message: Message) -> "Member":
        return self.run(self.agent.on_answer(link, self.pending.pop(link).number, message, NOW))

    def find(self, leader_id: int = 2, epoch: int = 3) -> "Member":
        """Its Fetch is answered by whoever is not the leader, and the leader says who votes."""
        partition = Fetched.PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
        partition.current_leader = Fetched.PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
        node = FetchResponse.NodeEndpoint(node_id=leader_id, host=LEADER.host, port=LEADER.port)
        self.hear(
            MemberLink.METADATA, FetchResponse(responses=[Fetched(partitions=[partition])], node_endpoints=[node])
        )
        if isinstance(self.pending[MemberLink.METADATA].message, DescribeQuorumRequest):
            described = DescribeQuorumResponse.TopicData
            self.hear(
                MemberLink.METADATA, DescribeQuorumResponse(topics=[described(partitions=[described.PartitionData()])])
            )
        return self

    def fetched(self, records: bytes, committed: int) -> "Member":
        partition = Fetched.PartitionData(high_watermark=committed, records=records)
        return self.hear(MemberLink.METADATA, FetchResponse(responses=[Fetched(partitions=[partition])]))


def online() -> Member:
    """Registered by record 1, and let in."""
    member = Member().find()
    member.hear(MemberLink.CONTROLLER, session_of(8_000))
    registered = RegisterBrokerRecord(broker_id=7, incarnation_id=SETTINGS.incarnation_id, broker_epoch=1, fenced=False)
    member.hear(MemberLink.CONTROLLER, BrokerRegistrationResponse(broker_epoch=1))
    member.fetched(batch(0, 3, LEVEL) + batch(1, 3, registered), 2)
    member.hear(MemberLink.CONTROLLER, BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert member.agent.view.state is State.ONLINE
    return member


def gone() -> Member:
    """Let go while its last Fetch is under way."""
    member = online()
    member.run(member.agent.stop(NOW + SECOND, NOW))
    member.hear(
        MemberLink.CONTROLLER, BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)
    )
    assert member.agent.view.state is State.GONE
    assert isinstance(member.pending[MemberLink.METADATA].message, FetchRequest)
    return member


def test_what_comes_after_it_was_let_go_is_not_in_its_metadata() -> None:
    """That is written down when it is let go, and the next run begins there: both are to say the same."""
    member = gone()
    assert member.kept[-1] == member.agent.view.metadata_offset == 1
    member.fetched(batch(2, 3, topic("late")), 3)
    assert member.agent.view.metadata_offset == 1
    assert member.pending == {}


def test_a_connection_that_fails_after_it_was_let_go_is_nothing_to_it() -> None:
    member = gone()
    pending = member.pending.pop(MemberLink.METADATA)
    before = member.agent.view
    assert not member.agent.on_unanswered(MemberLink.METADATA, pending.number, "the connection failed", NOW)
    assert member.agent.view == before
