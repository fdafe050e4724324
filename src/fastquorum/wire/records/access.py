"""Metadata records of security: delegation tokens, SCRAM credentials, access control entries.

Keys and versions as in Kafka 4.3. Source: KIP-631; KIP-801 (ACLs), KIP-900 (SCRAM), KIP-48 (tokens).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.types import BYTES, INT8, INT32, INT64, STRING, UUID, array, field


class DelegationTokenRecord(Message, api_key=10, kind="metadata", versions="0", flexible="0+"):
    """A delegation token was made or renewed."""

    owner: str = field(STRING, "0+")
    requester: str = field(STRING, "0+")
    renewers: list[str] = field(array(STRING), "0+")
    issue_timestamp: int = field(INT64, "0+")
    max_timestamp: int = field(INT64, "0+")
    expiration_timestamp: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")


class RemoveDelegationTokenRecord(Message, api_key=26, kind="metadata", versions="0", flexible="0+"):
    """A delegation token is gone."""

    token_id: str = field(STRING, "0+")


class UserScramCredentialRecord(Message, api_key=11, kind="metadata", versions="0", flexible="0+"):
    """A user's SCRAM credential was set."""

    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")
    salt: bytes = field(BYTES, "0+")
    stored_key: bytes = field(BYTES, "0+")
    server_key: bytes = field(BYTES, "0+")
    iterations: int = field(INT32, "0+")


class RemoveUserScramCredentialRecord(Message, api_key=22, kind="metadata", versions="0", flexible="0+"):
    """A user's SCRAM credential is gone."""

    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")


class AccessControlEntryRecord(Message, api_key=18, kind="metadata", versions="0", flexible="0+"):
    """An access control entry was made."""

    id: Uuid = field(UUID, "0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "0+")
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class RemoveAccessControlEntryRecord(Message, api_key=19, kind="metadata", versions="0", flexible="0+"):
    """An access control entry is gone."""

    id: Uuid = field(UUID, "0+")
