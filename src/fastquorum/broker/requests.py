"""Builds a member's requests; decides nothing. Source: KIP-631."""

from fastquorum.broker.settings import MemberSettings
from fastquorum.controller.image.registrations import end_points_of
from fastquorum.types import NodeId, Offset
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerRegistrationRequest


def registration(settings: MemberSettings) -> BrokerRegistrationRequest:
    """Return the request for a broker epoch."""
    feature = BrokerRegistrationRequest.Feature
    return BrokerRegistrationRequest(
        broker_id=settings.broker_id,
        cluster_id=settings.cluster_id,
        incarnation_id=settings.incarnation_id,
        listeners=end_points_of(BrokerRegistrationRequest.Listener, settings.listeners),
        features=[
            feature(name=each.name, min_supported_version=each.level_min, max_supported_version=each.level_max)
            for each in settings.features
        ],
        rack=settings.rack,
        log_dirs=sorted(settings.log_dirs),
    )


def heartbeat(
    broker_id: NodeId, epoch: int, next_offset: Offset, *, wants_fence: bool, wants_to_go: bool
) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a broker of this epoch that has followed the metadata up to `next_offset`."""
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=next_offset - 1,
        want_fence=wants_fence,
        want_shut_down=wants_to_go,
    )
