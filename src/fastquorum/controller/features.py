"""Finalizes features at other levels: all that a request names, or none.

Source: KIP-584, KIP-778, KIP-966, KIP-1022; Kafka `FeatureControlManager`,
`ConfigurationControlManager.updateFeatures`.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
)
from fastquorum.controller.image.registrations import Feature
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import MIN_INSYNC_REPLICAS, ControllerState
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from fastquorum.wire.records.cluster import ConfigRecord, FeatureLevelRecord
from fastquorum.wire.records.topics import PartitionChangeRecord

RESULTS_VERSION_MAX: Final = 1
"""The last version whose answer names each feature."""
ALL_FAILED: Final = "The update failed for all features since the following feature had an error: "
"""Kafka's text before a fault that is Kafka's text, too."""
_NOT_SUPPORTED: Final = (0, 0)
_DEPENDENCIES: Final[Mapping[tuple[str, int], tuple[str, int]]] = MappingProxyType(
    {(ELIGIBLE_LEADER_REPLICAS, 1): (METADATA_VERSION, 23)}
)
"""The feature that a feature needs at a level, and its lowest level."""
_EVERY_BROKER: Final = Resource(ResourceType.BROKER, "")


class UpgradeType(IntEnum):
    """The changes that a caller allows (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(state: ControllerState, request: UpdateFeaturesRequest, version: int) -> Decision:
    """Decide an UpdateFeatures. Version 0's `allow_downgrade` allows nothing, as in Kafka.

    Raises:
        Refused: INVALID_UPDATE_VERSION, and no feature is changed.
    """
    updates = {each.feature: each for each in request.feature_updates}
    wanted = {name: each.max_version_level for name, each in updates.items()}
    levels = state.finalized_features | wanted
    for name, each in updates.items():
        fault = _fault(state, name, each.max_version_level, each.upgrade_type, levels)
        if fault:
            text = f"No feature is changed: {name} cannot be set to {each.max_version_level}: {fault}."
            raise Refused(ErrorCode.INVALID_UPDATE_VERSION, text)
    raised = _raised(state, wanted)
    answer = UpdateFeaturesResponse(error_message=None)
    if version <= RESULTS_VERSION_MAX:
        make_result = UpdateFeaturesResponse.UpdatableFeatureResult
        answer.results = [make_result(feature=each.feature, error_message=None) for each in request.feature_updates]
    if request.validate_only:
        return Decision(answer)
    return Decision(answer, list(_records(state, wanted)), kraft_version=raised)


def _raised(state: ControllerState, wanted: Mapping[str, int]) -> int | None:
    """Return the kraft.version that the quorum is to have, if it changes: the quorum decides whether it can."""
    level = wanted.get(KRAFT_VERSION, state.kraft_version)
    if level == state.kraft_version:
        return None
    fault = state.fault_of_raising(level)
    if fault:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, f"{ALL_FAILED}{fault}")
    return level


def _records(state: ControllerState, wanted: Mapping[str, int]) -> Iterator[Message]:
    if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        yield from _least_isr_of_the_cluster(state)
        yield from _no_longer_eligible(state)
    for name, level in wanted.items():
        if name != KRAFT_VERSION:  # whose level is the quorum's to write
            yield FeatureLevelRecord(name=name, feature_level=level)


def _least_isr_of_the_cluster(state: ControllerState) -> Iterator[ConfigRecord]:
    """Set one least ISR for all brokers, since the eligible replicas follow from it (KIP-966)."""
    configs, name = state.image.configs, MIN_INSYNC_REPLICAS
    if name not in configs.get(_EVERY_BROKER, {}):
        value = str(state.settings.min_insync_replicas)
        yield ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=name, value=value)
    for resource, values in sorted(configs.items(), key=lambda item: item[0]):
        if resource.type == ResourceType.BROKER and resource.name and name in values:
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=None)


def _no_longer_eligible(state: ControllerState) -> Iterator[PartitionChangeRecord]:
    """Clear replicas that were eligible when the feature was disabled: they may have missed later commits. Where the
    ISR is empty they have not, since no replica has led. Kafka leaves them eligible."""
    if state.image.features.is_elr_enabled:
        return
    for topic in state.image.topics.sorted():
        for number, partition in topic.partitions.items():
            if partition.isr and (partition.elr or partition.last_known_elr):
                yield PartitionChangeRecord(
                    partition_id=number, topic_id=topic.id, eligible_leader_replicas=[], last_known_elr=[]
                )


# --- what may be ------------------------------------------------------------------------------------------------------


def _fault(state: ControllerState, name: str, level: int, upgrade_type: int, wanted: Mapping[str, int]) -> str:
    """Return why the feature cannot be set to this level, with the others as `wanted`; empty if it can."""
    present = state.finalized_features.get(name, 0)
    if upgrade_type not in tuple(UpgradeType):
        return f"upgrade type {upgrade_type} is unknown"
    if name not in SUPPORTED:
        return "there is no such feature"
    unable = _unable(state, name, level)
    if unable:
        return unable
    if level < present and upgrade_type == UpgradeType.UPGRADE:
        return f"it is {present}, and a downgrade was not requested"
    if level > present and upgrade_type != UpgradeType.UPGRADE:
        return f"it is {present}, and a downgrade was requested"
    if name == METADATA_VERSION and not state.level.loses_nothing_at(level):
        return f"it is {present}, and records may be lost on the way down, which is not supported"
    if name == KRAFT_VERSION and level < present:
        return f"it is {present}, and is never lowered"
    need, least = _DEPENDENCIES.get((name, level), (METADATA_VERSION, 0))
    return "" if wanted[need] >= least else f"it needs {need} {least}"


def _unable(state: ControllerState, name: str, level: int) -> str:
    """Return which node does not support the feature at this level, or has not stated it; empty if all do.

    In a quorum whose voters can be changed, only registered controllers count, as in Kafka.
    """
    nodes = [("This controller", SUPPORTED[name])]
    for broker_id, broker in sorted(state.image.brokers.items()):
        nodes.append((f"Broker {broker_id}", _levels(broker.features, name)))
    if state.level.has_controller_registration:
        for controller_id, controller in sorted(state.image.controllers.items()):
            if controller_id != state.node_id:
                nodes.append((f"Controller {controller_id}", _levels(controller.features, name)))
    for who, (level_min, level_max) in nodes:
        if not level_min <= level <= level_max:
            return f"{who} supports {level_min} to {level_max}" if level_max else f"{who} does not support it"
    return _unregistered(state) if state.level.has_controller_registration else ""


def _unregistered(state: ControllerState) -> str:
    """Return a voter without a registration; empty if all have registered."""
    for voter in state.static_voters:
        if voter != state.node_id and voter not in state.image.controllers:
            return f"controller {voter} has not registered, and may not support it"
    return ""


def _levels(features: Iterable[Feature], name: str) -> tuple[int, int]:
    found = next((each for each in features if each.name == name), None)
    return _NOT_SUPPORTED if found is None else (found.level_min, found.level_max)
