"""What a Kafka controller refuses that was started without an authorizer and without a secret key for tokens, as ours
is: access control entries and delegation tokens. The image keeps those that others wrote.

Source: KIP-140, KIP-48; Kafka `AclApis`, `ControllerApis.allowTokenRequests`, `DelegationTokenControlManager`.
"""

from typing import Final, TypeAlias

from fastquorum.wire.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from fastquorum.wire.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message

AclRequest: TypeAlias = CreateAclsRequest | DeleteAclsRequest | DescribeAclsRequest
TokenRequest: TypeAlias = CreateDelegationTokenRequest | RenewDelegationTokenRequest | ExpireDelegationTokenRequest
_NO_AUTHORIZER: Final = "No authorizer is configured here."
_USER: Final = "User"
_ANONYMOUS: Final = "ANONYMOUS"
_REQUESTER_VERSION_MIN: Final = 3
"""The first CreateDelegationToken whose answer names who asked (KIP-373)."""
_NEVER_MS: Final = -1


def answered_anywhere(message: Message, version: int, *, is_forwarded: bool) -> Message | None:
    """The refusal that every controller answers with, the active one or not; None if this is for the active one.

    Tokens are for those who have said who they are, which on our listener nobody can: it asks nobody. A broker may
    have asked, and passes on whose request it is.
    """
    match message:
        case CreateAclsRequest() | DeleteAclsRequest() | DescribeAclsRequest():
            return no_acls(message, ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
        case CreateDelegationTokenRequest() | RenewDelegationTokenRequest() | ExpireDelegationTokenRequest():
            if not is_forwarded:
                return no_token(message, version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NEVER_MS)
    return None


def no_acls(message: AclRequest, code: ErrorCode, text: str) -> Message:
    """The error at each entry to be made or filter, or on top."""
    match message:
        case CreateAclsRequest():
            made = CreateAclsResponse.AclCreationResult
            return CreateAclsResponse(results=[made(error_code=code, error_message=text) for _ in message.creations])
        case DeleteAclsRequest():
            gone = DeleteAclsResponse.DeleteAclsFilterResult
            told = [gone(error_code=code, error_message=text) for _ in message.filters]
            return DeleteAclsResponse(filter_results=told)
        case DescribeAclsRequest():
            return DescribeAclsResponse(error_code=code, error_message=text)


def no_token(message: TokenRequest, version: int, code: ErrorCode, expiry_ms: int = 0) -> Message:
    """The error, and, as far as it was said, whose token it would have been."""
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
