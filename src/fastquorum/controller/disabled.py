"""Refusals of a Kafka controller without authorizer, token secret key and authentication, as ours is: access control
entries, delegation tokens, SASL. The image keeps the entries and tokens that others wrote.

Every controller of Kafka's offers two requests that only brokers serve: descriptions of tokens and of credentials.
Source: KIP-140, KIP-48, KIP-43; Kafka `AclApis`, `ControllerApis`, `DelegationTokenControlManager`.
"""

from typing import Final, TypeAlias

from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from fastquorum.wire.messages.credentials import (
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
from fastquorum.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

AclRequest: TypeAlias = CreateAclsRequest | DeleteAclsRequest | DescribeAclsRequest
TokenRequest: TypeAlias = CreateDelegationTokenRequest | RenewDelegationTokenRequest | ExpireDelegationTokenRequest
SaslRequest: TypeAlias = SaslHandshakeRequest | SaslAuthenticateRequest
BrokersRequest: TypeAlias = DescribeDelegationTokenRequest | DescribeUserScramCredentialsRequest
_NO_AUTHORIZER: Final = "No authorizer is configured here."
_NO_SASL: Final = "Authentication is not enabled here."
_BROKERS_KNOW: Final = "Brokers serve this, controllers do not."
_USER: Final = "User"
_ANONYMOUS: Final = "ANONYMOUS"
_REQUESTER_VERSION_MIN: Final = 3
"""The first version of CreateDelegationToken whose answer names the requester (KIP-373)."""
_NEVER_MS: Final = -1


def answered_anywhere(message: Message, version: int, *, is_forwarded: bool) -> Message | None:
    """Return the refusal of any controller, active or not; None if the request is for the active one.

    Tokens are for authenticated clients, and our listener authenticates none. A broker may have authenticated the
    client of a request that it forwards.
    """
    match message:
        case CreateAclsRequest() | DeleteAclsRequest() | DescribeAclsRequest():
            return no_acls(message, ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
        case CreateDelegationTokenRequest() | RenewDelegationTokenRequest() | ExpireDelegationTokenRequest():
            if not is_forwarded:
                return no_token(message, version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NEVER_MS)
        case SaslHandshakeRequest() | SaslAuthenticateRequest():
            return no_sasl(message, ErrorCode.ILLEGAL_SASL_STATE, _NO_SASL)
        case DescribeDelegationTokenRequest() | DescribeUserScramCredentialsRequest():
            return brokers_serve(message, ErrorCode.UNKNOWN_SERVER_ERROR, _BROKERS_KNOW)
    return None


def no_sasl(message: SaslRequest, code: ErrorCode, text: str) -> Message:
    """Return the error, and no mechanism."""
    if isinstance(message, SaslHandshakeRequest):
        return SaslHandshakeResponse(error_code=code)
    return SaslAuthenticateResponse(error_code=code, error_message=text)


def brokers_serve(message: BrokersRequest, code: ErrorCode, text: str) -> Message:
    """Return the error, on top and for each user that the request names."""
    if isinstance(message, DescribeDelegationTokenRequest):
        return DescribeDelegationTokenResponse(error_code=code)
    make_result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    results = [make_result(error_code=code, error_message=text) for _ in message.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=text, results=results)


def no_acls(message: AclRequest, code: ErrorCode, text: str) -> Message:
    """Return the error for each entry to be made, for each filter, or on top."""
    match message:
        case CreateAclsRequest():
            made = CreateAclsResponse.AclCreationResult
            return CreateAclsResponse(results=[made(error_code=code, error_message=text) for _ in message.creations])
        case DeleteAclsRequest():
            gone = DeleteAclsResponse.DeleteAclsFilterResult
            results = [gone(error_code=code, error_message=text) for _ in message.filters]
            return DeleteAclsResponse(filter_results=results)
        case DescribeAclsRequest():
            return DescribeAclsResponse(error_code=code, error_message=text)


def no_token(message: TokenRequest, version: int, code: ErrorCode, expiry_ms: int = 0) -> Message:
    """Return the error, and the token's owner as far as the request states it."""
    match message:
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)
        case ExpireDelegationTokenRequest():
            return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)
        case CreateDelegationTokenRequest():
            answer = CreateDelegationTokenResponse(
                error_code=code,
                principal_type=(message.owner_principal_name and message.owner_principal_type) or _USER,
                principal_name=message.owner_principal_name or _ANONYMOUS,
                issue_timestamp_ms=expiry_ms,
                expiry_timestamp_ms=expiry_ms,
                max_timestamp_ms=expiry_ms,
            )
            if version >= _REQUESTER_VERSION_MIN:
                answer.token_requester_principal_type = _USER
                answer.token_requester_principal_name = _ANONYMOUS
            return answer
