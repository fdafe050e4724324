"""A member that is told what it is to know, as its core has it: KIP-380 on the broker's side, from its start to its
end."""

from collections.abc import Iterable

from fastquorum.broker.agent import Effect, MemberLink, MemberSend
from fastquorum.broker.control_server import Reply
from fastquorum.broker.pushed_agent import PushedMetadataAgent
from fastquorum.broker.settings import MemberConfig
from fastquorum.broker.states import State
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest, BrokerRegistrationResponse
from fastquorum.wire.messages.configs import DescribeConfigsRequest
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from tests.broker.rig import BOOTSTRAP, LEASE, MS, SECOND, SETTINGS, NoChance
from tests.broker.test_agent import session_of
from tests.broker.test_control_server import frame
from tests.broker.test_pushed import lead

CONFIG = MemberConfig(session_timeout_us=8 * SECOND, control_requests=True)
LISTENER_DESCRIPTOR = 5
"""A connection to its port."""


def controller(number: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"c{number}", 9093)


class Member:
    """A PushedMetadataAgent, the time, and controllers that say who leads them."""

    def __init__(self) -> None:
        self.agent = PushedMetadataAgent(SETTINGS, CONFIG, load("pure"), NoChance())
        self.now = 1_000 * SECOND
        self.leader = 1
        self.metadata: list[tuple[Endpoint, Message]] = []
        """The requests about the metadata, and their endpoints."""
        self.pending: MemberSend | None = None
        """The request to the controller that is not answered yet."""
        self.replies: list[Reply] = []
        self.run(self.agent.start(self.now))

    @property
    def state(self) -> State:
        return self.agent.view.state

    def run(self, effects: Iterable[Effect]) -> "Member":
        for effect in effects:
            if isinstance(effect, Reply):
                self.replies.append(effect)
            elif isinstance(effect, MemberSend) and isinstance(effect.message, DescribeConfigsRequest):
                self.run(self.agent.on_answer(MemberLink.CONTROLLER, effect.number, session_of(8_000), self.now))
            elif isinstance(effect, MemberSend) and effect.link is MemberLink.CONTROLLER:
                self.pending = effect
            elif isinstance(effect, MemberSend):
                self.metadata.append((effect.endpoint, effect.message))
                answer = self.about_the_quorum(effect.message)
                self.run(self.agent.on_answer(MemberLink.METADATA, effect.number, answer, self.now))
        return self

    def about_the_quorum(self, message: Message) -> Message:
        if isinstance(message, DescribeQuorumRequest):
            described = DescribeQuorumResponse.TopicData
            return DescribeQuorumResponse(topics=[described(partitions=[described.PartitionData()])])
        assert isinstance(message, FetchRequest)
        topic = FetchResponse.FetchableTopicResponse
        partition = topic.PartitionData(
            error_code=ErrorCode.FENCED_LEADER_EPOCH,
            current_leader=topic.PartitionData.LeaderIdAndEpoch(leader_id=self.leader, leader_epoch=self.leader),
        )
        at = controller(self.leader)
        node = FetchResponse.NodeEndpoint(node_id=self.leader, host=at.host, port=at.port)
        return FetchResponse(responses=[topic(partitions=[partition])], node_endpoints=[node])

    def wait(self, us: int) -> "Member":
        """Time goes by, and every timer fires when it is due."""
        until = self.now + us
        while 0 <= self.agent.deadline_us <= until:
            self.now = max(self.agent.deadline_us, self.now)
            self.run(self.agent.on_tick(self.now))
        self.now = until
        return self

    def take(self) -> MemberSend:
        pending, self.pending = self.pending, None
        assert pending is not None, "it has asked for nothing"
        return pending

    def answer(self, message: Message) -> "Member":
        return self.run(self.agent.on_answer(MemberLink.CONTROLLER, self.take().number, message, self.now))

    def lose(self) -> "Member":
        return self.run(self.agent.on_unanswered(MemberLink.CONTROLLER, self.take().number, "it is gone", self.now))

    def tell(self, epoch: int = 40) -> "Member":
        """Its controller tells it that it leads t."""
        request = lead(("t", 7, 1), epoch=epoch)
        return self.run(self.agent.on_control(LISTENER_DESCRIPTOR, frame(request), self.now))

    def stop(self, us: int = 5 * SECOND) -> "Member":
        return self.run(self.agent.stop(self.now + us, self.now))

    # --- what it asks, and the answer ---------------------------------------------------------------------------------

    @property
    def message(self) -> Message:
        assert self.pending is not None, "it has asked for nothing"
        return self.pending.message

    def register(self, epoch: int = 40) -> "Member":
        assert isinstance(self.message, BrokerRegistrationRequest)
        return self.answer(BrokerRegistrationResponse(broker_epoch=epoch))

    def refuse_registration(self) -> "Member":
        assert isinstance(self.message, BrokerRegistrationRequest)
        return self.answer(BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION))

    def beat(self, state: BrokerState = BrokerState.ACTIVE, wants: BrokerState = BrokerState.ACTIVE) -> "Member":
        assert isinstance(self.message, MetadataHeartbeatRequest)
        assert self.message.target_state == wants
        return self.answer(MetadataHeartbeatResponse(current_state=state))

    def shut_down(self, epoch: int, code: ErrorCode = ErrorCode.NONE, remaining: int = 0) -> "Member":
        assert self.message == ControlledShutdownRequest(broker_id=7, broker_epoch=epoch)
        left = [ControlledShutdownResponse.RemainingPartition(topic_name="t")] * remaining
        return self.answer(ControlledShutdownResponse(error_code=code, remaining_partitions=left))


