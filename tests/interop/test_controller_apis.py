"""A controller of ours offers what one of Kafka's does, but for what is said here, and refuses what neither serves."""

from collections.abc import Iterator
from typing import Final

import pytest

from fastquorum.controller.config_changes import Operation
from fastquorum.controller.image.configs import ResourceType
from fastquorum.wire import ApiKey, ErrorCode, Message
from fastquorum.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from fastquorum.wire.messages.credentials import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from .alike import Side, Sides, both
from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NOT_OFFERED: Final = {
    ApiKey.ADD_RAFT_VOTER: "the voter set cannot be changed yet",
    ApiKey.REMOVE_RAFT_VOTER: "the voter set cannot be changed yet",
}
OURS_ONLY: Final = {
    ApiKey.LIST_OFFSETS: "the log is shown to consumers as a topic",
    ApiKey.METADATA: "the log is shown to consumers as a topic",
    ApiKey.FIND_COORDINATOR: "consumers of the log that ask for a group are told that there is none",
}


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with both(kafka, tmp_path_factory.mktemp("apis")) as started:
        yield started


def offered(side: Side) -> dict[ApiKey, tuple[int, int]]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    keys = side.ask(request, 4, ApiVersionsResponse).api_keys
    return {ApiKey(each.api_key): (each.min_version, each.max_version) for each in keys}


def test_what_is_offered_and_in_which_versions_is_the_same_but_for_what_has_a_reason(sides: Sides) -> None:
    theirs, ours = sides.ask(offered)
    assert theirs.keys() - ours.keys() == NOT_OFFERED.keys()
    assert ours.keys() - theirs.keys() == OURS_ONLY.keys()
    assert {key: ours[key] for key in ours if key in theirs} == {key: theirs[key] for key in theirs if key in ours}


USER: Final = DescribeUserScramCredentialsRequest.UserName(name="alice")


@pytest.mark.parametrize(
    ("message", "versions", "answer", "error"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), (0, 1), SaslHandshakeResponse, ErrorCode.ILLEGAL_SASL_STATE),
        (
            SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"),
            (0, 1, 2),
            SaslAuthenticateResponse,
            ErrorCode.ILLEGAL_SASL_STATE,
        ),
        (
            DescribeUserScramCredentialsRequest(users=[USER, USER]),
            (0,),
            DescribeUserScramCredentialsResponse,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
        (
            DescribeDelegationTokenRequest(owners=None),
            (1, 2, 3),
            DescribeDelegationTokenResponse,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
    ],
)
def test_what_no_controller_serves_is_refused_alike(
    sides: Sides, message: Message, versions: tuple[int, ...], answer: type[Message], error: ErrorCode
) -> None:
    for version in versions:
        theirs, ours = sides.ask(lambda side, version=version: side.ask(message, version, answer))
        assert (ours.error_code, theirs.error_code) == (error, error)
        assert _without_words(ours) == _without_words(theirs)


def _without_words(answer: Message) -> Message:
    for each in (answer, *getattr(answer, "results", ())):
        if hasattr(each, "error_message"):
            each.error_message = None
    return answer


LOGGER: Final = ResourceType.BROKER_LOGGER


@pytest.mark.parametrize("name", ["1", "2", "", "one"])
@pytest.mark.parametrize("operation", [None, *Operation])
def test_the_levels_of_loggers_that_are_not_there_are_refused_alike(
    sides: Sides, name: str, operation: int | None
) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = (
        []
        if operation is None
        else [resource.AlterableConfig(name="no.such", config_operation=operation, value="INFO")]
    )
    one_by_one = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=LOGGER, resource_name=name, configs=changes)]
    )
    theirs, ours = sides.ask(lambda side: side.ask(one_by_one, 1, IncrementalAlterConfigsResponse).responses)
    assert [each.error_code for each in ours] == [each.error_code for each in theirs]
    replaced = AlterConfigsRequest.AlterConfigsResource
    values = [] if operation is None else [replaced.AlterableConfig(name="no.such", value="INFO")]
    as_a_whole = AlterConfigsRequest(resources=[replaced(resource_type=LOGGER, resource_name=name, configs=values)])
    theirs, ours = sides.ask(lambda side: side.ask(as_a_whole, 2, AlterConfigsResponse).responses)
    assert [each.error_code for each in ours] == [each.error_code for each in theirs]
