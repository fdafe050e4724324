"""A broker that wants nothing new is answered without a turn of the controller, and counts as heard; whatever changes
about it is the controller's again. KIP-631; C3, C8; KAFKA-15019."""

from typing import Any

import pytest

from fastquorum.config import MS
from fastquorum.node.metadata import controller as controller_role
from fastquorum.raft import events as ev
from fastquorum.types import NO_NODE, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import BrokerHeartbeatResponse, UnregisterBrokerRequest, UnregisterBrokerResponse
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from fastquorum.wire.messages.topics import CreateTopicsRequest
from tests.node.rig import Rig
from tests.node.test_controller_role import SESSION, beat, heartbeat, leader, register


class Decided:
    """Heartbeats that the controller decided about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers: list[int] = []
        decide = controller_role.decide

        def noted(state: Any, message: Any, *more: Any, **named: Any) -> Any:
            if type(message).__name__ == "BrokerHeartbeatRequest":
                self.brokers.append(message.broker_id)
            return decide(state, message, *more, **named)

        monkeypatch.setattr(controller_role, "decide", noted)

    def take(self) -> list[int]:
        taken, self.brokers = self.brokers, []
        return taken


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Decided:
    return Decided(monkeypatch)


def steady(rig: Rig, broker_id: int = 1) -> int:
    """A broker whose heartbeats the controller need not see; its epoch."""
    epoch = register(rig, broker_id)
    assert not beat(rig, epoch, broker_id).is_fenced, "unfenced by this one"
    assert not beat(rig, epoch, broker_id).is_fenced, "which came to nothing"
    return epoch


STEADY = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)


def test_who_wants_nothing_new_is_answered_without_the_controller(decided: Decided) -> None:
    rig = leader()
    epoch = steady(rig)
    decided.take()
    assert [beat(rig, epoch) for _ in range(3)] == [STEADY] * 3
    assert decided.take() == []


def test_and_counts_as_heard(decided: Decided) -> None:
    rig = leader()
    epoch = steady(rig)
    for _ in range(5):
        rig.pass_time(SESSION - 100 * MS)
        rig.sync()
        assert beat(rig, epoch) == STEADY
    assert decided.take() == [1, 1], "until it was unfenced"
    rig.pass_time(SESSION + 100 * MS)
    rig.sync()
    assert beat(rig, epoch, want_fence=True).is_fenced
    assert decided.take() == [1], "it was fenced, and is the controller's again"


def test_an_unfencing_that_is_not_committed_yet_makes_nobody_steady(decided: Decided) -> None:
    rig = leader()
    epoch = register(rig)
    connection = rig.accept()
    for _ in range(3):
        rig.ask(connection, heartbeat(rig, epoch), 2)
    assert rig.answers(connection) == [], "whatever says that it is unfenced waits for that"
    assert decided.take() == [1, 1, 1]
    rig.sync()
    assert rig.answers(connection) == [STEADY] * 3


def test_nothing_overtakes_what_was_asked_before_on_its_connection(decided: Decided) -> None:
    rig = leader()
    epoch = steady(rig)
    decided.take()
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    connection, other = rig.accept(), rig.accept()
    rig.ask(connection, CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    rig.ask(connection, heartbeat(rig, epoch), 2)
    rig.ask(other, heartbeat(rig, epoch), 2)
    assert (rig.answers(connection), rig.answers(other)) == ([], [STEADY])
    assert decided.take() == [1]
    rig.sync()
    assert [type(each).__name__ for each in rig.answers(connection)] == [
        "CreateTopicsResponse",
        "BrokerHeartbeatResponse",
    ]


def test_who_is_unregistered_or_registered_anew_is_the_controllers_again() -> None:
    rig = leader()
    epoch = steady(rig)
    connection = rig.accept()
    rig.ask(connection, UnregisterBrokerRequest(broker_id=1), 0)
    stale = rig.answer_to(BrokerHeartbeatResponse, heartbeat(rig, epoch), 2)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
    rig.sync()
    assert rig.answers(connection) == [UnregisterBrokerResponse(error_message=None)]
    assert steady(rig) > epoch
    stale = rig.answer_to(BrokerHeartbeatResponse, heartbeat(rig, epoch), 2)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_who_shuts_down_or_lost_a_directory_is_the_controllers(decided: Decided) -> None:
    rig = leader()
    first, second = steady(rig, 1), steady(rig, 2)
    decided.take()
    beat(rig, first, 1, offline_log_dirs=[Uuid(b"d" * 16)])
    beat(rig, first, 1, offline_log_dirs=[Uuid(b"d" * 16)])
    assert decided.take() == [1, 1], "what fails is looked at each time"
    assert beat(rig, second, 2, want_shut_down=True).should_shut_down
    assert beat(rig, second, 2, want_shut_down=True).should_shut_down
    assert decided.take() == [2, 2]


def test_a_change_of_features_is_heard_by_the_next_heartbeat(decided: Decided) -> None:
    rig = leader()
    epoch = steady(rig)
    decided.take()
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    connection = rig.accept()
    rig.ask(connection, UpdateFeaturesRequest(feature_updates=[update]), 1)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, UpdateFeaturesResponse)
    assert answer.error_code == 0, answer.error_message
    assert beat(rig, epoch) == STEADY
    assert decided.take() == [1]


def test_when_the_lead_ends_nobody_is_told_that_it_is_unfenced(decided: Decided) -> None:
    rig = leader()
    epoch = steady(rig)
    rig.replica.request(ev.ResignRequested(NO_NODE, rig.replica.raft.epoch), rig.now_us)
    answer = rig.answer_to(BrokerHeartbeatResponse, heartbeat(rig, epoch), 2)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    rig.lead()
    decided.take()
    assert beat(rig, epoch) == STEADY
    assert decided.take() == [1], "the next lead decides anew"
