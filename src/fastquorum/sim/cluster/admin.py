"""A simulated administrator: it creates, grows, moves and deletes topics, requests elections, and now and then sends a
request that must be refused."""

from collections.abc import Callable, Mapping
from typing import Final

from fastquorum.controller.image.topics import Topic
from fastquorum.sim.cluster.broker import SimBroker
from fastquorum.sim.cluster.client import Client
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.cluster.topics import INTERNAL
from fastquorum.sim.host_ids import ADMIN
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.types import NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import UnregisterBrokerRequest
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest
from fastquorum.wire.messages.partitions import AlterPartitionReassignmentsRequest, ElectLeadersRequest
from fastquorum.wire.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
)

TOPICS_MAX: Final = 6
PREFERRED, UNCLEAN = 0, 1
_Created = CreateTopicsRequest.CreatableTopic


class Admin(Client):
    """The administrator of one simulated cluster."""

    def __init__(self, context: ClusterContext, brokers: Mapping[NodeId, SimBroker], prng: Prng) -> None:
        super().__init__(context.environment, ADMIN, prng)
        self._context = context
        self._brokers = brokers
        self._made = 0
        self.is_active = True

    def start(self) -> None:
        self.begin()
        self._plan()

    def _plan(self) -> None:
        every_us = self._context.session_us // 8
        self.later(self._prng.heavy_tail(every_us, 8 * every_us), self._act)

    def _act(self) -> None:
        self._plan()
        if self.is_active and not self.is_waiting:
            topics = list(self._context.metadata.image.topics.sorted())
            act = self._create if len(topics) < 2 else self._prng.pick(self._acts(len(topics)))
            act(self._prng.pick(topics) if topics else None)

    def _acts(self, count: int) -> tuple[Callable[[Topic | None], None], ...]:
        create = self._create if count < TOPICS_MAX else self._delete
        return (create, self._delete, self._grow, self._move, self._move, self._take_back, self._elect, self._configure,
                self._intrude, self._unregister)  # fmt: skip

    def _on_response(self, answer: Message | None) -> None:
        if answer is not None and getattr(answer, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self.look_elsewhere()

    # --- topics -------------------------------------------------------------------------------------------------------

    def _create(self, _: Topic | None) -> None:
        self._made += 1
        brokers = list(self._brokers)
        name = f"topic-{self._made}"
        if self._prng.randrange(2):
            topic = _Created(
                name=name,
                num_partitions=self._prng.between(1, 4),
                replication_factor=self._prng.between(1, min(3, len(brokers))),
            )
        else:
            of = _Created.CreatableReplicaAssignment
            assigned = [of(partition_index=number, broker_ids=self._replicas()) for number in range(2)]
            size = len(assigned[0].broker_ids)
            for each in assigned:
                each.broker_ids = (each.broker_ids + [b for b in brokers if b not in each.broker_ids])[:size]
            topic = _Created(name=name, num_partitions=-1, replication_factor=-1, assignments=assigned)
        self.ask(CreateTopicsRequest(topics=[topic]), 7, self._on_created)

    def _on_created(self, answer: Message | None) -> None:
        if not isinstance(answer, CreateTopicsResponse):
            return
        for each in answer.topics:
            if each.error_code == ErrorCode.NONE:
                self._context.metadata.topics.was_created(each.name, each.topic_id)
            elif each.error_code == ErrorCode.NOT_CONTROLLER:
                self.look_elsewhere()

    def _intrude(self, _: Topic | None) -> None:
        """Send requests that must be refused without a record: K62, and illegal names."""
        name = self._prng.pick((INTERNAL, INTERNAL, "no/name", "..", ""))
        self.ask(
            CreateTopicsRequest(topics=[_Created(name=name, num_partitions=1, replication_factor=1)]),
            7,
            self._on_intruded,
        )

    def _on_intruded(self, answer: Message | None) -> None:
        if isinstance(answer, CreateTopicsResponse):
            for each in answer.topics:
                if each.error_code == ErrorCode.NONE:
                    raise Violation("C15", f"a topic {each.name!r} is created on request")
                if each.error_code == ErrorCode.NOT_CONTROLLER:
                    self.look_elsewhere()

    def _delete(self, topic: Topic | None) -> None:
        if topic is not None:
            state = DeleteTopicsRequest.DeleteTopicState
            self.ask(DeleteTopicsRequest(topics=[state(name=None, topic_id=topic.id)]), 6, self._on_response)

    def _grow(self, topic: Topic | None) -> None:
        if topic is not None and len(topic.partitions) < 6:
            of = CreatePartitionsRequest.CreatePartitionsTopic
            wanted = of(name=topic.name, count=len(topic.partitions) + 1, assignments=None)
            self.ask(CreatePartitionsRequest(topics=[wanted]), 3, self._on_response)

    def _configure(self, topic: Topic | None) -> None:
        if topic is None:
            return
        of = IncrementalAlterConfigsRequest.AlterConfigsResource
        name, value = self._prng.pick(
            (
                ("min.insync.replicas", "2"),
                ("min.insync.replicas", "1"),
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
            )
        )
        change = of.AlterableConfig(name=name, config_operation=0, value=value)
        resource = of(resource_type=2, resource_name=topic.name, configs=[change])
        self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1, self._on_response)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _move(self, topic: Topic | None) -> None:
        self._reassign(topic, self._replicas())

    def _take_back(self, topic: Topic | None) -> None:
        self._reassign(topic, None)

    def _reassign(self, topic: Topic | None, target: list[NodeId] | None) -> None:
        if topic is None or not len(topic.partitions):
            return
        of = AlterPartitionReassignmentsRequest.ReassignableTopic
        number = self._prng.randrange(len(topic.partitions))
        wanted = of(name=topic.name, partitions=[of.ReassignablePartition(partition_index=number, replicas=target)])
        self.ask(AlterPartitionReassignmentsRequest(topics=[wanted]), 1, self._on_response)

    def _elect(self, topic: Topic | None) -> None:
        if topic is None or not len(topic.partitions):
            return
        number = self._prng.randrange(len(topic.partitions))
        kind = UNCLEAN if self._prng.randrange(4) == 0 else PREFERRED
        if kind == UNCLEAN:
            self._context.metadata.topics.allows_unclean((topic.id, number))
        wanted = ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[number])
        self.ask(ElectLeadersRequest(election_type=kind, topic_partitions=[wanted]), 2, self._on_response)

    def _unregister(self, _: Topic | None) -> None:
        """Unregister a broker that is down; it will come back, and register anew."""
        gone = [each.broker_id for each in self._brokers.values() if not each.is_running]
        if gone:
            self.ask(UnregisterBrokerRequest(broker_id=self._prng.pick(gone)), 0, self._on_response)

    def _replicas(self) -> list[NodeId]:
        brokers = self._prng.shuffled(list(self._brokers))
        return brokers[: self._prng.between(1, min(3, len(brokers)))]
