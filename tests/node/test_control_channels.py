"""KIP-380 on a controller's way to its brokers: what is sent to whom, again until it is answered, and until the lead or
the process that it is meant for is over."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.controller.state.broker_info import BROKER_INFO_VERSION
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.node.metadata import control_channels
from fastquorum.raft import events as ev
from fastquorum.storage.identity import LogKind
from fastquorum.types import Endpoint, Uuid
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest, BrokerRegistrationResponse
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fastquorum.wire.messages.inter_broker import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fastquorum.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.controller.test_control_requests import gist
from tests.lane.builders import CLUSTER
from tests.node.rig import Rig
from tests.node.test_controller_role import SESSION, registration
from tests.node.test_first_records import LEVELS

ANSWERS: dict[type[Message], type[Any]] = {
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
    StopReplicaRequest: StopReplicaResponse,
}


def at(port: int) -> Endpoint:
    return Endpoint("PLAINTEXT", "h", port)


class Controller:
    """A controller that leads, and the brokers' ends of its connections."""

    def __init__(self, *, older_brokers: bool = True) -> None:
        self.rig = Rig(
            config=QuorumConfig(preallocate_bytes=4096),
            kind=LogKind.METADATA,
            first_records=LEVELS,
            controller=ControllerSettings(CLUSTER, older_brokers=older_brokers),
        ).lead()

    def stop_leading(self) -> None:
        """Stop leading like a leader whose disk hangs."""
        self.rig.replica.request(ev.DiskStalled(), self.rig.now_us)
        self.rig.work()

    # --- what brokers and clients ask ---------------------------------------------------------------------------------

    def _ask(self, message: Message, version: int) -> Any:
        connection = self.rig.accept()
        self.rig.ask(connection, message, version)
        self.rig.sync()
        self.rig.work()
        (answer,) = self.rig.answers(connection)
        return answer

    def register(
        self, broker_id: int, port: int, *, incarnation: int = 1, version: int | None = 5, listener: str = "PLAINTEXT"
    ) -> int:
        """The broker's epoch. `version` None: it follows the log."""
        request = registration(broker_id, incarnation)
        request.log_dirs = [Uuid(bytes([100 + broker_id]) * 16)]
        request.listeners = [BrokerRegistrationRequest.Listener(name=listener, host="h", port=port)]
        if version is not None:
            feature = BrokerRegistrationRequest.Feature(
                name=BROKER_INFO_VERSION, min_supported_version=0, max_supported_version=version
            )
            request.features.append(feature)
        answer = self._ask(request, 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        assert answer.error_code == ErrorCode.NONE
        return answer.broker_epoch

    def say(self, broker_id: int, epoch: int, target: BrokerState) -> None:
        request = MetadataHeartbeatRequest(broker_id=broker_id, incarnation_id=epoch, target_state=target)
        answer = self._ask(request, 0)
        assert isinstance(answer, MetadataHeartbeatResponse)
        assert (answer.error_code, answer.current_state) == (ErrorCode.NONE, target)

    def activate(self, broker_id: int, port: int, **more: Any) -> int:
        epoch = self.register(broker_id, port, **more)
        self.say(broker_id, epoch, BrokerState.ACTIVE)
        return epoch

    def create(self, name: str, *replicas: int) -> None:
        topic = CreateTopicsRequest.CreatableTopic
        assigned = topic.CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
        made = topic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assigned])
        answer = self._ask(CreateTopicsRequest(topics=[made]), 7)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE

    def delete(self, name: str) -> None:
        answer = self._ask(DeleteTopicsRequest(topic_names=[name]), 5)
        assert isinstance(answer, DeleteTopicsResponse)
        assert answer.responses[0].error_code == ErrorCode.NONE

    # --- what it tells ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """All that is due now is done; connections that it begins come up."""
        self.rig.pass_time(1)
        self.rig.establish()

    def connections(self, port: int) -> list[int]:
        return [number for number, endpoint in self.rig.transport.open.items() if endpoint == at(port)]

    def requests(self, port: int) -> list[tuple[int, Any, Message]]:
        """What came at this port since the last look: connection, header, request."""
        self.settle()
        return [
            (number, header, message)
            for number in self.connections(port)
            for header, message in self.rig.requests_on(number)
        ]

    def one(self, port: int) -> tuple[int, Any, Message]:
        (request,) = self.requests(port)
        return request

    def answer(self, request: tuple[int, Any, Message], code: ErrorCode = ErrorCode.NONE) -> None:
        connection, header, message = request
        self.rig.reply(connection, header, ANSWERS[type(message)](error_code=code))

    def tell_all(self, port: int) -> list[tuple[str, list[str]]]:
        """Everything that waits for whoever is there, who does it: what it was, and of which partitions."""
        found: list[Any] = []
        while len(requests := self.requests(port)) == 1:
            found.append(requests[0][2])
            self.answer(requests[0])
        assert requests == []
        return [each[1:] for each in gist([(0, message) for message in found])]  # type: ignore[list-item]


