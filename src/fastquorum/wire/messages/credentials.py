"""What users prove themselves by: AlterUserScramCredentials, DescribeUserScramCredentials; CreateDelegationToken,
RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken.

Source: KIP-554 (SCRAM); KIP-48, KIP-373 (owners of tokens).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BYTES, INT8, INT16, INT32, INT64, STRING, array, field


class AlterUserScramCredentialsRequest(Message, api_key=51, kind="request", versions="0", flexible="0+"):
    """Remove and set SCRAM credentials."""

    class ScramCredentialDeletion(Struct):
        name: str = field(STRING, "0+")
        mechanism: int = field(INT8, "0+")

    class ScramCredentialUpsertion(Struct):
        name: str = field(STRING, "0+")
        mechanism: int = field(INT8, "0+")
        iterations: int = field(INT32, "0+")
        salt: bytes = field(BYTES, "0+")
        salted_password: bytes = field(BYTES, "0+")

    deletions: list[ScramCredentialDeletion] = field(array(ScramCredentialDeletion), "0+")
    upsertions: list[ScramCredentialUpsertion] = field(array(ScramCredentialUpsertion), "0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, kind="response", versions="0", flexible="0+"):
    """What became of each user's."""

    class AlterUserScramCredentialsResult(Struct):
        user: str = field(STRING, "0+")
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")

    throttle_time_ms: int = field(INT32, "0+")
    results: list[AlterUserScramCredentialsResult] = field(array(AlterUserScramCredentialsResult), "0+")


class DescribeUserScramCredentialsRequest(Message, api_key=50, kind="request", versions="0", flexible="0+"):
    """Ask which credentials users have."""

    class UserName(Struct):
        name: str = field(STRING, "0+")

    users: list[UserName] | None = field(array(UserName), "0+", nullable="0+")


class DescribeUserScramCredentialsResponse(Message, api_key=50, kind="response", versions="0", flexible="0+"):
    """The mechanisms and iterations of each user's."""

    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism: int = field(INT8, "0+")
            iterations: int = field(INT32, "0+")

        user: str = field(STRING, "0+")
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        credential_infos: list[CredentialInfo] = field(array(CredentialInfo), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(array(DescribeUserScramCredentialsResult), "0+")


class CreateDelegationTokenRequest(Message, api_key=38, kind="request", versions="1-3", flexible="2+"):
    """Make a delegation token."""

    class CreatableRenewers(Struct):
        principal_type: str = field(STRING, "0+")
        principal_name: str = field(STRING, "0+")

    owner_principal_type: str | None = field(STRING, "3+", nullable="3+")
    owner_principal_name: str | None = field(STRING, "3+", nullable="3+")
    renewers: list[CreatableRenewers] = field(array(CreatableRenewers), "0+")
    max_lifetime_ms: int = field(INT64, "0+")


class CreateDelegationTokenResponse(Message, api_key=38, kind="response", versions="1-3", flexible="2+"):
    """The token."""

    error_code: int = field(INT16, "0+")
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")
    token_requester_principal_type: str = field(STRING, "3+")
    token_requester_principal_name: str = field(STRING, "3+")
    issue_timestamp_ms: int = field(INT64, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    max_timestamp_ms: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")
    hmac: bytes = field(BYTES, "0+")
    throttle_time_ms: int = field(INT32, "0+")


class RenewDelegationTokenRequest(Message, api_key=39, kind="request", versions="1-2", flexible="2+"):
    """Let a token live longer."""

    hmac: bytes = field(BYTES, "0+")
    renew_period_ms: int = field(INT64, "0+")


class RenewDelegationTokenResponse(Message, api_key=39, kind="response", versions="1-2", flexible="2+"):
    """How long it lives."""

    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")


class ExpireDelegationTokenRequest(Message, api_key=40, kind="request", versions="1-2", flexible="2+"):
    """Let a token end."""

    hmac: bytes = field(BYTES, "0+")
    expiry_time_period_ms: int = field(INT64, "0+")


class ExpireDelegationTokenResponse(Message, api_key=40, kind="response", versions="1-2", flexible="2+"):
    """When it ends."""

    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")


class DescribeDelegationTokenRequest(Message, api_key=41, kind="request", versions="1-3", flexible="2+"):
    """Ask which tokens owners have."""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = field(STRING, "0+")
        principal_name: str = field(STRING, "0+")

    owners: list[DescribeDelegationTokenOwner] | None = field(array(DescribeDelegationTokenOwner), "0+", nullable="0+")


class DescribeDelegationTokenResponse(Message, api_key=41, kind="response", versions="1-3", flexible="2+"):
    """The tokens."""

    class DescribedDelegationToken(Struct):
        class DescribedDelegationTokenRenewer(Struct):
            principal_type: str = field(STRING, "0+")
            principal_name: str = field(STRING, "0+")

        principal_type: str = field(STRING, "0+")
        principal_name: str = field(STRING, "0+")
        token_requester_principal_type: str = field(STRING, "3+")
        token_requester_principal_name: str = field(STRING, "3+")
        issue_timestamp: int = field(INT64, "0+")
        expiry_timestamp: int = field(INT64, "0+")
        max_timestamp: int = field(INT64, "0+")
        token_id: str = field(STRING, "0+")
        hmac: bytes = field(BYTES, "0+")
        renewers: list[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer), "0+")

    error_code: int = field(INT16, "0+")
    tokens: list[DescribedDelegationToken] = field(array(DescribedDelegationToken), "0+")
    throttle_time_ms: int = field(INT32, "0+")
