"""Brokers of KIP-343 and KIP-380, for the controller of the rig."""

from typing import Any

from fastquorum.controller.brokers import controlled_shutdowns, lifecycle, metadata_heartbeats
from fastquorum.controller.partitions import isr_changes
from fastquorum.controller.state.broker_info import broker_info_feature
from fastquorum.types import NodeId
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
)
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse
from tests.controller.rig import FEATURES, Controller

NEW, OLD = (2, 2), (2, 1)
"""Inter-broker protocols."""


class OlderController(Controller):
    """One that hears them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"older_brokers": True, **settings})

    def join(self, broker_id: NodeId, incarnation: int = 1, protocol: tuple[int, int] = NEW) -> int:
        """A broker with this inter-broker protocol registers; its incarnation id."""
        named = broker_info_feature(protocol)
        return self.register(
            broker_id,
            incarnation,
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in (*FEATURES, named)
            ],
        )

    def say(self, broker_id: NodeId, target: int, incarnation_id: int | None = None) -> BrokerState:
        """A MetadataHeartbeat; the state in the answer."""
        if incarnation_id is None:
            incarnation_id = self.broker(broker_id).epoch
        request = MetadataHeartbeatRequest(broker_id=broker_id, incarnation_id=incarnation_id, target_state=target)
        answer = self.decide(metadata_heartbeats.metadata_heartbeat(self.state, request, self.now_us))
        metadata_heartbeats.metadata_heartbeat_done(self.state, request)
        assert answer.error_code == 0
        return BrokerState(answer.current_state)

    def activate(self, *broker_ids: NodeId) -> None:
        """They register and are active."""
        for broker_id in broker_ids:
            self.join(broker_id)
            assert self.say(broker_id, BrokerState.ACTIVE) is BrokerState.ACTIVE

    def propose(self, *isrs: tuple[str, int, int, list[NodeId]], by: NodeId = 1, **fields: int) -> IsrChangeResponse:
        """An IsrChange: topic, partition, leader epoch and ISR of each."""
        if "incarnation_id" not in fields:
            fields["incarnation_id"] = self.broker(by).epoch
        request = IsrChangeRequest(broker_id=by, **fields)
        for name, number, leader_epoch, nodes in isrs:
            partition = request.Topic.Partition(
                leader_epoch=leader_epoch, partition_index=number, isr_nodes=list(nodes)
            )
            request.topics.append(request.Topic(topic_name=name, partitions=[partition]))
        answer: IsrChangeResponse = self.decide(isr_changes.change_isr(self.state, request))
        return answer

    def shut_down(self, broker_id: NodeId, broker_epoch: int | None = None) -> list[tuple[str, int]]:
        """A ControlledShutdown; what the broker leads still."""
        epoch = self.broker(broker_id).epoch if broker_epoch is None else broker_epoch
        request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
        answer: ControlledShutdownResponse = self.decide(controlled_shutdowns.controlled_shutdown(self.state, request))
        lifecycle.goes_on(self.state, broker_id)
        assert answer.error_code == 0
        return [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
