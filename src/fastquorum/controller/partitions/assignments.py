"""Checks the brokers that a caller chooses for a new partition. Source: Kafka `ReplicationControlManager`, which has
the same error texts."""

from collections.abc import Sequence

from fastquorum.controller.refusals import TopicFault
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode


def check_replicas(state: ControllerState, brokers: Sequence[NodeId]) -> None:
    """Check that these are registered brokers, at least one, each once. TopicFault if not."""
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not brokers:
        raise TopicFault(code, "The manual partition assignment includes an empty replica list.")
    for broker in sorted(brokers):
        if broker not in state.image.brokers:
            text = f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            raise TopicFault(code, text)
    if len(set(brokers)) < len(brokers):
        twice = next(each for each in sorted(brokers) if list(brokers).count(each) > 1)
        raise TopicFault(code, f"The manual partition assignment includes the broker {twice} more than once.")


def check_assignment(state: ControllerState, partition_id: int, brokers: Sequence[NodeId], factor: int) -> None:
    """Check that a new partition may have these replicas that the caller chose, `factor` as the others have. TopicFault
    if not."""
    check_replicas(state, brokers)
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if len(brokers) != factor:
        raise TopicFault(
            code,
            f"The manual partition assignment includes a partition with {len(brokers)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s).",
        )
    if not any(state.is_active(broker) for broker in brokers):
        raise TopicFault(
            code,
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown.",
        )
