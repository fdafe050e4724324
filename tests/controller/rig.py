"""An active controller without a quorum: what it decides is in the log at once, and each image is checked (C1-C6)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fastquorum.controller.brokers import fencing
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import Decision, record_version
from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.partitions import isr
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.controller.state.index import PartitionIndex, PartitionKey
from fastquorum.kernels import SteadyBeats
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
)
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from fastquorum.wire.records.cluster import ConfigRecord, FeatureLevelRecord
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord

CLUSTER_ID = "cluster"
SECOND = 1_000_000
SESSION_S = 9
FEATURES = (("metadata.version", 7, 30), ("kraft.version", 0, 1), ("eligible.leader.replicas.version", 0, 1))


def uuid(number: int) -> Uuid:
    """One of many; none is reserved."""
    return Uuid(bytes(8) + (1 << 32 | number).to_bytes(8, "big"))


TOPIC_ID = uuid(1)


class Controller:
    """Time moves by `wait` alone."""

    def __init__(
        self,
        *,
        level: int = 30,
        elr: bool = False,
        static_voters: Sequence[NodeId] = (),
        fault_of_raising: Callable[[int], str] = lambda _: "there is no quorum",
        steady: SteadyBeats | None = None,
        **settings: Any,
    ) -> None:
        """Controller 1; of some voters that nobody can change, if there are any."""
        self.now_us = 1_000 * SECOND
        self.records: list[Message] = []
        """All that were ever written, by offset."""
        self.settings = ControllerSettings(CLUSTER_ID, **settings)
        kraft_version = 0 if static_voters else 1
        self.state = ControllerState(
            self.settings,
            EMPTY,
            0,
            kraft_version,
            self.now_us,
            node_id=1,
            static_voters=static_voters,
            fault_of_raising=fault_of_raising,
            steady=steady,
        )
        self.write(FeatureLevelRecord(name="metadata.version", feature_level=level))
        if elr:
            self.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))

    # --- time and log -------------------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        self.now_us += round(seconds * SECOND)

    def write(self, *records: Message) -> None:
        """Append them, as one batch, and see that the image may be so."""
        before = self.state.image
        self.state.applied(self.state.prepare(records))
        self.records += records
        level = self.state.image.features.metadata_version
        assert level is not None
        for record in records:
            version = record_version(record, level)
            assert decode_metadata_record(encode_metadata_record(record, version)) == (record, version)
        assert self.state.image == before.apply(records)
        check(self.state, before)

    def fail_over(self) -> None:
        """Another controller leads, with the same log."""
        image = EMPTY.apply(self.records)
        assert image == self.state.image
        self.state = ControllerState(self.settings, image, len(self.records), 1, self.now_us)

    def decide(self, decision: Decision) -> Any:
        """Its records are written; the answer."""
        self.written = decision.records
        if decision.records:
            self.write(*decision.records)
        return decision.answer

    written: Sequence[Message] = ()
    """What the last decision wrote."""

    # --- brokers ------------------------------------------------------------------------------------------------------

    def registration(self, broker_id: NodeId, incarnation: int = 1, **fields: Any) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            **{
                "broker_id": broker_id,
                "cluster_id": CLUSTER_ID,
                "incarnation_id": uuid(1000 * incarnation + broker_id),
                "listeners": [BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="h", port=9092)],
                "features": [
                    BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, low, high in FEATURES
                ],
                "log_dirs": [directory_of(broker_id)],
                **fields,
            }
        )

    def register(self, broker_id: NodeId, incarnation: int = 1, *, version: int = 4, **fields: Any) -> int:
        """A broker process registers; its epoch."""
        request = self.registration(broker_id, incarnation, **fields)
        answer = self.decide(brokers.register(self.state, request, version, self.now_us))
        assert isinstance(answer, BrokerRegistrationResponse)
        return answer.broker_epoch

    def beat(self, broker_id: NodeId, *, epoch: int | None = None, **fields: Any) -> BrokerHeartbeatResponse:
        """A heartbeat of a broker that has read everything, unless told otherwise."""
        standing = self.state.image.brokers.get(broker_id)
        if epoch is None:
            assert standing is not None
            epoch = standing.epoch
        fields.setdefault("current_metadata_offset", len(self.records) - 1)
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, **fields)
        self.state.heartbeats.touch(broker_id, epoch, self.now_us)
        answer: BrokerHeartbeatResponse = self.decide(brokers.heartbeat(self.state, request))
        brokers.heartbeat_done(self.state, request)
        return answer

    def start(self, *broker_ids: NodeId, incarnation: int = 1) -> None:
        """Brokers register and are unfenced."""
        for broker_id in broker_ids:
            self.register(broker_id, incarnation)
            assert not self.beat(broker_id).is_fenced

    def beat_all(self) -> None:
        for broker_id, broker in sorted(self.state.image.brokers.items()):
            self.beat(broker_id, want_fence=broker.fenced, want_shut_down=broker.in_controlled_shutdown)

    def fence_expired(self) -> list[NodeId]:
        """Everybody who is silent for too long, one after another."""
        fenced = []
        while records := brokers.fence_expired(self.state, self.now_us):
            self.write(*records)
            fenced.append(records[-1].broker_id)  # type: ignore[attr-defined]
        return fenced

    def unregister(self, broker_id: NodeId) -> None:
        self.decide(brokers.unregister(self.state, UnregisterBrokerRequest(broker_id=broker_id)))

    def broker(self, broker_id: NodeId) -> Broker:
        return self.state.image.brokers[broker_id]

    # --- partitions ---------------------------------------------------------------------------------------------------

    def topic(
        self,
        *assignments: Iterable[NodeId],
        name: str = "t",
        topic_id: Uuid = TOPIC_ID,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """A topic whose replicas are all in sync, each partition led by its first; configurations by name with `_` for
        each dot."""
        records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
        for key, value in configs.items():
            records.append(ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value))
        for number, assignment in enumerate(assignments):
            replicas = list(assignment)
            records.append(
                PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory_of(each) for each in replicas] if self.state.level.has_directories else [],
                )
            )
        self.write(*records)

    def partition(self, number: int = 0, topic_id: Uuid = TOPIC_ID) -> Partition:
        found = self.state.image.topics.partition(topic_id, number)
        assert found is not None
        return found

    def alter(self, new_isr: Iterable[NodeId], *, version: int = 3, **fields: Any) -> AlterPartitionResponse:
        """The leader of a partition, 0 unless named, proposes an ISR, with the epochs that stand, unless told
        otherwise."""
        number = fields.pop("partition_index", 0)
        partition = self.state.image.topics.partition(TOPIC_ID, number) or self.partition()
        change = AlterPartitionRequest.TopicData.PartitionData(
            partition_index=number,
            leader_epoch=fields.pop("leader_epoch", partition.leader_epoch),
            partition_epoch=fields.pop("partition_epoch", partition.partition_epoch),
            leader_recovery_state=fields.pop("recovery", 0),
        )
        epochs = fields.pop("epochs", {})
        if version < 3:
            change.new_isr = list(new_isr)
        else:
            change.new_isr_with_epochs = [
                change.BrokerState(broker_id=each, broker_epoch=epochs.get(each, self._epoch(each))) for each in new_isr
            ]
        broker_id = fields.pop("broker_id", partition.leader)
        request = AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=fields.pop("broker_epoch", self._epoch(broker_id)),
            topics=[AlterPartitionRequest.TopicData(topic_id=fields.pop("topic_id", TOPIC_ID), partitions=[change])],
        )
        assert not fields, fields
        answer: AlterPartitionResponse = self.decide(isr.alter_partition(self.state, request, version))
        return answer

    def _epoch(self, broker_id: NodeId) -> int:
        broker = self.state.image.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch


def directory_of(broker_id: NodeId) -> Uuid:
    return uuid(500 + broker_id)


def refusal(action: Callable[[], object]) -> ErrorCode:
    """With what a request is refused as a whole."""
    try:
        action()
    except Refused as refused:
        return refused.code
    raise AssertionError("it was not refused")


def check(state: ControllerState, before: Image) -> None:
    """The invariants that hold after every batch, whatever it was."""
    image = state.image
    elr = image.features.is_elr_enabled
    for topic in image.topics.sorted():
        for number, partition in topic.partitions.items():
            name = f"{topic.name}-{number}"
            if partition.has_leader:
                leader = image.brokers.get(partition.leader)
                assert partition.leader in partition.isr, f"C1: {name} is led from outside its ISR"
                assert leader is not None, f"C1: {name} is led by a stranger"
                assert leader.is_active, f"C1: a fenced or leaving broker leads {name}"
            assert set(partition.isr) <= set(partition.replicas), f"C2: {name}"
            assert partition.isr or elr or partition.elr, f"C2: the ISR of {name} is empty, and nobody was eligible"
            assert len(set(partition.replicas)) == len(partition.replicas) > 0, f"C2: {name}"
            assert not set(partition.isr) & set(partition.elr), f"{name}: in the ISR and eligible"
            assert set(partition.elr) <= set(partition.replicas), f"C9: {name}: eligible without a replica"
            was = before.topics.partition(topic.id, number)
            if was is not None and was != partition:
                assert partition.partition_epoch > was.partition_epoch, f"C5: {name}"
                assert partition.leader_epoch >= was.leader_epoch + (partition.leader != was.leader), f"C5: {name}"
                for member in set(partition.isr) - set(was.isr):
                    assert image.brokers[member].is_active, f"C3: {member} entered the ISR of {name}"
    for broker_id, broker in image.brokers.items():
        former = before.brokers.get(broker_id)
        assert former is None or former.epoch <= broker.epoch, f"C4: {broker_id}"
        if former is not None and former.incarnation_id == broker.incarnation_id:
            assert former.epoch == broker.epoch, f"C4: {broker_id} has a new epoch, and is the same"
    anew = PartitionIndex(lambda: image.topics)
    for broker_id in (*image.brokers, -1):
        for of_broker in (
            PartitionIndex.in_sync,
            PartitionIndex.led,
            PartitionIndex.eligible,
            PartitionIndex.leaderless_on,
        ):
            assert set(of_broker(state.index, broker_id)) == set(of_broker(anew, broker_id)), of_broker.__name__
    for which in ("leaderless", "imbalanced", "moving"):
        assert set(getattr(state.index, which)()) == set(getattr(anew, which)()), which


def key(number: int = 0, topic_id: Uuid = TOPIC_ID) -> PartitionKey:
    return PartitionKey(topic_id, number)


__all__ = ["Controller", "fencing", "key", "refusal", "uuid"]
