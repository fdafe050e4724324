"""What KIP-380's controller tells its brokers when the metadata changed. Each test names the sentence that it shows."""

from fastquorum.controller.brokers.control_requests import (
    LEADER_DURING_DELETE,
    BrokerChanges,
    ControlRequest,
    Sender,
    broker_changes,
    control_requests,
    missed_requests,
)
from fastquorum.controller.image import Image
from fastquorum.controller.image.registrations import Listener, broker_record
from fastquorum.types import NodeId
from fastquorum.wire import encode
from fastquorum.wire.messages.controller_heartbeat import BrokerState
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from fastquorum.wire.records.topics import PartitionChangeRecord, RemoveTopicRecord
from tests.controller.older import OlderController
from tests.controller.rig import TOPIC_ID, uuid

SENDER = Sender(id=9, epoch=5, listener="PLAINTEXT")


class Telling(OlderController):
    """Remembers an image to tell what happened since."""

    before: Image

    def mark(self) -> None:
        self.before = self.state.image

    def requests(self) -> list[ControlRequest]:
        """Return the requests since the mark; each can be encoded."""
        requests = control_requests(self.before, self.state.image, SENDER)
        for each in requests:
            assert encode(each.message, each.message.__wire__.versions.first)
            assert (each.message.controller_id, each.message.controller_epoch) == (9, 5)
            assert each.message.broker_epoch == self.broker(each.broker_id).epoch, "who it is meant for"
        return requests

    def changes(self) -> BrokerChanges:
        return broker_changes(self.before.brokers, self.state.image.brokers)

    def bounce(self, broker_id: NodeId) -> None:
        """Its next process is there before anybody noticed that the former one went."""
        self.wait(100)
        for other in self.state.image.brokers:
            if other != broker_id and not self.broker(other).fenced:
                self.say(other, BrokerState.ACTIVE)
        self.join(broker_id, incarnation=2 + self.broker(broker_id).epoch)
        self.say(broker_id, BrokerState.ACTIVE)


def three() -> Telling:
    """Brokers 1 to 3; 1 leads t-0 and follows 2 in t-1."""
    controller = Telling()
    controller.activate(1, 2, 3)
    controller.topic([1, 2, 3], [2, 1])
    controller.mark()
    return controller


def gist(requests: list[ControlRequest]) -> list[tuple[NodeId, str, list[str]]]:
    """Return the broker, the kind and the partitions of each request."""
    found = []
    for broker_id, message in requests:
        match message:
            case StopReplicaRequest():
                names = [f"{topic.name}-{number}" for topic in message.topics for number in topic.partition_indexes]
                kind = "delete" if message.delete_partitions else "stop"
            case LeaderAndIsrRequest():
                kind = "lead"
                names = [
                    f"{each.topic_name}-{p.partition_index}"
                    for each in message.topic_states
                    for p in each.partition_states
                ]
            case UpdateMetadataRequest():
                kind = "update"
                names = [
                    f"{each.topic_name}-{p.partition_index}"
                    for each in message.topic_states
                    for p in each.partition_states
                ]
        found.append((broker_id, kind, names))
    return found


def live(sent: list[ControlRequest], at: int) -> list[NodeId]:
    """Return the live brokers that one of the requests names."""
    message = sent[at].message
    assert isinstance(message, UpdateMetadataRequest)
    return [each.id for each in message.live_brokers]


def test_new_brokers_are_those_that_were_not_there() -> None:
    """ "new brokers: brokers exist in current brokers list and do not exist in controller context" """
    controller = three()
    controller.join(4)
    assert controller.changes() == BrokerChanges((), (), ()), "it is not active yet"
    controller.say(4, BrokerState.ACTIVE)
    assert controller.changes() == BrokerChanges(new=(4,), dead=(), bounced=())


def test_dead_brokers_are_those_that_are_not_there_any_more() -> None:
    """ "dead brokers: brokers exist in controller context but do not exist in current brokers list" """
    controller = three()
    controller.say(1, BrokerState.INACTIVE)
    controller.unregister(2)
    assert controller.changes() == BrokerChanges(new=(), dead=(1, 2), bounced=())


def test_bounced_brokers_have_a_higher_generation() -> None:
    """ "bounce brokers: brokers exist in both current brokers list and controller context but have higher generation
    than the cached value in controller context" """
    controller = three()
    controller.bounce(1)
    assert controller.changes() == BrokerChanges(new=(), dead=(), bounced=(1,))


