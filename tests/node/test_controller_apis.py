"""What clients have brokers pass on to the controller, and what every controller refuses. KIP-590; KIP-140, KIP-48."""

from typing import Any, TypeVar

import pytest

from fastquorum.controller.image import Image
from fastquorum.node.metadata.requests import CONTROLLER_APIS, FORWARDABLE
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import API, ApiKey, ErrorCode, Message, decode_response, encode_request
from fastquorum.wire.frames import request_header
from fastquorum.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from fastquorum.wire.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from fastquorum.wire.messages.cluster import (
    EnvelopeRequest,
    EnvelopeResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from fastquorum.wire.messages.credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from fastquorum.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from fastquorum.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.node.rig import Rig
from tests.node.test_controller_role import leader, register, rig_of
from tests.wire.golden import frames

M = TypeVar("M", bound=Message)
ADDRESS = bytes((127, 0, 0, 1))
CORRELATION_ID = 77
GOLDEN_SUPPORTED = next(
    {each["name"]: (each["minVersion"], each["maxVersion"]) for each in frame.json["supportedFeatures"]}
    for frame in frames()
    if frame.api == "ApiVersions" and frame.kind == "response" and frame.version == 4
)
"""By a Kafka controller."""


def envelope(message: Message, version: int, **fields: Any) -> EnvelopeRequest:
    inner = encode_request(request_header(message, version, CORRELATION_ID, "a client"), message)
    return EnvelopeRequest(
        **{"request_data": inner, "request_principal": b"", "client_host_address": ADDRESS, **fields}
    )


def passed_on(rig: Rig, message: Message, version: int, response: type[M]) -> M:
    """The answer that a client hears from a broker."""
    connection = rig.accept()
    rig.ask(connection, envelope(message, version), 0)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, EnvelopeResponse)
    assert (answer.error_code, answer.response_data is None) == (ErrorCode.NONE, False)
    assert answer.response_data is not None
    correlation_id, inner = decode_response(answer.response_data, message.__wire__.api_key, version)
    assert correlation_id == CORRELATION_ID
    assert isinstance(inner, response)
    return inner


def image(rig: Rig) -> Image:
    role = rig.replica._controller
    assert role is not None
    assert role.state is not None
    return role.state.image


# --- passed on --------------------------------------------------------------------------------------------------------


def test_a_quota_is_set_by_way_of_a_broker_and_answered_when_that_is_committed() -> None:
    rig = leader()
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name="alice")],
                ops=[entry.OpData(key="producer_byte_rate", value=1024.0)],
            )
        ]
    )
    connection = rig.accept()
    rig.ask(connection, envelope(request, 1), 0)
    assert rig.answers(connection) == [], "nothing of it is on a disk yet"
    rig.sync()
    assert rig.answers(connection)
    answer = passed_on(rig, request, 0, AlterClientQuotasResponse)
    assert [each.error_code for each in answer.entries] == [ErrorCode.NONE]
    assert dict(image(rig).quotas[("user", "alice"),]) == {"producer_byte_rate": 1024.0}


