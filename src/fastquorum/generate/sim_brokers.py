"""The brokers of a cluster, as far as a metadata log shows them: they register, stop and come back, and propose ISRs.

Heartbeats that change nothing leave no record, so they are not simulated one by one: a running broker always counts as
in contact. Source: KIP-631, KIP-841, KIP-903.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fastquorum.controller.ids import random_id
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.instant_controller import InstantController
from fastquorum.sim.prng import Prng
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest
from fastquorum.wire.messages.partitions import AlterPartitionRequest

BROKERS_FROM: Final = 1001
RACKS: Final = ("rack-a", "rack-b", "rack-c")
FEATURES: Final = (
    ("eligible.leader.replicas.version", 0, 1),
    ("group.version", 0, 1),
    ("kraft.version", 0, 1),
    ("metadata.version", 7, 30),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
    ("transaction.version", 0, 2),
)
"""The features that brokers and controllers of 4.3 support."""
SHUTDOWN_BEATS: Final = 3
"""Heartbeats after which a broker stops even if it may not, as the last one in sync of some partition."""
_Topic = AlterPartitionRequest.TopicData
_Partition = _Topic.PartitionData


class SimulatedBrokers:
    """The brokers of one cluster."""

    def __init__(self, controller: InstantController, prng: Prng, count: int) -> None:
        self._controller = controller
        self._prng = prng
        self.ids: Final = tuple(range(BROKERS_FROM, BROKERS_FROM + count))
        self._directories = {broker_id: random_id(prng) for broker_id in self.ids}
        self._is_running = dict.fromkeys(self.ids, False)
        self._former_epochs = dict.fromkeys(self.ids, -1)

    def is_running(self, broker_id: NodeId) -> bool:
        return self._is_running[broker_id]

    def is_settled(self, broker_id: NodeId) -> bool:
        """Return whether a broker runs, and may lead."""
        return self._is_running[broker_id] and self._controller.state.is_active(broker_id)

    @property
    def are_all_settled(self) -> bool:
        """Whether all brokers are settled."""
        return all(self.is_settled(each) for each in self.ids)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Count every running broker as in contact just now, with all metadata read."""
        controller = self._controller
        brokers, heartbeats, last = controller.image.brokers, controller.state.heartbeats, controller.end_offset - 1
        for broker_id, is_running in self._is_running.items():
            broker = brokers.get(broker_id)
            if is_running and broker is not None:
                heartbeats.touch(broker_id, broker.epoch, controller.now_us)
                heartbeats.set_metadata_offset(broker_id, last)

    def start(self, broker_id: NodeId) -> None:
        """Register a new incarnation, which is fenced."""
        listener = BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"broker-{broker_id}", port=9092)
        feature = BrokerRegistrationRequest.Feature
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._controller.settings.cluster_id,
            incarnation_id=random_id(self._prng),
            listeners=[listener],
            features=[feature(name=name, min_supported_version=a, max_supported_version=b) for name, a, b in FEATURES],
            rack=RACKS[broker_id % len(RACKS)],
            log_dirs=[self._directories[broker_id]],
            previous_broker_epoch=self._former_epochs[broker_id],
        )
        self._controller.ask(request)
        self._is_running[broker_id] = True
        self.beat()

    def unfence(self, broker_id: NodeId) -> None:
        """Unfence a broker: it has read the metadata, and may lead."""
        self.beat()
        self._heartbeat(broker_id)

    def stop(self, broker_id: NodeId) -> bool:
        """Send a broker's wish to stop; return False while it still leads a partition."""
        self.beat()
        answer = self._heartbeat(broker_id, want_shut_down=True)
        if not answer.should_shut_down:
            self.beat()
            answer = self._heartbeat(broker_id, want_shut_down=True)
        if answer.should_shut_down:
            self.kill(broker_id)
            self._former_epochs[broker_id] = self._controller.image.brokers[broker_id].epoch
        return answer.should_shut_down

    def kill(self, broker_id: NodeId) -> None:
        """Kill a broker: it sends nothing any more."""
        self.beat()
        self._is_running[broker_id] = False
        self._former_epochs[broker_id] = -1

    def fence_silent(self) -> None:
        """Let the controller fence brokers that were silent for too long."""
        self.beat()
        self._controller.fence_expired()

    def is_fenced(self, broker_id: NodeId) -> bool:
        return self._controller.image.brokers[broker_id].fenced

    def _heartbeat(self, broker_id: NodeId, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self._controller.image.brokers[broker_id].epoch,
            current_metadata_offset=self._controller.end_offset - 1,
            want_shut_down=want_shut_down,
        )
        answer = self._controller.ask(request)
        assert isinstance(answer, BrokerHeartbeatResponse)
        return answer

    # --- who is in sync -----------------------------------------------------------------------------------------------

    def lagging(self, broker_id: NodeId) -> dict[NodeId, list[PartitionKey]]:
        """Return the partitions of a broker's replicas that are not in sync, by leader."""
        found: dict[NodeId, list[PartitionKey]] = {}
        for key in self._controller.state.index.in_directory(self._directories[broker_id]):
            partition = self.partition(key)
            if broker_id not in partition.isr and partition.has_leader:
                found.setdefault(partition.leader, []).append(key)
        return found

    def catch_up(self, broker_id: NodeId, keys: Iterable[PartitionKey]) -> None:
        """Let the leaders propose a broker as in sync again, each in one request."""
        if not self.is_settled(broker_id):
            return
        wanted: dict[NodeId, dict[PartitionKey, Sequence[NodeId]]] = {}
        for key in keys:
            partition = self._controller.image.topics.partition(*key)
            if partition is None or broker_id in partition.isr or broker_id not in partition.replicas:
                continue
            if partition.has_leader:
                wanted.setdefault(partition.leader, {})[key] = (*partition.isr, broker_id)
        for leader_id, isrs in wanted.items():
            self.propose(leader_id, isrs)

    def propose(self, leader_id: NodeId, isrs: Mapping[PartitionKey, Sequence[NodeId]]) -> None:
        """Let a leader propose the ISR of some of its partitions."""
        brokers, topics = self._controller.image.brokers, dict[Uuid, list[_Partition]]()
        for key, members in isrs.items():
            partition = self.partition(key)
            proposed = _Partition(
                partition_index=key.partition_id,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                new_isr_with_epochs=[
                    _Partition.BrokerState(broker_id=each, broker_epoch=brokers[each].epoch) for each in members
                ],
            )
            topics.setdefault(key.topic_id, []).append(proposed)
        request = AlterPartitionRequest(
            broker_id=leader_id,
            broker_epoch=brokers[leader_id].epoch,
            topics=[_Topic(topic_id=topic_id, partitions=proposed) for topic_id, proposed in topics.items()],
        )
        self._controller.ask(request)

    def partition(self, key: PartitionKey) -> Partition:
        """Return an existing partition."""
        found = self._controller.image.topics.partition(*key)
        assert found is not None, f"there is no partition {key}"
        return found
