"""A change that a broker passed on is answered when the brokers know that it is committed, or after a while: what a
client wrote it finds at whichever broker it asks. Nobody else is waited for, and nobody else waits."""

import pytest

from fastquorum.node.metadata.due_answers import HELD_US_MAX
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import (
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from fastquorum.wire.messages.cluster import EnvelopeResponse
from fastquorum.wire.messages.topics import CreateTopicsRequest
from tests.node.rig import Rig
from tests.node.test_controller_apis import envelope
from tests.node.test_controller_role import beat, heartbeat, leader, register, registration, rig_of


class Fetching:
    """A broker's Fetches, on a connection of its own."""

    def __init__(self, rig: Rig, node_id: int) -> None:
        self.rig, self.node_id, self.connection = rig, node_id, rig.accept()
        self.fetch()

    def fetch(self, *, knows: int | None = None) -> None:
        """It has all records, and says that all below `knows` is committed; unless given, all that is."""
        high_watermark = self.rig.replica.high_watermark if knows is None else knows
        self.rig.fetch(self.connection, self.node_id, self.rig.log.end_offset, high_watermark=high_watermark)

    def leave(self) -> None:
        self.rig.replica.on_disconnected(self.connection, self.rig.now_us)


def served(*broker_ids: int, fenced: bool = False) -> Rig:
    """A leader with these brokers, registered and unfenced."""
    rig = leader()
    for broker_id in broker_ids:
        epoch = register(rig, broker_id)
        if not fenced:
            beat(rig, epoch, broker_id)
    return rig


def topic(name: str = "t") -> CreateTopicsRequest:
    creatable = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(topics=[creatable(name=name, num_partitions=1, replication_factor=1)])


def change(rig: Rig, name: str = "t") -> int:
    """A topic is made by way of a broker, and committed; the connection where that is answered."""
    connection = rig.accept()
    rig.ask(connection, envelope(topic(name), 7), 0)
    rig.sync()
    return connection


def is_answered(rig: Rig, connection: int) -> bool:
    answers = rig.answers(connection)
    assert all(isinstance(answer, EnvelopeResponse) and answer.error_code == 0 for answer in answers)
    return bool(answers)


def test_it_is_answered_when_the_last_broker_knows_that_it_is_committed() -> None:
    rig = served(11, 12)
    first, second = Fetching(rig, 11), Fetching(rig, 12)
    before = rig.replica.high_watermark
    connection = change(rig)
    first.fetch(knows=before)
    first.fetch()
    second.fetch(knows=before)
    assert not is_answered(rig, connection)
    second.fetch()
    assert is_answered(rig, connection)


def test_without_brokers_or_with_quick_ones_nothing_waits() -> None:
    rig = served(11)
    assert is_answered(rig, change(rig, "nobody fetches"))
    broker = Fetching(rig, 11)
    broker.fetch(knows=rig.log.end_offset + 100)
    assert is_answered(rig, change(rig, "it knows already"))


@pytest.mark.parametrize("node_id", [11, 12], ids=["a fenced broker", "a stranger"])
def test_nobody_waits_for(node_id: int) -> None:
    rig = served(11, fenced=True)
    register_epoch = register(rig, 13)
    beat(rig, register_epoch, 13)
    Fetching(rig, node_id)
    assert is_answered(rig, change(rig))


def test_a_broker_that_does_not_come_holds_one_answer_for_a_while_and_the_next_ones_not_at_all() -> None:
    rig = served(11)
    broker = Fetching(rig, 11)
    connection = change(rig, "a")
    rig.pass_time(HELD_US_MAX - 1)
    assert not is_answered(rig, connection)
    rig.pass_time(2)
    assert is_answered(rig, connection)
    assert is_answered(rig, change(rig, "b")), "it is known to be slow"
    broker.fetch()
    connection = change(rig, "c")
    assert not is_answered(rig, connection), "it has caught up, and is waited for as before"
    broker.fetch()
    broker.fetch()
    assert is_answered(rig, connection)


def test_no_answer_is_held_for_longer_than_the_others_however_many_follow_one_another() -> None:
    rig = served(11)
    Fetching(rig, 11)
    held = []
    for number in range(4):
        held.append((change(rig, f"t{number}"), rig.now_us))
        rig.pass_time(HELD_US_MAX // 3)
    for connection, since_us in held:
        rig.pass_time(max(0, since_us + HELD_US_MAX + 1 - rig.now_us))
        assert is_answered(rig, connection)


def test_a_broker_that_goes_away_is_waited_for_no_longer() -> None:
    rig = served(11)
    broker = Fetching(rig, 11)
    connection = change(rig)
    assert not is_answered(rig, connection)
    broker.leave()
    rig.work()
    assert is_answered(rig, connection)


def test_a_broker_that_is_fenced_meanwhile_holds_nobody_after_that() -> None:
    rig = served(11, 12)
    Fetching(rig, 11)
    epoch = beat_epoch(rig, 11)
    rig.pass_time(1)
    first = change(rig, "a")
    beat(rig, epoch, 11, want_fence=True)
    rig.pass_time(HELD_US_MAX)
    assert is_answered(rig, first)
    assert is_answered(rig, change(rig, "b"))


def beat_epoch(rig: Rig, broker_id: int) -> int:
    role = rig.replica.controller
    assert role is not None
    assert role.state is not None
    return role.state.image.brokers[broker_id].epoch


def test_what_wrote_nothing_and_what_no_broker_passed_on_is_held_for_nobody() -> None:
    rig = served(11)
    Fetching(rig, 11)
    direct = rig.accept()
    rig.ask(direct, topic("direct"), 7)
    rig.sync()
    assert len(rig.answers(direct)) == 1
    assert is_answered(rig, change(rig, "direct")), "it is there already, and nothing is written"
    unregistered = rig.answer_to(UnregisterBrokerResponse, UnregisterBrokerRequest(broker_id=77), 0)
    assert unregistered.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_when_the_lead_ends_what_is_committed_is_answered_and_the_rest_is_for_the_next_leader() -> None:
    rig = rig_of(1, 2, 3).lead()
    voter = rig.accept()

    def commit() -> None:
        rig.sync()
        rig.fetch(voter, 2, rig.log.end_offset)

    commit()
    commit()
    connection = rig.accept()
    rig.ask(connection, registration(11), 4)
    commit()
    (registered,) = rig.answers(connection)
    assert isinstance(registered, BrokerRegistrationResponse)
    rig.ask(connection, heartbeat(rig, registered.broker_epoch, 11), 2)
    commit()
    Fetching(rig, 11)
    committed, uncommitted = rig.accept(), rig.accept()
    rig.ask(committed, envelope(topic("a"), 7), 0)
    commit()
    assert rig.answers(committed) == [], "it is held"
    rig.ask(uncommitted, envelope(topic("b"), 7), 0)
    rig.follow(2, rig.replica.raft.epoch + 1)
    assert [error_of(each) for each in rig.answers(committed)] == [ErrorCode.NONE]
    assert [error_of(each) for each in rig.answers(uncommitted)] == [ErrorCode.NOT_CONTROLLER]


def error_of(answer: Message) -> int:
    assert isinstance(answer, EnvelopeResponse)
    return answer.error_code