def test_a_credential_is_set_by_way_of_a_broker() -> None:
    rig = leader()
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    upserted = upsertion(name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    request = AlterUserScramCredentialsRequest(upsertions=[upserted])
    answer = passed_on(rig, request, 0, AlterUserScramCredentialsResponse)
    assert [(each.user, each.error_code) for each in answer.results] == [("alice", ErrorCode.NONE)]
    assert list(image(rig).scram) == [(1, "alice")]


def test_a_feature_is_set_and_another_is_refused_by_way_of_a_broker() -> None:
    rig = leader()
    register(rig)
    update = UpdateFeaturesRequest.FeatureUpdateKey
    end = rig.log.end_offset
    for feature, code in (("group.version", ErrorCode.NONE), ("share.version", ErrorCode.INVALID_UPDATE_VERSION)):
        request = UpdateFeaturesRequest(feature_updates=[update(feature=feature, max_version_level=1)])
        assert passed_on(rig, request, 2, UpdateFeaturesResponse).error_code == code
    assert image(rig).features.levels["group.version"] == 1
    assert rig.log.end_offset == end + 1


def test_a_refusal_is_the_clients_to_hear() -> None:
    answer = passed_on(leader(), UnregisterBrokerRequest(broker_id=9), 0, UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_that_another_is_the_controller_is_the_brokers_to_hear() -> None:
    rig = rig_of(1, 2, 3)
    rig.follow()
    answer = rig.answer_to(EnvelopeResponse, envelope(UnregisterBrokerRequest(broker_id=9), 0), 0)
    assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (envelope(UnregisterBrokerRequest(), 0, client_host_address=b"123"), ErrorCode.INVALID_REQUEST),
        (envelope(DescribeAclsRequest(), 3), ErrorCode.INVALID_REQUEST),
        (envelope(envelope(UnregisterBrokerRequest(), 0), 0), ErrorCode.INVALID_REQUEST),
        (
            envelope(UnregisterBrokerRequest(), 0, request_data=b"\x00\x40\x00\x09" + bytes(8)),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (envelope(UnregisterBrokerRequest(), 0, request_data=b""), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_no_broker_passes_on_is_refused_and_nothing_is_written(bad: EnvelopeRequest, code: ErrorCode) -> None:
    rig = leader()
    end = rig.log.end_offset
    answer = rig.answer_to(EnvelopeResponse, bad, 0)
    assert (answer.error_code, answer.response_data) == (code, None)
    assert rig.log.end_offset == end


def test_what_is_passed_on_can_be_asked_directly_too() -> None:
    assert {*FORWARDABLE} - {ApiKey.DESCRIBE_QUORUM} < CONTROLLER_APIS
    assert {API[key].is_advertised for key in CONTROLLER_APIS} == {True}


# --- refused by every controller --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("leads", [True, False])
def test_without_an_authorizer_there_are_no_access_control_entries(leads: bool, version: int) -> None:
    rig = leader() if leads else rig_of(1, 2, 3)
    end = rig.log.end_offset
    creation = CreateAclsRequest.AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*")
    created = rig.answer_to(CreateAclsResponse, CreateAclsRequest(creations=[creation, creation]), version)
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    chosen = DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=2)
    deleted = rig.answer_to(DeleteAclsResponse, DeleteAclsRequest(filters=[chosen]), version)
    assert [(each.error_code, each.matching_acls) for each in deleted.filter_results] == [
        (ErrorCode.SECURITY_DISABLED, [])
    ]
    described = rig.answer_to(DescribeAclsResponse, DescribeAclsRequest(resource_type_filter=2), version)
    assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert described.error_message == "No authorizer is configured here."
    assert rig.log.end_offset == end


def test_nor_are_there_any_by_way_of_a_broker() -> None:
    rig = leader()
    creation = CreateAclsRequest.AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*")
    created = passed_on(rig, CreateAclsRequest(creations=[creation]), 3, CreateAclsResponse)
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED]
    chosen = DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=2)
    deleted = passed_on(rig, DeleteAclsRequest(filters=[chosen]), 3, DeleteAclsResponse)
    assert [each.error_code for each in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


TOKENS = [
    (CreateDelegationTokenRequest(), CreateDelegationTokenResponse, (1, 2, 3)),
    (RenewDelegationTokenRequest(hmac=b"h"), RenewDelegationTokenResponse, (1, 2)),
    (ExpireDelegationTokenRequest(hmac=b"h"), ExpireDelegationTokenResponse, (1, 2)),
]


@pytest.mark.parametrize(("message", "response", "versions"), TOKENS)
def test_who_has_not_said_who_they_are_get_no_token_from_anybody(
    message: Message, response: type[Any], versions: tuple[int, ...]
) -> None:
    for rig in (leader(), rig_of(1, 2, 3)):
        for version in versions:
            answer = rig.answer_to(response, message, version)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert answer.expiry_timestamp_ms == -1


@pytest.mark.parametrize(("message", "response", "versions"), TOKENS)
def test_without_a_secret_key_nobody_gets_a_token(
    message: Message, response: type[Any], versions: tuple[int, ...]
) -> None:
    rig = leader()
    end = rig.log.end_offset
    for version in versions:
        answer = passed_on(rig, message, version, response)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert rig.log.end_offset == end
    follower = rig_of(1, 2, 3)
    refused = follower.answer_to(EnvelopeResponse, envelope(message, versions[0]), 0)
    assert refused.error_code == ErrorCode.NOT_CONTROLLER


def test_whose_token_it_would_have_been_is_said() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="alice")
    answer = passed_on(leader(), request, 3, CreateDelegationTokenResponse)
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None)
    answer = passed_on(leader(), request, 3, CreateDelegationTokenResponse)
    assert (answer.principal_type, answer.principal_name) == ("User", "ANONYMOUS")