def online() -> Member:
    member = Member().register().beat().tell()
    if member.pending is not None:
        member.beat()
    assert member.state is State.ONLINE
    return member


def test_it_asks_who_leads_and_reads_no_metadata() -> None:
    member = Member()
    assert [(at, type(message)) for at, message in member.metadata] == [
        (BOOTSTRAP[0], FetchRequest),
        (controller(1), DescribeQuorumRequest),
    ]
    assert member.pending is not None
    assert member.pending.endpoint == controller(1)
    member.register().beat().tell()
    before = len(member.metadata)
    for _ in range(5):
        member.wait(2 * SECOND).beat()
    assert len(member.metadata) == before
    assert member.state is State.ONLINE


def test_it_may_act_once_it_is_active_and_told_in_either_order() -> None:
    member = Member().register().beat()
    assert member.state is State.FENCED, "it has not been told what it leads"
    assert member.tell().state is State.ONLINE
    member = Member().register().tell()
    assert member.state is State.FENCED, "it has not heard that it is active"
    assert member.beat().state is State.ONLINE
    pushed = member.agent.view.told
    assert pushed is not None
    assert [each.topic for each in pushed.held] == ["t"]


def test_what_its_former_run_was_told_does_not_make_it_act() -> None:
    member = Member().register(40).beat().tell(39)
    assert member.state is State.FENCED
    assert len(member.replies) == 1


def test_what_is_for_the_epoch_it_does_not_know_yet_is_answered_when_it_does() -> None:
    member = Member().tell(40)
    assert member.replies == []
    member.register(40)
    assert len(member.replies) == 1
    assert member.beat().state is State.ONLINE


def test_whoever_is_not_the_controller_any_more_is_not_asked_again() -> None:
    for is_answered in (True, False):
        member = online()
        member.leader = 2
        member.wait(2 * SECOND)
        if is_answered:
            member.answer(MetadataHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
        else:
            member.lose()
        member.wait(100 * MS)
        assert [at for at, _ in member.metadata[-1:]] == [BOOTSTRAP[1]]
        assert member.pending is not None
        assert member.pending.endpoint == controller(2)
        assert member.beat().state is State.ONLINE


def test_out_of_contact_it_fences_itself_whatever_it_is_told() -> None:
    member = online().wait(LEASE - 1)
    assert member.state is State.ONLINE
    assert member.wait(1).tell().state is State.FENCED
    assert member.beat().state is State.ONLINE


def test_it_goes_when_its_leads_have_moved_and_it_is_fenced() -> None:
    member = online().stop()
    member.shut_down(40, remaining=2).wait(50 * MS).shut_down(40)
    assert member.state is State.STOPPING
    member.wait(2 * SECOND).beat(BrokerState.STOPPING, wants=BrokerState.STOPPING)
    member.wait(2 * SECOND).beat(BrokerState.INACTIVE, wants=BrokerState.STOPPING)
    assert (member.state, member.agent.view.reason) == (State.GONE, "let go by the controller")


def test_whoever_is_not_there_for_the_controller_may_go() -> None:
    assert online().stop().shut_down(40, ErrorCode.BROKER_NOT_AVAILABLE).state is State.GONE


def test_if_it_has_lost_its_place_it_asks_again_with_its_newer_epoch() -> None:
    """ "If the broker just gets disconnected ... and re-connect during controlled shutdown, it will retry to send the
    ControlledShutdownRequest with newer broker epoch to controller." """
    member = online().stop().shut_down(40, ErrorCode.STALE_BROKER_EPOCH)
    assert member.state is State.REGISTERING
    assert member.agent.view.lease_until_us == -1, "it may not act any more"
    member.wait(100 * MS).register(50)
    member.shut_down(50).wait(50 * MS)
    member.beat(BrokerState.INACTIVE, wants=BrokerState.STOPPING)
    assert (member.state, member.agent.view.reason) == (State.GONE, "let go by the controller")


def test_what_it_handed_over_under_its_former_epoch_counts_no_more() -> None:
    member = online().stop().shut_down(40).wait(50 * MS)
    refused = MetadataHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    member.answer(refused).wait(100 * MS).register(50)
    assert member.shut_down(50, ErrorCode.BROKER_NOT_AVAILABLE).state is State.GONE


def test_not_registered_again_in_time_it_goes_by_itself() -> None:
    member = online().stop(5 * SECOND).shut_down(40, ErrorCode.STALE_BROKER_EPOCH)
    member.wait(100 * MS).refuse_registration()
    assert member.stop(9 * SECOND).state is State.REGISTERING, "asked once more, it is no later"
    assert member.wait(4 * SECOND).state is State.REGISTERING
    assert member.wait(1 * SECOND).state is State.GONE
