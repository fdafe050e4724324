"""A simulated broker: it registers, sends heartbeats, and proposes ISRs where it leads; now and then it sends what a
zombie would. It checks the answers of the controllers.

Its metadata lags behind the committed log, and grows only while it is in contact with a controller.
Source: KIP-631, KIP-841, KIP-903; Kafka `BrokerLifecycleManager`, `AlterPartitionManager`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.sim.cluster.client import Client
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.environment import CLUSTER_ID
from fastquorum.sim.host_ids import BROKERS_FROM, IMPOSTORS_FROM
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.types import Micros, NodeId, Offset, Uuid
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse

NO_EPOCH: Final = -1
AHEAD: Final = 1_000
"""How far a request's epoch is ahead of all that controllers have decided."""
_Topic = AlterPartitionRequest.TopicData
_Partition = _Topic.PartitionData
FEATURES: Final = (
    ("metadata.version", 7, 30),
    ("kraft.version", 0, 1),
    ("group.version", 0, 1),
    ("eligible.leader.replicas.version", 0, 1),
)
_NOT_NOW: Final = (
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""Error codes after which it registers again."""


class SimBroker(Client):
    """One broker id through all its lives."""

    def __init__(
        self,
        context: ClusterContext,
        brokers: Mapping[NodeId, "SimBroker"],
        broker_id: NodeId,
        prng: Prng,
        let_go: Callable[["SimBroker"], None],
        *,
        is_impostor: bool = False,
    ) -> None:
        """Make one of `brokers`; an impostor has the id of one, and no part in replication. `let_go` is called when the
        controllers let it stop."""
        number = (IMPOSTORS_FROM if is_impostor else BROKERS_FROM) + broker_id
        super().__init__(context.environment, number, prng)
        self.broker_id = broker_id
        self.epoch = NO_EPOCH
        self.is_mute = False
        """Whether it sends nothing, though it lives."""
        self.is_slow = False
        """Whether it reads the metadata late."""
        self.is_stopping = False
        self._is_impostor = is_impostor
        self._context = context
        self._brokers = brokers
        self._let_go = let_go
        self._beat_us = context.session_us // 4
        self._view_end: Offset = 0
        self._former_epoch = NO_EPOCH

    @property
    def incarnation_id(self) -> Uuid:
        return self._id_of(self.incarnation)

    def start(self) -> None:
        assert not self.is_running
        self.begin()
        self._former_epoch, self.epoch = self.epoch, NO_EPOCH
        self.is_stopping = self.is_mute = False
        self._view_end = 0
        self.note(f"broker {self.broker_id} starts life {self.incarnation}")
        self.later(self._prng.randrange(self._beat_us), self._beat)

    def start_after(self, wait_us: Micros) -> None:
        """Start it again after a while, unless it is started before."""

        def act() -> None:
            if not self.is_running:
                self.start()

        self._environment.scheduler.after(wait_us, act)

    def stop(self) -> None:
        """Begin a controlled shutdown; it ends when the controller lets the broker stop."""
        self.is_stopping = True
        self.note("wants to shut down")

    # --- what it says -------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        self.later(self._prng.between(self._beat_us * 3 // 4, self._beat_us), self._beat)
        if self.is_mute or self.is_waiting:
            return
        if self.epoch == NO_EPOCH:
            self._register()
            return
        self._heartbeat()
        if not self._is_impostor and not self.is_stopping:
            self._propose()

    def _register(self) -> None:
        feature, listener = BrokerRegistrationRequest.Feature, BrokerRegistrationRequest.Listener
        is_lost = self._prng.randrange(8) == 0
        request = BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id="another-cluster-000000" if is_lost else CLUSTER_ID,
            incarnation_id=self.incarnation_id,
            listeners=[listener(name="PLAINTEXT", host=f"broker-{self.broker_id}", port=9092)],
            features=[feature(name=name, min_supported_version=a, max_supported_version=b) for name, a, b in FEATURES],
            log_dirs=[self._directory],
            previous_broker_epoch=self._former_epoch if self._prng.randrange(2) else -1,
        )
        self.ask(request, 4, lambda answer: self._on_registered(answer, is_lost=is_lost))

    def _on_registered(self, answer: Message | None, *, is_lost: bool) -> None:
        if not isinstance(answer, BrokerRegistrationResponse):
            return
        code = answer.error_code
        if code == ErrorCode.NOT_CONTROLLER:
            self.look_elsewhere()
        elif is_lost and code != ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise Violation("C7", f"a broker of another cluster is told {code}, not refused", self.broker_id)
        elif code == ErrorCode.NONE:
            self._context.metadata.was_registered(self.broker_id, answer.broker_epoch, self.incarnation_id)
            self.epoch = answer.broker_epoch
            self.note(f"has epoch {self.epoch}")
            if 0 <= self._former_epoch != self.epoch and self._prng.randrange(2):
                self._say_what_a_zombie_says()
        elif code not in _NOT_NOW:
            raise Violation("C7", f"its registration is refused with {code}", self.broker_id)

    def _say_what_a_zombie_says(self) -> None:
        """Send a heartbeat of its former life, as if that had not ended."""
        request = BrokerHeartbeatRequest(broker_id=self.broker_id, broker_epoch=self._former_epoch)

        def on_response(answer: Message | None) -> None:
            if isinstance(answer, BrokerHeartbeatResponse):
                code = answer.error_code
                if code not in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER):
                    raise Violation("C6", f"a heartbeat of a former epoch is told {code}", self.broker_id)

        self.ask(request, 2, on_response)

    def _heartbeat(self) -> None:
        wants_fence = self._context.has_faults and not self.is_stopping and self._prng.randrange(40) == 0
        request = BrokerHeartbeatRequest(
            broker_id=self.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._view_end - 1,
            want_fence=wants_fence,
            want_shut_down=self.is_stopping,
        )
        self._context.metadata.registrations.beats(request)
        self.ask(request, 2, self._on_heartbeat)

    def _on_heartbeat(self, answer: Message | None) -> None:
        if not isinstance(answer, BrokerHeartbeatResponse):
            return
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            self.look_elsewhere()
        elif answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            self.epoch = NO_EPOCH  # somebody unregistered it, or took its id: it asks who it is
        elif answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
            pass  # a leader that waits for its quorum has no room for more
        elif answer.error_code != ErrorCode.NONE:
            raise Violation("C6", f"its heartbeat is refused with {answer.error_code}", self.broker_id)
        elif answer.should_shut_down:
            self._context.metadata.check_let_go(self.broker_id, self.epoch)
            self.note("is let go")
            self.die()
            self._let_go(self)
        else:
            self._read_on()

    def _read_on(self) -> None:
        """Read the metadata, but not the last of it, since a controller is in contact."""
        metadata = self._context.metadata
        lag_us = self._prng.randrange(4 * self._beat_us) if self.is_slow else self._prng.randrange(50_000)
        self._view_end = max(self._view_end, metadata.end_at(self._environment.now_us - lag_us))

    # --- where it leads -----------------------------------------------------------------------------------------------

    def _propose(self) -> None:
        """Send one request with every partition whose ISR should change, by its own metadata."""
        image = self._context.metadata.image_at(self._view_end)
        topics = []
        for topic_id, topic in sorted(image.topics.by_id.items()):
            proposals = [
                self._proposal(image, topic_id, number, partition)
                for number, partition in topic.partitions.items()
                if partition.leader == self.broker_id
            ]
            if wanted := [each for each in proposals if each is not None]:
                topics.append(_Topic(topic_id=topic_id, partitions=wanted))
        if topics:
            request = AlterPartitionRequest(broker_id=self.broker_id, broker_epoch=self.epoch, topics=topics)
            self.ask(request, 3, lambda answer: self._on_proposed(request, answer))

    def _proposal(self, image: Image, topic_id: Uuid, number: int, partition: Partition) -> _Partition | None:
        members = [self.broker_id, *self._in_sync(image, partition)]
        if set(members) == set(partition.isr):
            return None
        epochs = {each: self._epoch_of(each) for each in members}
        state = _Partition.BrokerState
        request = _Partition(
            partition_index=number,
            leader_epoch=partition.leader_epoch + AHEAD * (self._prng.randrange(16) == 0),
            partition_epoch=partition.partition_epoch + AHEAD * (self._prng.randrange(16) == 0),
            new_isr_with_epochs=[state(broker_id=each, broker_epoch=epochs[each]) for each in sorted(members)],
        )
        self._context.metadata.topics.proposes(topic_id, number, partition, epochs)
        return request

    def _in_sync(self, image: Image, partition: Partition) -> Iterator[NodeId]:
        """Return the followers that fetch; in one of eight calls ineligible ones, too."""
        for each in partition.replicas:
            if each == self.broker_id or not self._fetches(each):
                continue
            registered = image.brokers.get(each)
            is_eligible = registered is not None and registered.is_active
            if is_eligible or self._prng.randrange(8) == 0:
                yield each

    def _fetches(self, broker_id: NodeId) -> bool:
        """Return whether this broker's replicas follow their leaders now."""
        broker = self._brokers.get(broker_id)
        return broker is not None and broker.is_running and broker.epoch >= 0 and not broker.is_mute

    def _epoch_of(self, broker_id: NodeId) -> int:
        """Return the broker epoch of a replica's last Fetch; now and then that of its former life."""
        broker = self._brokers[broker_id]
        is_late = broker is not self and self._prng.randrange(6) == 0
        return broker._former_epoch if is_late and broker._former_epoch >= 0 else broker.epoch

    def _on_proposed(self, request: AlterPartitionRequest, answer: Message | None) -> None:
        if not isinstance(answer, AlterPartitionResponse):
            return
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            self.look_elsewhere()
            return
        if answer.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT):
            return
        results = {(topic.topic_id, each.partition_index): each for topic in answer.topics for each in topic.partitions}
        for topic in request.topics:
            for proposed in topic.partitions:
                got = results[topic.topic_id, proposed.partition_index].error_code
                is_ahead = max(proposed.leader_epoch, proposed.partition_epoch) >= AHEAD
                gone = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if is_ahead and got != ErrorCode.NOT_CONTROLLER and got not in gone:
                    raise Violation("C6", f"a proposal ahead of the controller is told {got}", self.broker_id)
                if got == ErrorCode.NONE:
                    self._context.metadata.was_altered(topic.topic_id, proposed)

    # --- inner --------------------------------------------------------------------------------------------------------

    @property
    def _directory(self) -> Uuid:
        return Uuid(b"\x01\xd1" + self.broker_id.to_bytes(14, "big"))

    def _id_of(self, incarnation: int) -> Uuid:
        return Uuid(bytes([self._is_impostor + 1]) + self.broker_id.to_bytes(7, "big") + incarnation.to_bytes(8, "big"))