def test_all_of_them_are_offered() -> None:
    offered = {
        ApiKey.UPDATE_FEATURES,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SASL_HANDSHAKE,
    }
    assert offered <= CONTROLLER_APIS


@pytest.mark.parametrize("leads", [True, False])
def test_nobody_has_to_say_who_they_are_and_whoever_does_is_told_so(leads: bool) -> None:
    rig = leader() if leads else rig_of(1, 2, 3)
    end = rig.log.end_offset
    for version in (0, 1):
        shaken = rig.answer_to(SaslHandshakeResponse, SaslHandshakeRequest(mechanism="PLAIN"), version)
        assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    for version in (0, 1, 2):
        known = rig.answer_to(SaslAuthenticateResponse, SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version)
        assert (known.error_code, known.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
        assert known.error_message
    assert rig.log.end_offset == end


@pytest.mark.parametrize("leads", [True, False])
def test_what_only_brokers_serve_is_offered_and_refused(leads: bool) -> None:
    rig = leader() if leads else rig_of(1, 2, 3)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    user = DescribeUserScramCredentialsRequest.UserName(name="alice")
    for users, named in ((None, 0), ([user, user], 2)):
        request = DescribeUserScramCredentialsRequest(users=users)
        answer = rig.answer_to(DescribeUserScramCredentialsResponse, request, 0)
        assert (answer.error_code, [each.error_code for each in answer.results]) == (error, [error] * named)
    for version in (1, 2, 3):
        answer = rig.answer_to(DescribeDelegationTokenResponse, DescribeDelegationTokenRequest(owners=None), version)
        assert (answer.error_code, answer.tokens) == (error, [])


# --- what is for raft, and what is told to everybody ------------------------------------------------------------------


def described() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(topics=[topic(topic_name=TOPIC_NAME, partitions=[topic.PartitionData()])])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_quorum_is_described_by_way_of_a_broker_as_it_is_directly(version: int) -> None:
    rig = leader()
    answer = passed_on(rig, described(), version, DescribeQuorumResponse)
    assert answer == rig.answer_to(DescribeQuorumResponse, described(), version)
    [partition] = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
    assert [each.replica_id for each in partition.current_voters] == [1]


def test_answers_keep_their_order_whoever_gives_them() -> None:
    rig = leader()
    connection = rig.accept()
    waits = UpdateFeaturesRequest(
        feature_updates=[UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=1)]
    )
    rig.ask(connection, envelope(waits, 2), 0)
    rig.ask(connection, envelope(described(), 2), 0)
    assert rig.answers(connection) == [], "the first waits for its commit, and the second for the first"
    rig.sync()
    first, second = rig.answers(connection)
    for answer, inner in ((first, UpdateFeaturesResponse), (second, DescribeQuorumResponse)):
        assert isinstance(answer, EnvelopeResponse)
        assert answer.response_data is not None
        key = inner.__wire__.api_key
        assert isinstance(decode_response(answer.response_data, key, 2)[1], inner)


def test_a_follower_says_that_it_does_not_lead() -> None:
    rig = rig_of(1, 2, 3)
    rig.follow()
    answer = passed_on(rig, described(), 2, DescribeQuorumResponse)
    [partition] = answer.topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_api_versions_tells_the_controllers_features_as_kafka_does() -> None:
    """The names and levels of a golden controller's answer."""
    rig = leader()
    update = UpdateFeaturesRequest.FeatureUpdateKey
    request = UpdateFeaturesRequest(feature_updates=[update(feature="transaction.version", max_version_level=2)])
    rig.ask(rig.accept(), request, 2)
    before = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    assert "transaction.version" not in {each.name for each in before.finalized_features}
    rig.sync()
    answer = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    assert {each.name: (each.min_version, each.max_version) for each in answer.supported_features} == GOLDEN_SUPPORTED
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    assert finalized == image(rig).features.by_name()
    assert finalized["transaction.version"] == 2
    old = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 3)
    assert [each.name for each in old.supported_features] == ["metadata.version"], "it cannot read of a level 0"
    assert {each.name: each.max_version_level for each in old.finalized_features} == finalized