def test_nothing_is_told_of_nothing_and_of_what_is_no_brokers_business() -> None:
    controller = three()
    assert controller.requests() == []
    controller.join(4)
    assert controller.requests() == []


def test_of_a_dead_broker_those_that_stay_are_told_and_it_is_not() -> None:
    """ "dead brokers: invoke onBrokerFailure(dead brokers)" """
    controller = three()
    controller.say(1, BrokerState.INACTIVE)
    sent = controller.requests()
    assert gist(sent) == [
        (2, "lead", ["t-0", "t-1"]),
        (2, "update", ["t-0", "t-1"]),
        (3, "lead", ["t-0"]),
        (3, "update", ["t-0", "t-1"]),
    ]
    assert live(sent, 1) == live(sent, 3) == [2, 3]
    led, updated = sent[0].message, sent[1].message
    assert isinstance(led, LeaderAndIsrRequest)
    assert isinstance(updated, UpdateMetadataRequest)
    partition = controller.partition()
    state = led.topic_states[0].partition_states[0]
    assert (state.leader, state.leader_epoch, state.isr, state.replicas) == (2, 1, [2, 3], [1, 2, 3])
    assert (state.partition_epoch, state.is_new, state.controller_epoch) == (partition.partition_epoch, False, 5)
    assert [(each.broker_id, each.host_name, each.port) for each in led.live_leaders] == [(2, "h", 9092)]
    assert updated.topic_states[0].partition_states[0].offline_replicas == [1]
    assert updated.topic_states[0].partition_states[0].zk_version == partition.partition_epoch


def test_a_new_broker_is_told_everything_and_the_others_that_it_is_there() -> None:
    """ "new brokers: update broker generation in controller context for new brokers, then invoke onBrokerStartUp(new
    brokers)" """
    controller = three()
    controller.activate(4)
    sent = controller.requests()
    assert gist(sent) == [
        (1, "update", []),
        (2, "update", []),
        (3, "update", []),
        (4, "update", ["t-0", "t-1"]),
        (4, "lead", []),
    ]
    assert all(live(sent, at) == [1, 2, 3, 4] for at in range(4))


def test_of_a_bounced_broker_the_failure_comes_first_then_its_start_under_its_new_epoch() -> None:
    """ "bounced brokers: invoke onBrokerFailure(bounced brokers) first, then update broker generation in controller
    context for bounced brokers, finally invoke onBrokerStartUp(bounced brokers)" """
    controller = three()
    controller.bounce(1)
    sent = controller.requests()
    assert gist(sent) == [
        (2, "lead", ["t-0", "t-1"]),
        (2, "update", ["t-0", "t-1"]),
        (3, "lead", ["t-0"]),
        (3, "update", ["t-0", "t-1"]),
        (2, "update", []),
        (3, "update", []),
        (1, "update", ["t-0", "t-1"]),
        (1, "lead", ["t-0", "t-1"]),
    ]
    assert [live(sent, at) for at in (1, 3, 4, 5, 6)] == [[2, 3], [2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]


def test_a_restart_that_nobody_saw_is_told_even_if_no_partition_changed() -> None:
    """ "If a broker bounces very quickly, ... controller will miss the broker restart and will not send any requests to
    the broker for initialization." """
    controller = Telling()
    controller.activate(1, 2)
    controller.topic([2])
    controller.mark()
    controller.bounce(1)
    assert gist(controller.requests()) == [
        (2, "update", []),
        (2, "update", []),
        (1, "update", ["t-0"]),
        (1, "lead", []),
    ]


def test_failures_come_before_starts_and_of_these_the_bounced_before_the_new() -> None:
    controller = three()
    controller.say(3, BrokerState.INACTIVE)
    controller.bounce(2)
    controller.activate(4)
    sent = controller.requests()
    assert [(broker_id, kind) for broker_id, kind, _ in gist(sent)] == [
        (1, "lead"),
        (1, "update"),
        (1, "update"),
        (2, "update"),
        (2, "lead"),
        (4, "update"),
        (4, "lead"),
    ]
    assert [live(sent, at) for at in (1, 2)] == [[1], [1, 2, 4]]


def test_the_first_leader_and_isr_of_a_process_has_all_partitions_it_holds() -> None:
    """ "The first LeaderAndIsrRequest received by a broker after it starts up always contains all partitions hosted by
    the broker." """
    controller = three()
    controller.bounce(1)
    (mine,) = [each.message for each in controller.requests() if each.broker_id == 1 and gist([each])[0][1] == "lead"]
    assert isinstance(mine, LeaderAndIsrRequest)
    assert [p.partition_index for each in mine.topic_states for p in each.partition_states] == [0, 1]
    assert not any(p.is_new for each in mine.topic_states for p in each.partition_states)


def test_who_is_in_sync_again_by_then_is_told_of_with_its_start() -> None:
    controller = three()
    controller.bounce(1)
    controller.propose(("t", 1, controller.partition(1).leader_epoch, [2, 1]), by=2)
    assert gist(controller.requests())[:6] == [
        (2, "lead", ["t-0"]),
        (2, "update", ["t-0"]),
        (3, "lead", ["t-0"]),
        (3, "update", ["t-0"]),
        (2, "lead", ["t-1"]),
        (2, "update", ["t-1"]),
    ]


def test_a_new_topics_replicas_are_new_and_everybody_hears_of_it() -> None:
    controller = three()
    controller.topic([3], name="u", topic_id=uuid(2))
    sent = controller.requests()
    assert gist(sent) == [
        (1, "update", ["u-0"]),
        (2, "update", ["u-0"]),
        (3, "lead", ["u-0"]),
        (3, "update", ["u-0"]),
    ]
    led = sent[2].message
    assert isinstance(led, LeaderAndIsrRequest)
    assert led.topic_states[0].partition_states[0].is_new


def test_a_topic_made_anew_is_stopped_before_it_begins() -> None:
    controller = three()
    controller.write(RemoveTopicRecord(topic_id=TOPIC_ID))
    controller.topic([1], topic_id=uuid(2))
    sent = controller.requests()
    assert [each for each in gist(sent) if each[0] == 1] == [
        (1, "delete", ["t-0", "t-1"]),
        (1, "lead", ["t-0"]),
        (1, "update", ["t-0", "t-1"]),
    ]
    updated = next(each.message for each in sent if isinstance(each.message, UpdateMetadataRequest))
    assert [each.leader for each in updated.topic_states[0].partition_states] == [1, LEADER_DURING_DELETE]


def test_a_replica_that_moved_away_is_stopped_after_its_successors_lead() -> None:
    controller = three()
    moved = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[2, 3], isr=[2, 3], leader=2)
    moved.directories = list(controller.partition().directories[1:])
    controller.write(moved)
    assert [each for each in gist(controller.requests()) if each[0] == 1] == [
        (1, "update", ["t-0"]),
        (1, "delete", ["t-0"]),
    ]


