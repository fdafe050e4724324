"""Refusals of a Kafka controller without authorizer, token secret key and authentication, as ours is: access control
entries, delegation tokens, SASL. The image keeps the entries and tokens that others wrote.

Every controller of Kafka's offers two requests that only brokers serve: descriptions of tokens and of credentials.
Source: KIP-140, KIP-48, KIP-43; Kafka `AclApis`, `ControllerApis`, `DelegationTokenControlManager`.
"""

from typing import Final, TypeAlias

from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages import acls, credentials, sasl

TokenRequest: TypeAlias = (
    credentials.CreateDelegationTokenRequest
    | credentials.RenewDelegationTokenRequest
    | credentials.ExpireDelegationTokenRequest
)
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
        case acls.CreateAclsRequest() | acls.DeleteAclsRequest() | acls.DescribeAclsRequest():
            return refused(message, ErrorCode.SECURITY_DISABLED, "No authorizer is configured here.")
        case sasl.SaslHandshakeRequest() | sasl.SaslAuthenticateRequest():
            return refused(message, ErrorCode.ILLEGAL_SASL_STATE, "Authentication is not enabled here.")
        case credentials.DescribeDelegationTokenRequest() | credentials.DescribeUserScramCredentialsRequest():
            return refused(message, ErrorCode.UNKNOWN_SERVER_ERROR, "Brokers serve this, controllers do not.")
    if isinstance(message, TokenRequest) and not is_forwarded:
        return no_token(message, version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NEVER_MS)
    return None


def refused(message: Message, code: ErrorCode, text: str) -> Message | None:
    """Return the error for each entry to be made, for each filter, for each named user, or on top; None if it is
    another request."""
    match message:
        case acls.CreateAclsRequest():
            made = acls.CreateAclsResponse.AclCreationResult
            return acls.CreateAclsResponse(
                results=[made(error_code=code, error_message=text) for _ in message.creations]
            )
        case acls.DeleteAclsRequest():
            gone = acls.DeleteAclsResponse.DeleteAclsFilterResult
            results = [gone(error_code=code, error_message=text) for _ in message.filters]
            return acls.DeleteAclsResponse(filter_results=results)
        case acls.DescribeAclsRequest():
            return acls.DescribeAclsResponse(error_code=code, error_message=text)
        case sasl.SaslHandshakeRequest():
            return sasl.SaslHandshakeResponse(error_code=code)
        case sasl.SaslAuthenticateRequest():
            return sasl.SaslAuthenticateResponse(error_code=code, error_message=text)
        case credentials.DescribeDelegationTokenRequest():
            return credentials.DescribeDelegationTokenResponse(error_code=code)
        case credentials.DescribeUserScramCredentialsRequest():
            response = credentials.DescribeUserScramCredentialsResponse(error_code=code, error_message=text)
            result = response.DescribeUserScramCredentialsResult
            response.results = [result(error_code=code, error_message=text) for _ in message.users or ()]
            return response
    return None


def no_token(message: TokenRequest, version: int, code: ErrorCode, expiry_ms: int = 0) -> Message:
    """Return the error, and the token's owner as far as the request states it."""
    match message:
        case credentials.RenewDelegationTokenRequest():
            return credentials.RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)
        case credentials.ExpireDelegationTokenRequest():
            return credentials.ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)
        case credentials.CreateDelegationTokenRequest():
            answer = credentials.CreateDelegationTokenResponse(
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
