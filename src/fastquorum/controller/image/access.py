"""Access control entries, SCRAM credentials, delegation tokens: the image only keeps them and writes them again.

Source: KIP-801, KIP-900, KIP-48; Kafka `AclsImage`, `ScramImage`, `DelegationTokenImage`.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from immutables import Map

from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.access import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class Acl(NamedTuple):
    """An access control entry; each field has Kafka's number."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramCredential(NamedTuple):
    """A credential that verifies a user's password without holding it (RFC 5802)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"  # the rest is secret


class DelegationToken(NamedTuple):
    """A token's owner and times; the token itself is not stored."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


T = TypeVar("T", Acl, ScramCredential, DelegationToken)
Acls = Map[Uuid, Acl]
Scram = Map[tuple[int, str], ScramCredential]
"""Credentials by (mechanism, user): 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
Tokens = Map[str, DelegationToken]


def _read(kind: type[T], record: Message) -> T:
    """Return the value whose fields the record has under the same names."""
    return kind._make(getattr(record, name) for name in kind._fields)


def add_acl(acls: Acls, record: AccessControlEntryRecord) -> Acls:
    return acls.set(record.id, _read(Acl, record))


def remove_acl(acls: Acls, record: RemoveAccessControlEntryRecord) -> Acls:
    """Remove an entry. ValueError if there is no such entry."""
    if record.id not in acls:
        raise ValueError(f"there is no access control entry {record.id}")
    return acls.delete(record.id)


def set_scram(scram: Scram, record: UserScramCredentialRecord) -> Scram:
    return scram.set((record.mechanism, record.name), _read(ScramCredential, record))


def remove_scram(scram: Scram, record: RemoveUserScramCredentialRecord) -> Scram:
    key = record.mechanism, record.name
    return scram.delete(key) if key in scram else scram


def set_token(tokens: Tokens, record: DelegationTokenRecord) -> Tokens:
    token = _read(DelegationToken, record)
    return tokens.set(record.token_id, token._replace(renewers=tuple(record.renewers)))


def remove_token(tokens: Tokens, record: RemoveDelegationTokenRecord) -> Tokens:
    return tokens.delete(record.token_id) if record.token_id in tokens else tokens


def acl_records(acls: Acls) -> Iterator[AccessControlEntryRecord]:
    """Yield the records of a snapshot, by id."""
    for acl_id, acl in sorted(acls.items()):
        yield AccessControlEntryRecord(id=acl_id, **acl._asdict())


def scram_records(scram: Scram) -> Iterator[UserScramCredentialRecord]:
    """Yield the records of a snapshot, by mechanism and user."""
    for (mechanism, user), credential in sorted(scram.items()):
        yield UserScramCredentialRecord(name=user, mechanism=mechanism, **credential._asdict())


def token_records(tokens: Tokens) -> Iterator[DelegationTokenRecord]:
    """Yield the records of a snapshot, by token id."""
    for token_id, token in sorted(tokens.items()):
        yield DelegationTokenRecord(token_id=token_id, **{**token._asdict(), "renewers": list(token.renewers)})
