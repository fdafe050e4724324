"""The control requests of KIP-380 that a change of metadata needs: LeaderAndIsr, UpdateMetadata and StopReplica, each
with the epoch of the process that it is for.

A pure function of two images. Brokers that follow the metadata log get no requests; those that get them have registered
with a BrokerInfo version. Unfenced brokers count as present.

The order: first the brokers that stayed learn which failed or bounced; then each starting broker, bounced or new, gets
everything under its new epoch. A change that names a starting broker as leader or in sync goes with its start, since
before that it is not present. The KIP orders only the two halves of a bounce. Source: KIP-380; Kafka 3.9
`KafkaController.processBrokerChange`, `AbstractControllerBrokerRequestBatch`.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fastquorum.controller.image.diff import partition_changes
from fastquorum.controller.image.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker, Brokers
from fastquorum.controller.state.broker_info import broker_info_version
from fastquorum.types import Epoch, NodeId
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

LEADER_DURING_DELETE: Final = -2
"""The leader of a deleted partition in UpdateMetadata. Kafka's value."""

_Isr = LeaderAndIsrRequest.LeaderAndIsrTopicState
_Metadata = UpdateMetadataRequest.UpdateMetadataTopicState
_Stop = StopReplicaRequest.StopReplicaTopicV1


class BrokerChanges(NamedTuple):
    """Brokers that came or went between two images; ascending ids, each in at most one of the three."""

    new: tuple[NodeId, ...]
    dead: tuple[NodeId, ...]
    bounced: tuple[NodeId, ...]
    """In both images, but not the same process."""


class Sender(NamedTuple):
    """The controller that sends the requests."""

    id: NodeId
    epoch: Epoch
    listener: str
    """The name of the listener by which brokers reach each other."""


class ControlRequest(NamedTuple):
    """A request to one broker."""

    broker_id: NodeId
    message: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class _Change(NamedTuple):
    """A partition that differs between two images."""

    topic: str
    number: int
    before: Partition | None
    after: Partition | None


def broker_changes(before: Brokers, after: Brokers) -> BrokerChanges:
    """Compare two images. New: only after. Dead: only before. Bounced: both, with a higher epoch after."""
    was, now = _present(before), _present(after)
    return BrokerChanges(
        new=tuple(each for each in now if each not in was),
        dead=tuple(each for each in was if each not in now),
        bounced=tuple(each for each in now if each in was and now[each].epoch > was[each].epoch),
    )


def control_requests(before: Image, after: Image, sender: Sender) -> list[ControlRequest]:
    """Return all requests to the brokers of these images, in order; empty if nothing changed for them."""
    brokers = broker_changes(before.brokers, after.brokers)
    starting = (*brokers.bounced, *brokers.new)
    live = _present(after.brokers)
    if all(broker_info_version(each) is None for each in live.values()):
        return []  # they all read the log
    stayed = {each: broker for each, broker in live.items() if each not in starting}
    changes = list(_changes(before, after))
    with_start = [change for change in changes if _names(change, starting)]
    first = [change for change in changes if not _names(change, starting)]
    requests: list[ControlRequest] = []
    if first or brokers.dead or brokers.bounced or _moved(before.brokers, stayed):
        requests += _Batch(sender, stayed).for_all(first)
    if starting:
        batch = _Batch(sender, live)
        requests += batch.for_all(with_start, only=stayed)
        requests += batch.for_starting(list(_everything(before, after)), starting)
    return requests


def missed_requests(then: Image, after: Image, broker: Broker, sender: Sender) -> list[ControlRequest]:
    """Return the requests that remove from a broker what has gone since `then`, the last image that it received.

    The broker is still the same process: it stops the replicas that it held and forgets the other partitions. What
    exists now it is sent as a starting broker is.
    """
    gone = [
        each
        for each in _changes(then, after)
        if each.after is None or (each.before is not None and _left(each, broker.id))
    ]
    batch = _Batch(sender, _present(after.brokers))
    return list(batch.for_all(gone, only={broker.id: broker})) if gone else []


def whole_requests(then: Image, after: Image, broker: Broker, sender: Sender) -> list[ControlRequest]:
    """Return requests with everything, for a broker whose last image was `then`."""
    batch = _Batch(sender, _present(after.brokers))
    return [
        *missed_requests(then, after, broker, sender),
        *batch.for_starting(list(_everything(then, after)), (broker.id,)),
    ]


def _present(brokers: Brokers) -> dict[NodeId, Broker]:
    return {broker_id: broker for broker_id, broker in sorted(brokers.items()) if not broker.fenced}


def _moved(before: Brokers, stayed: dict[NodeId, Broker]) -> bool:
    """Return whether a broker that stayed has other listeners or another rack."""
    return any(
        before[each].listeners != broker.listeners or before[each].rack != broker.rack
        for each, broker in stayed.items()
    )


def _names(change: _Change, brokers: tuple[NodeId, ...]) -> bool:
    after = change.after
    return after is not None and any(each == after.leader or each in after.isr for each in brokers)


def _changes(before: Image, after: Image) -> Iterator[_Change]:
    """Yield the changes by topic and number. A topic that was recreated under its name is first deleted."""
    for topic, number, old, new in partition_changes(before.topics, after.topics):
        yield _Change(topic.name, number, old, new)


def _everything(before: Image, after: Image) -> Iterator[_Change]:
    """Yield every partition, changed or not."""
    for topic in after.topics.sorted():
        for number, partition in topic.partitions.items():
            yield _Change(topic.name, number, before.topics.partition(topic.id, number), partition)


