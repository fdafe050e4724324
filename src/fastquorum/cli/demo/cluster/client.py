"""What the demo asks of a cluster's controllers, and how it looks at what they have committed."""

import time
from collections.abc import Callable
from typing import Final

from fastquorum.cli.demo.cluster.ledger import Created
from fastquorum.cli.quorum.controller_requests import ControllerClient, only
from fastquorum.client.committed import committed_fold
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import LOOK_AGAIN_S, QuorumClient
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.image import Image
from fastquorum.errors import NotReady
from fastquorum.kernels import Kernels
from fastquorum.types import NO_NODE, Endpoint, NodeId, Uuid
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

ANSWER_S: Final = 20.0
"""Within which a question is answered, and what is waited for is committed."""
_CREATE_TOPICS_VERSION: Final = 7
_HEARTBEAT_VERSION: Final = 1
_ALTER_PARTITION_VERSION: Final = 3


class ClusterClient:
    """A client of the active controller. A context manager."""

    def __init__(self, endpoints: tuple[Endpoint, ...], kernels: Kernels) -> None:
        self._client = QuorumClient(endpoints, kernels)
        self._kernels = kernels

    def __enter__(self) -> "ClusterClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def active_controller(self, former: NodeId = NO_NODE) -> NodeId:
        """Wait until a controller other than `former` leads; return its id. NotReady if none does in time."""
        deadline = Deadline(ANSWER_S)
        while True:
            self._client.forget_leader()
            leader = self._client.describe(deadline).topics[0].partitions[0].leader_id
            if leader not in (former, NO_NODE):
                return leader
            if deadline.is_over:
                raise NotReady(f"no controller takes over from controller {former}")
            time.sleep(LOOK_AGAIN_S)

    def committed(self) -> Fold:
        """Everything that is committed. NotReady."""
        return committed_fold(self._client, self._kernels, ANSWER_S)

    def wait_committed(self, is_it: Callable[[Image], bool], what: str) -> Fold:
        """Everything that is committed, once it is so. NotReady: `what` says what is not."""
        deadline = Deadline(ANSWER_S)
        while True:
            fold = self.committed()
            if is_it(fold.image):
                return fold
            if deadline.is_over:
                raise NotReady(f"after {deadline.timeout_s:g} s, {what}")
            time.sleep(LOOK_AGAIN_S)

    def create_topic(self, name: str, partitions: int, replicas: int) -> Created:
        """Create a topic, placed by the controller. UsageError if it is refused; ChangeUnknown."""
        deadline = Deadline(ANSWER_S)
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
        )
        asking = self._asking(deadline, f"topic {name} was created")
        request = CreateTopicsRequest(topics=[topic], timeout_ms=deadline.left_ms)
        answer = asking.ask(
            request, _CREATE_TOPICS_VERSION, CreateTopicsResponse, lambda response: only(response.topics).error_code
        )
        result = only(answer.topics)
        asking.check(result.error_code, result.error_message)
        return Created(result.name, result.topic_id, result.num_partitions)

    def beat(self, broker_id: NodeId, epoch: int) -> str:
        """Send a heartbeat in a broker's name, under a token it had; return Kafka's name of the error code."""
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=epoch)
        asking = self._asking(Deadline(ANSWER_S), f"broker {broker_id} was heard")
        answer = asking.ask(request, _HEARTBEAT_VERSION, BrokerHeartbeatResponse, lambda response: response.error_code)
        return error_name(answer.error_code)

    def claim_isr(self, broker_id: NodeId, epoch: int, topic_id: Uuid, number: int, former: tuple[int, int]) -> str:
        """Propose an ISR of one broker in the name of a broker that led the partition, under the leader epoch and
        partition epoch of that time; return Kafka's name of the error code."""
        leader_epoch, partition_epoch = former
        topic = AlterPartitionRequest.TopicData
        claimed = topic.PartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr_with_epochs=[topic.PartitionData.BrokerState(broker_id=broker_id, broker_epoch=epoch)],
        )
        request = AlterPartitionRequest(
            broker_id=broker_id, broker_epoch=epoch, topics=[topic(topic_id=topic_id, partitions=[claimed])]
        )
        asking = self._asking(Deadline(ANSWER_S), f"broker {broker_id} changed an ISR")
        answer = asking.ask(
            request, _ALTER_PARTITION_VERSION, AlterPartitionResponse, lambda response: response.error_code
        )
        return error_name(answer.error_code or only(only(answer.topics).partitions).error_code)

    def _asking(self, deadline: Deadline, change: str) -> ControllerClient:
        # The demo's cluster ends with the demo, whatever became of the change.
        return ControllerClient(
            self._client, deadline, change=change, look="fastquorum image", tells_interruption=False
        )