def lose_connection(controller: Controller, connection: int) -> None:
    controller.rig.transport.close(connection)
    controller.rig.replica.on_disconnected(connection, controller.rig.now_us)


def test_a_broker_that_starts_is_told_everything_one_request_at_a_time() -> None:
    controller = Controller()
    epoch = controller.activate(2, 9092)
    first = controller.one(9092)
    assert isinstance(first[2], UpdateMetadataRequest)
    raft = controller.rig.replica.raft
    assert (first[2].controller_id, first[2].controller_epoch) == (raft.key.id, raft.epoch)
    assert first[2].broker_epoch == epoch
    assert controller.requests(9092) == [], "it has not answered yet"
    controller.answer(first)
    second = controller.one(9092)
    assert isinstance(second[2], LeaderAndIsrRequest)
    assert second[0] == first[0], "on the same connection"
    controller.answer(second)
    assert controller.requests(9092) == []


def test_what_is_committed_is_told_to_whom_it_concerns() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    controller.activate(3, 9093)
    controller.tell_all(9092)
    controller.tell_all(9093)
    controller.create("t", 3)
    assert controller.tell_all(9092) == [("update", ["t-0"])]
    assert controller.tell_all(9093) == [("lead", ["t-0"]), ("update", ["t-0"])]
    controller.delete("t")
    assert controller.tell_all(9093) == [("delete", ["t-0"]), ("update", ["t-0"])]


def test_a_broker_may_have_the_controllers_id() -> None:
    controller = Controller()
    controller.activate(1, 9092)
    assert controller.tell_all(9092) == [("update", []), ("lead", [])]
    assert controller.rig.replica.is_leader


def test_after_a_broken_connection_the_same_is_sent_again() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    for _ in range(3):
        connection, _, message = controller.one(9092)
        assert isinstance(message, UpdateMetadataRequest)
        lose_connection(controller, connection)
        assert controller.requests(9092) == [], "not at once"
        controller.rig.pass_time(600 * MS)
    assert controller.tell_all(9092) == [("update", []), ("lead", [])]


def test_after_a_silence_the_same_is_sent_again_on_another_connection() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    silent, _, first = controller.one(9092)
    controller.rig.pass_time(controller.rig.config.request_timeout_us + 1_000 * MS)
    connection, _, again = controller.one(9092)
    assert connection != silent
    assert silent not in controller.rig.transport.open
    assert again == first


def test_one_that_cannot_be_reached_is_tried_less_and_less_often_and_never_given_up() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    role, waits = controller.rig.replica.controller, []
    assert role is not None
    for _ in range(8):
        controller.rig.pass_time(1)
        for connection in controller.rig.transport.begun:
            lose_connection(controller, connection)
        controller.rig.transport.begun.clear()
        controller.rig.pass_time(1)
        waits.append(role._channels.deadline_us - controller.rig.now_us)
        controller.rig.pass_time(waits[-1])
    assert waits == sorted(waits)
    assert (waits[0] < 60 * MS, waits[-1] > 900 * MS) == (True, True)
    assert controller.tell_all(9092) == [("update", []), ("lead", [])]


def test_one_that_cannot_be_reached_holds_up_nobody() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    controller.rig.pass_time(1)
    (begun,) = controller.rig.transport.begun
    lose_connection(controller, begun)
    controller.activate(3, 9093)
    assert controller.tell_all(9093) == [("update", []), ("lead", [])]


def test_what_is_refused_as_stale_is_not_sent_again_nor_what_waits_for_the_same_process() -> None:
    """ "...it will respond back with STALE_BROKER_EPOCH error. The controller will not resend the request." """
    controller = Controller()
    controller.activate(2, 9092)
    controller.answer(controller.one(9092), ErrorCode.STALE_BROKER_EPOCH)
    controller.rig.pass_time(5_000 * MS)
    assert controller.requests(9092) == []


