"""What a member makes of the control requests that its gate lets through."""

from fastquorum.broker.pushed import ControlRequestReceiver, TopicPartition
from fastquorum.controller.brokers.control_requests import LEADER_DURING_DELETE
from fastquorum.controller.image.registrations import Listener
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.inter_broker import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

Topic = LeaderAndIsrRequest.LeaderAndIsrTopicState
Metadata = UpdateMetadataRequest.UpdateMetadataTopicState
Broker = UpdateMetadataRequest.UpdateMetadataBroker


def lead(*named: tuple[str, int, int], controller: int = 3, epoch: int = 40, at: int = 0) -> LeaderAndIsrRequest:
    """Return a LeaderAndIsr of (topic, leader, leader epoch), each with replicas 7 and 8; partition epoch `at`."""
    return LeaderAndIsrRequest(
        controller_id=1,
        controller_epoch=controller,
        broker_epoch=epoch,
        topic_states=[
            Topic(
                topic_name=name,
                partition_states=[
                    Topic.LeaderAndIsrPartitionState(
                        leader=leader, leader_epoch=leader_epoch, isr=[leader], replicas=[7, 8], partition_epoch=at
                    )
                ],
            )
            for name, leader, leader_epoch in named
        ],
    )


def update(
    *named: tuple[str, int], controller: int = 3, epoch: int = 40, live: tuple[int, ...] = ()
) -> UpdateMetadataRequest:
    """Return an UpdateMetadata of (topic, leader)."""
    return UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=controller,
        broker_epoch=epoch,
        topic_states=[
            Metadata(
                topic_name=name,
                partition_states=[Metadata.UpdateMetadataPartitionState(leader=leader, isr=[7], replicas=[7, 8])],
            )
            for name, leader in named
        ],
        live_brokers=[
            Broker(id=each, endpoints=[Broker.UpdateMetadataEndpoint(port=9, host="h", listener="L")]) for each in live
        ],
    )


def stop(*names: str, deletes: bool = True) -> StopReplicaRequest:
    topics = [StopReplicaRequest.StopReplicaTopicV1(name=name, partition_indexes=[0]) for name in names]
    return StopReplicaRequest(
        controller_id=1, controller_epoch=3, broker_epoch=40, delete_partitions=deletes, topics=topics
    )


def held(receiver: ControlRequestReceiver) -> dict[str, tuple[bool, int]]:
    """Whether it leads, and under which leader epoch."""
    return {each.topic: (each.is_leader, each.leader_epoch) for _, each in sorted(receiver.pushed.held.items())}


def codes(receiver: ControlRequestReceiver, request: LeaderAndIsrRequest | StopReplicaRequest) -> dict[str, int]:
    answer = receiver.act(request)
    assert isinstance(answer, LeaderAndIsrResponse | StopReplicaResponse)
    assert answer.error_code == ErrorCode.NONE
    return {each.topic_name: each.error_code for each in answer.partition_errors}


def test_it_leads_what_it_is_told_to_lead_and_follows_the_rest() -> None:
    receiver = ControlRequestReceiver(7)
    assert receiver.epoch == -1
    assert codes(receiver, lead(("a", 7, 1), ("b", 8, 2))) == {"a": 0, "b": 0}
    assert (receiver.epoch, receiver.pushed.controller_id, receiver.pushed.controller_epoch) == (40, 1, 3)
    assert held(receiver) == {"a": (True, 1), "b": (False, 2)}
    assert codes(receiver, lead(("b", 7, 3))) == {"b": 0}
    assert held(receiver) == {"a": (True, 1), "b": (True, 3)}, "what is not named is as it was"


def test_the_same_again_is_done_again_and_what_is_over_is_not() -> None:
    receiver = ControlRequestReceiver(7)
    receiver.act(lead(("a", 7, 5), at=9))
    assert codes(receiver, lead(("a", 7, 5), at=9)) == {"a": ErrorCode.NONE}
    assert codes(receiver, lead(("a", 8, 4), at=10)) == {"a": ErrorCode.STALE_CONTROLLER_EPOCH}
    assert codes(receiver, lead(("a", 8, 5), at=8)) == {"a": ErrorCode.STALE_CONTROLLER_EPOCH}
    assert held(receiver) == {"a": (True, 5)}


def test_what_it_has_no_replica_of_it_does_not_hold() -> None:
    receiver = ControlRequestReceiver(6)
    assert codes(receiver, lead(("a", 7, 1))) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert held(receiver) == {}


def test_the_first_of_a_broker_epoch_and_of_a_controllers_is_all_there_is() -> None:
    """ "The first LeaderAndIsrRequest received by a broker after it starts up always contains all partitions hosted by
    the broker." The next controller's does, too."""
    for more in ({"epoch": 50}, {"controller": 4}):
        receiver = ControlRequestReceiver(7)
        receiver.act(lead(("a", 7, 5), ("b", 7, 5)))
        receiver.act(update(("a", 7), ("b", 7)))
        assert codes(receiver, lead(("b", 8, 0), **more)) == {"b": ErrorCode.NONE}, "it may have been made anew"
        assert held(receiver) == {"b": (False, 0)}
        receiver.act(update(("b", 8), **more))
        assert [each.topic for each in receiver.pushed.partitions] == ["b"]


def test_what_is_stopped_is_held_no_more_deleted_or_not() -> None:
    receiver = ControlRequestReceiver(7)
    receiver.act(lead(("a", 7, 1), ("b", 8, 1), ("c", 8, 1)))
    assert codes(receiver, stop("a")) == {"a": ErrorCode.NONE}
    assert codes(receiver, stop("b", deletes=False)) == {"b": ErrorCode.NONE}
    assert codes(receiver, stop("never")) == {"never": ErrorCode.NONE}
    assert held(receiver) == {"c": (False, 1)}
    receiver.act(lead(("a", 7, 0)))
    assert held(receiver) == {"a": (True, 0), "c": (False, 1)}, "a topic of the same name begins anew"


def test_metadata_names_who_leads_what_is_gone_and_who_is_there() -> None:
    receiver = ControlRequestReceiver(7)
    assert receiver.act(update(("a", 7), ("b", -1), live=(7, 8))) == UpdateMetadataResponse()
    receiver.act(update(("a", LEADER_DURING_DELETE), ("never", LEADER_DURING_DELETE), live=(7,)))
    pushed = receiver.pushed
    assert {key: each.leader for key, each in pushed.partitions.items()} == {TopicPartition("b", 0): -1}
    assert [(each.id, each.listeners) for each in pushed.brokers] == [(7, (Listener("L", "h", 9, 0),))]
    assert held(receiver) == {}, "that is for clients"