def test_while_it_shuts_down_what_it_follows_is_stopped() -> None:
    """ "...the bounced broker may accidentally process its earlier generation's StopReplicaRequest sent from the active
    controller for one of its follower replicas": it is sent, with the generation it is meant for."""
    controller = three()
    controller.shut_down(1)
    assert [each for each in gist(controller.requests()) if each[0] == 1] == [
        (1, "lead", ["t-0", "t-1"]),
        (1, "update", ["t-0", "t-1"]),
        (1, "stop", ["t-0", "t-1"]),
    ]


def test_brokers_that_follow_the_log_themselves_are_told_nothing_and_told_of() -> None:
    controller = three()
    controller.start(4)
    sent = controller.requests()
    assert {each.broker_id for each in sent} == {1, 2, 3}
    assert live(sent, 0) == [1, 2, 3, 4]


def test_a_process_that_is_reached_elsewhere_is_told_of() -> None:
    controller = three()
    moved = controller.broker(1)._replace(listeners=(Listener("PLAINTEXT", "h2", 9, 0),))
    controller.write(broker_record(moved, controller.state.level))
    assert gist(controller.requests()) == [(each, "update", []) for each in (1, 2, 3)]


def test_of_a_process_that_was_away_what_it_held_and_is_gone_is_stopped() -> None:
    controller = three()
    controller.topic([1, 2], name="kept", topic_id=uuid(2))
    controller.topic([2], name="others", topic_id=uuid(3))
    then = controller.state.image
    assert missed_requests(then, then, controller.broker(1), SENDER) == []
    controller.write(RemoveTopicRecord(topic_id=TOPIC_ID), RemoveTopicRecord(topic_id=uuid(3)))
    controller.topic([3], topic_id=uuid(4))
    sent = missed_requests(then, controller.state.image, controller.broker(1), SENDER)
    assert gist(sent) == [(1, "delete", ["t-0", "t-1"]), (1, "update", ["others-0", "t-0", "t-1"])]
    updated = sent[1].message
    assert isinstance(updated, UpdateMetadataRequest)
    leaders = [each.leader for topic in updated.topic_states for each in topic.partition_states]
    assert leaders == [LEADER_DURING_DELETE] * 3