@pytest.mark.parametrize("code", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_any_other_answer_is_an_answer(code: ErrorCode) -> None:
    controller = Controller()
    controller.activate(2, 9092)
    controller.answer(controller.one(9092), code)
    assert isinstance(controller.one(9092)[2], LeaderAndIsrRequest)


def test_what_its_former_run_did_not_answer_is_not_sent_to_the_next() -> None:
    """ "If a broker bounces ... the bounced broker may accidentally process its earlier generation's StopReplicaRequest
    sent from the active controller"."""
    controller = Controller()
    former = controller.activate(2, 9092)
    controller.tell_all(9092)
    controller.create("t", 2)
    controller.delete("t")
    left = controller.one(9092)
    assert isinstance(left[2], LeaderAndIsrRequest)
    controller.rig.pass_time(SESSION + 2_000 * MS)
    controller.rig.sync()
    epoch = controller.activate(2, 9192, incarnation=2)
    assert epoch > former
    request = controller.one(9192)
    assert isinstance(request[2], UpdateMetadataRequest)
    assert request[2].broker_epoch == epoch
    controller.answer(request)
    assert controller.tell_all(9192) == [("lead", [])]
    assert controller.requests(9092) == []


def test_a_process_that_was_away_stops_first_what_is_gone_by_now() -> None:
    controller = Controller()
    epoch = controller.activate(2, 9092)
    controller.create("gone", 2)
    controller.create("kept", 2)
    controller.tell_all(9092)
    controller.say(2, epoch, BrokerState.INACTIVE)
    controller.delete("gone")
    assert controller.tell_all(9092) == [], "it is not there"
    controller.say(2, epoch, BrokerState.ACTIVE)
    assert controller.tell_all(9092) == [
        ("delete", ["gone-0"]),
        ("update", ["gone-0"]),
        ("update", ["kept-0"]),
        ("lead", ["kept-0"]),
    ]


def test_if_too_much_waits_for_one_it_is_told_everything_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_channels, "WAITING_MAX", 4)
    controller = Controller()
    controller.activate(2, 9092)
    controller.create("gone", 2)
    controller.create("kept", 2)
    controller.tell_all(9092)
    controller.create("first", 2)
    waiting = controller.one(9092)
    controller.delete("gone")
    for name in ("a", "b", "c"):
        controller.create(name, 2)
    controller.delete("b")
    controller.answer(waiting)
    there = ["a-0", "c-0", "first-0", "kept-0"]
    assert controller.tell_all(9092) == [
        ("delete", ["gone-0"]),
        ("update", ["gone-0"]),
        ("update", there),
        ("lead", there),
    ]
    controller.create("d", 2)
    assert controller.tell_all(9092) == [("lead", ["d-0"]), ("update", ["d-0"])], "and goes on as before"


def test_what_was_on_its_way_to_one_that_went_away_is_made_up_for() -> None:
    controller = Controller()
    epoch = controller.activate(2, 9092)
    controller.create("gone", 2)
    controller.tell_all(9092)
    controller.delete("gone")
    lose_connection(controller, controller.one(9092)[0])
    controller.say(2, epoch, BrokerState.INACTIVE)
    controller.rig.pass_time(1_000 * MS)
    controller.say(2, epoch, BrokerState.ACTIVE)
    assert controller.tell_all(9092) == [("delete", ["gone-0"]), ("update", ["gone-0"]), ("update", []), ("lead", [])]


def test_when_the_lead_ends_nobody_is_told_anything_more() -> None:
    controller = Controller()
    controller.activate(2, 9092)
    connection, _, _ = controller.one(9092)
    controller.stop_leading()
    assert connection not in controller.rig.transport.open
    controller.rig.pass_time(5_000 * MS)
    assert controller.connections(9092) == []


def test_the_next_lead_tells_everything_again_as_another_controller() -> None:
    controller = Controller()
    epoch = controller.activate(2, 9092)
    controller.create("t", 2)
    controller.tell_all(9092)
    before = controller.rig.replica.raft.epoch
    controller.stop_leading()
    controller.rig.replica.request(ev.DiskRecovered(), controller.rig.now_us)
    controller.rig.lead()
    controller.rig.work()
    first = controller.one(9092)
    assert isinstance(first[2], UpdateMetadataRequest)
    assert (first[2].broker_epoch, first[2].controller_epoch) == (epoch, controller.rig.replica.raft.epoch)
    assert first[2].controller_epoch > before
    controller.answer(first)
    assert controller.tell_all(9092) == [("lead", ["t-0"])]


def test_who_follows_the_log_or_has_no_listener_for_it_is_told_nothing() -> None:
    controller = Controller()
    controller.activate(2, 9092, listener="OTHER")
    controller.register(3, 9093, version=None)
    controller.rig.pass_time(1_000 * MS)
    assert controller.rig.transport.begun == []
    role = controller.rig.replica.controller
    assert role is not None
    assert role._channels.deadline_us == -1, "nothing waits for them"


def test_where_older_brokers_are_not_heard_nobody_is_told_anything() -> None:
    controller = Controller(older_brokers=False)
    controller.register(2, 9092, version=4)
    controller.rig.pass_time(1_000 * MS)
    assert controller.rig.transport.begun == []
