"""The controller's requests: the function that decides each, and the form of its refusal."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fastquorum.controller import config_changes as configs
from fastquorum.controller import disabled, features, producers, quotas, scram
from fastquorum.controller.brokers import controlled_shutdowns, directories, metadata_heartbeats
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import Decision
from fastquorum.controller.partitions import elections, isr, isr_changes, more_partitions, reassignments, topics
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.placement import PlacementRandom
from fastquorum.types import Micros
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages import acls as acl_messages
from fastquorum.wire.messages import brokers as broker_messages
from fastquorum.wire.messages import cluster as cluster_messages
from fastquorum.wire.messages import configs as config_messages
from fastquorum.wire.messages import controller_heartbeat as older_messages
from fastquorum.wire.messages import credentials as credential_messages
from fastquorum.wire.messages import inter_broker as inter_broker_messages
from fastquorum.wire.messages import partitions as partition_messages
from fastquorum.wire.messages import producers as producer_messages
from fastquorum.wire.messages import quotas as quota_messages
from fastquorum.wire.messages import sasl as sasl_messages
from fastquorum.wire.messages import topics as topic_messages


def decide(
    state: ControllerState,
    message: Message,
    version: int,
    now_us: Micros,
    chance: PlacementRandom,
    *,
    is_forwarded: bool = False,
) -> Decision:
    """Return the decision on a request of DECIDED or, from an older broker, of DECIDED_FOR_OLDER. A broker may have
    forwarded it. Refused, with Kafka's error, if it changes nothing."""
    match message:
        case broker_messages.BrokerHeartbeatRequest():
            return brokers.heartbeat(state, message)
        case partition_messages.AlterPartitionRequest():
            return isr.alter_partition(state, message, version)
        case topic_messages.CreateTopicsRequest():
            return topics.create_topics(state, message, chance)
        case broker_messages.BrokerRegistrationRequest():
            return brokers.register(state, message, version, now_us)
        case broker_messages.UnregisterBrokerRequest():
            return brokers.unregister(state, message)
        case broker_messages.ControllerRegistrationRequest():
            return brokers.register_controller(state, message)
        case partition_messages.AssignReplicasToDirsRequest():
            return directories.assign_replicas(state, message)
        case producer_messages.AllocateProducerIdsRequest():
            return producers.allocate(state, message)
        case cluster_messages.UpdateFeaturesRequest():
            return features.update_features(state, message, version)
        case config_messages.IncrementalAlterConfigsRequest():
            return configs.incremental_alter_configs(state, message, is_forwarded=is_forwarded)
        case config_messages.AlterConfigsRequest():
            return configs.alter_configs(state, message, is_forwarded=is_forwarded)
        case quota_messages.AlterClientQuotasRequest():
            return quotas.alter_client_quotas(state, message)
        case credential_messages.AlterUserScramCredentialsRequest():
            return scram.alter_credentials(state, message)
        case topic_messages.DeleteTopicsRequest():
            return topics.delete_topics(state, message, version)
        case topic_messages.CreatePartitionsRequest():
            return more_partitions.create_partitions(state, message, chance)
        case partition_messages.ElectLeadersRequest():
            return elections.elect_leaders(state, message)
        case partition_messages.AlterPartitionReassignmentsRequest():
            return reassignments.alter_reassignments(state, message)
        case partition_messages.ListPartitionReassignmentsRequest():
            return reassignments.list_reassignments(state, message)
        case older_messages.MetadataHeartbeatRequest():
            return metadata_heartbeats.metadata_heartbeat(state, message, now_us)
        case older_messages.IsrChangeRequest():
            return isr_changes.change_isr(state, message)
        case inter_broker_messages.ControlledShutdownRequest():
            return controlled_shutdowns.controlled_shutdown(state, message)
    if isinstance(message, disabled.TokenRequest):
        return Decision(disabled.no_token(message, version, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
    raise AssertionError(f"{type(message).__name__} is not the controller's")


LEASES: Final = (
    broker_messages.BrokerHeartbeatRequest,
    older_messages.MetadataHeartbeatRequest,
    inter_broker_messages.ControlledShutdownRequest,
)
"""Requests that a member counts as acknowledged heartbeats unless the answer is an error: the answer lets the member
act on, and so has to keep the lease promise."""


def note_contact(state: ControllerState, message: Message, now_us: Micros) -> None:
    """Count an arrived request as contact with its broker, before the request is decided."""
    if isinstance(message, broker_messages.BrokerHeartbeatRequest | inter_broker_messages.ControlledShutdownRequest):
        state.heartbeats.touch(message.broker_id, message.broker_epoch, now_us)


def done(state: ControllerState, message: Message) -> None:
    """Finish a request whose records, if any, are in the log and in the image."""
    match message:
        case broker_messages.BrokerHeartbeatRequest():
            brokers.heartbeat_done(state, message)
        case older_messages.MetadataHeartbeatRequest():
            metadata_heartbeats.metadata_heartbeat_done(state, message)
        case inter_broker_messages.ControlledShutdownRequest():
            brokers.goes_on(state, message.broker_id)


def refused(message: Message, version: int, code: ErrorCode, text: str = "") -> Message:
    """Return a refusal: the error on top, or at each part where the response has no place for it on top."""
    match message:
        case topic_messages.CreateTopicsRequest():
            made = topic_messages.CreateTopicsResponse.CreatableTopicResult
            results = [made(name=each.name, error_code=code, error_message=text or None) for each in message.topics]
            return topic_messages.CreateTopicsResponse(topics=results)
        case topic_messages.DeleteTopicsRequest():
            gone = topic_messages.DeleteTopicsResponse.DeletableTopicResult
            by_name = [gone(name=name, error_code=code) for name in message.topic_names if version < 6]
            by_state = [gone(name=each.name, topic_id=each.topic_id, error_code=code) for each in message.topics]
            return topic_messages.DeleteTopicsResponse(responses=[*by_name, *by_state])
        case topic_messages.CreatePartitionsRequest():
            more = topic_messages.CreatePartitionsResponse.CreatePartitionsTopicResult
            refusals = [more(name=each.name, error_code=code, error_message=text or None) for each in message.topics]
            return topic_messages.CreatePartitionsResponse(results=refusals)
        case config_messages.IncrementalAlterConfigsRequest() | config_messages.AlterConfigsRequest():
            return configs.not_altered(message, code, text)
        case quota_messages.AlterClientQuotasRequest():
            return quotas.not_altered(message, code, text)
        case credential_messages.AlterUserScramCredentialsRequest():
            return scram.not_altered(message, code, text)
        case partition_messages.ElectLeadersRequest() if version == 0:  # which has no error on top
            return _not_elected(message, code, text)
        case older_messages.MetadataHeartbeatRequest():
            return older_messages.MetadataHeartbeatResponse(error_code=code, error_string=text or None)
        case older_messages.IsrChangeRequest():
            return older_messages.IsrChangeResponse(top_level_error_code=code, top_level_error_message=text or None)
        case inter_broker_messages.ControlledShutdownRequest():
            return inter_broker_messages.ControlledShutdownResponse(error_code=code)
    if isinstance(message, disabled.TokenRequest):
        return disabled.no_token(message, version, code)
    refusal = disabled.refused(message, code, text)
    if refusal is not None:
        return refusal
    answer: Any = _ANSWERS[type(message)](error_code=code)
    if text and hasattr(answer, "error_message"):
        answer.error_message = text
    return answer  # type: ignore[no-any-return]  # one of _ANSWERS


def _not_elected(message: partition_messages.ElectLeadersRequest, code: ErrorCode, text: str) -> Message:
    results = partition_messages.ElectLeadersResponse.ReplicaElectionResult
    answer = partition_messages.ElectLeadersResponse()
    for topic in message.topic_partitions or ():
        refusals = [
            results.PartitionResult(partition_id=number, error_code=code, error_message=text or None)
            for number in topic.partitions
        ]
        answer.replica_election_results.append(results(topic=topic.topic, partition_result=refusals))
    return answer


_ANSWERS: Final[Mapping[type[Message], Callable[..., Message]]] = MappingProxyType(
    {
        broker_messages.BrokerHeartbeatRequest: broker_messages.BrokerHeartbeatResponse,
        broker_messages.BrokerRegistrationRequest: broker_messages.BrokerRegistrationResponse,
        broker_messages.ControllerRegistrationRequest: broker_messages.ControllerRegistrationResponse,
        broker_messages.UnregisterBrokerRequest: broker_messages.UnregisterBrokerResponse,
        cluster_messages.UpdateFeaturesRequest: cluster_messages.UpdateFeaturesResponse,
        partition_messages.AlterPartitionRequest: partition_messages.AlterPartitionResponse,
        partition_messages.AlterPartitionReassignmentsRequest: partition_messages.AlterPartitionReassignmentsResponse,
        partition_messages.AssignReplicasToDirsRequest: partition_messages.AssignReplicasToDirsResponse,
        partition_messages.ElectLeadersRequest: partition_messages.ElectLeadersResponse,
        partition_messages.ListPartitionReassignmentsRequest: partition_messages.ListPartitionReassignmentsResponse,
        producer_messages.AllocateProducerIdsRequest: producer_messages.AllocateProducerIdsResponse,
    }
)
"""The response to each request whose response has the error on top."""
DECIDED: Final[tuple[type[Message], ...]] = (
    *_ANSWERS,
    config_messages.AlterConfigsRequest,
    config_messages.IncrementalAlterConfigsRequest,
    credential_messages.AlterUserScramCredentialsRequest,
    credential_messages.CreateDelegationTokenRequest,
    credential_messages.ExpireDelegationTokenRequest,
    credential_messages.RenewDelegationTokenRequest,
    quota_messages.AlterClientQuotasRequest,
    topic_messages.CreateTopicsRequest,
    topic_messages.DeleteTopicsRequest,
    topic_messages.CreatePartitionsRequest,
)
"""Every request that `decide` takes."""
DECIDED_FOR_OLDER: Final[tuple[type[Message], ...]] = (
    inter_broker_messages.ControlledShutdownRequest,
    older_messages.IsrChangeRequest,
    older_messages.MetadataHeartbeatRequest,
)
"""Requests of brokers of KIP-343 and KIP-380, decided where the settings allow them."""
ANSWERED_ANYWHERE: Final[tuple[type[Message], ...]] = (
    acl_messages.CreateAclsRequest,
    acl_messages.DeleteAclsRequest,
    acl_messages.DescribeAclsRequest,
    credential_messages.DescribeDelegationTokenRequest,
    credential_messages.DescribeUserScramCredentialsRequest,
    sasl_messages.SaslAuthenticateRequest,
    sasl_messages.SaslHandshakeRequest,
)
"""Requests that `answered_anywhere` always answers."""