class _Batch:
    """Builds the requests of one moment, with the brokers present then."""

    def __init__(self, sender: Sender, live: dict[NodeId, Broker]) -> None:
        self._sender = sender
        self._live = live

    def for_all(self, changes: list[_Change], only: dict[NodeId, Broker] | None = None) -> Iterator[ControlRequest]:
        """Yield the changes and the present brokers, for all brokers or only for these: replicas of deleted topics are
        stopped first, those that moved away last, when their successors lead."""
        for broker in (self._live if only is None else only).values():
            if broker_info_version(broker) is None:
                continue
            yield from self._stop(broker, (each for each in changes if each.after is None), deletes=True)
            mine = [each for each in changes if each.after is not None and broker.id in each.after.replicas]
            if mine:
                yield self._leader_and_isr(broker, mine)
            yield self._update_metadata(broker, changes)
            yield from self._stop(broker, (each for each in changes if _left(each, broker.id)), deletes=True)
            if broker.in_controlled_shutdown:
                behind = (each for each in changes if _fell_behind(each, broker.id))
                yield from self._stop(broker, behind, deletes=False)

    def for_starting(self, everything: list[_Change], broker_ids: Iterable[NodeId]) -> Iterator[ControlRequest]:
        """Yield everything, for starting brokers; the first LeaderAndIsr has all partitions of its broker, even if
        there are none."""
        for broker_id in broker_ids:
            broker = self._live[broker_id]
            if broker_info_version(broker) is None:
                continue
            yield self._update_metadata(broker, everything)
            held = [each for each in everything if each.after is not None and broker_id in each.after.replicas]
            yield self._leader_and_isr(broker, held)

    # --- one request --------------------------------------------------------------------------------------------------

    def _leader_and_isr(self, broker: Broker, changes: list[_Change]) -> ControlRequest:
        request = LeaderAndIsrRequest(
            controller_id=self._sender.id, controller_epoch=self._sender.epoch, broker_epoch=broker.epoch
        )
        topics: dict[str, _Isr] = {}
        leaders: dict[NodeId, None] = {}
        for name, number, before, after in changes:
            assert after is not None, "nobody leads what is gone"
            leaders[after.leader] = None
            topics.setdefault(name, _Isr(topic_name=name)).partition_states.append(
                _Isr.LeaderAndIsrPartitionState(
                    partition_index=number,
                    controller_epoch=self._sender.epoch,
                    leader=after.leader,
                    leader_epoch=after.leader_epoch,
                    isr=list(after.isr),
                    partition_epoch=after.partition_epoch,
                    replicas=list(after.replicas),
                    is_new=before is None or broker.id not in before.replicas,
                )
            )
        request.topic_states = list(topics.values())
        there = (self._live[each] for each in sorted(leaders) if each in self._live)
        request.live_leaders = [leader for each in there for leader in self._live_leader(each)]
        return ControlRequest(broker.id, request)

    def _live_leader(self, broker: Broker) -> Iterator[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]:
        listener = broker.listener(self._sender.listener)
        if listener is not None:  # else nobody can reach it
            yield LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
                broker_id=broker.id, host_name=listener.host, port=listener.port
            )

    def _update_metadata(self, broker: Broker, changes: list[_Change]) -> ControlRequest:
        request = UpdateMetadataRequest(
            controller_id=self._sender.id, controller_epoch=self._sender.epoch, broker_epoch=broker.epoch
        )
        last = {(each.topic, each.number): each for each in changes}  # of one made anew, what it is
        topics: dict[str, _Metadata] = {}
        for change in last.values():
            topics.setdefault(change.topic, _Metadata(topic_name=change.topic)).partition_states.append(
                self._metadata(change)
            )
        request.topic_states = list(topics.values())
        endpoint = UpdateMetadataRequest.UpdateMetadataBroker.UpdateMetadataEndpoint
        request.live_brokers = [
            UpdateMetadataRequest.UpdateMetadataBroker(
                id=each.id,
                endpoints=[
                    endpoint(port=at.port, host=at.host, listener=at.name, security_protocol=at.security_protocol)
                    for at in each.listeners
                ],
                rack=each.rack,
            )
            for each in self._live.values()
        ]
        return ControlRequest(broker.id, request)

    def _metadata(self, change: _Change) -> _Metadata.UpdateMetadataPartitionState:
        partition = change.before if change.after is None else change.after
        assert partition is not None, "it was not there, and is not"
        return _Metadata.UpdateMetadataPartitionState(
            partition_index=change.number,
            controller_epoch=self._sender.epoch,
            leader=LEADER_DURING_DELETE if change.after is None else partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            zk_version=partition.partition_epoch,
            replicas=list(partition.replicas),
            offline_replicas=[each for each in partition.replicas if each not in self._live],
        )

    def _stop(self, broker: Broker, changes: Iterable[_Change], *, deletes: bool) -> Iterator[ControlRequest]:
        """Yield the StopReplica; none if the broker held none of them."""
        topics: dict[str, _Stop] = {}
        for name, number, before, _ in changes:
            if before is not None and broker.id in before.replicas:
                topics.setdefault(name, _Stop(name=name)).partition_indexes.append(number)
        if topics:
            request = StopReplicaRequest(
                controller_id=self._sender.id,
                controller_epoch=self._sender.epoch,
                broker_epoch=broker.epoch,
                delete_partitions=deletes,
                topics=list(topics.values()),
            )
            yield ControlRequest(broker.id, request)


def _left(change: _Change, broker_id: NodeId) -> bool:
    """Return whether the broker's replica moved to another broker."""
    return change.after is not None and broker_id not in change.after.replicas


def _fell_behind(change: _Change, broker_id: NodeId) -> bool:
    """Return whether the broker holds a replica that is no longer in sync, under another leader."""
    before, after = change.before, change.after
    if before is None or after is None or broker_id not in after.replicas:
        return False
    return broker_id in before.isr and broker_id not in after.isr and after.has_leader
