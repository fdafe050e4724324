"""Sets and removes SCRAM credentials; passwords are not seen here, and nothing that allows a login is kept.

Source: KIP-554, KIP-900; Kafka `ScramControlManager`; RFC 5802, RFC 7677.
"""

import hashlib
import hmac
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from fastquorum.controller.decisions import Decision
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.credentials import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from fastquorum.wire.records.access import RemoveUserScramCredentialRecord, UserScramCredentialRecord

MECHANISMS: Final[Mapping[int, str]] = MappingProxyType({1: "sha256", 2: "sha512"})
"""The hash of each mechanism by Kafka's numbers: SCRAM-SHA-256, SCRAM-SHA-512."""
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384

_Deletion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def alter_credentials(state: ControllerState, request: AlterUserScramCredentialsRequest) -> Decision:
    """Decide an AlterUserScramCredentials; each user is answered once. Nothing changes for a user that is named
    twice."""
    answer = AlterUserScramCredentialsResponse()
    records: list[Message] = []
    for user, changes in _by_user(request).items():
        code, text = ErrorCode.NONE, None
        try:
            record = _altered(state, changes[0])
            if len(changes) > 1:
                raise Refused(ErrorCode.DUPLICATE_RESOURCE, "A user can be altered once in a request")
            records.append(record)
        except Refused as refused:
            code, text = refused.code, refused.text
        answer.results.append(_result(user, code, text))
    return Decision(answer, records)


def not_altered(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, text: str
) -> AlterUserScramCredentialsResponse:
    """Return the error for each user."""
    return AlterUserScramCredentialsResponse(results=[_result(user, code, text or None) for user in _by_user(request)])


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[_Deletion | _Upsertion]]:
    """Return the changes of each user in their order, deletions first."""
    found: dict[str, list[_Deletion | _Upsertion]] = {}
    changes: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    for each in changes:
        found.setdefault(each.name, []).append(each)
    return found


def _result(
    user: str, code: ErrorCode, text: str | None
) -> AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult:
    make_result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return make_result(user=user, error_code=code, error_message=text)


def _altered(state: ControllerState, change: _Deletion | _Upsertion) -> Message:
    if not state.level.has_scram:
        text = f"metadata.version {state.level} cannot hold SCRAM credentials"
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, text)
    if not change.name:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "A user needs a name")
    if change.mechanism not in MECHANISMS:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"SCRAM mechanism {change.mechanism} is unknown")
    if isinstance(change, _Upsertion):
        return _set(change)
    if (change.mechanism, change.name) not in state.image.scram:
        raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "There is no such credential")
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _set(change: _Upsertion) -> UserScramCredentialRecord:
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        text = f"{change.iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are acceptable"
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    if not change.salted_password:  # no key for an HMAC, says Java, and Kafka knows no better error
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The salted password is empty")
    name = MECHANISMS[change.mechanism]
    client_key = hmac.digest(change.salted_password, b"Client Key", name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(change.salted_password, b"Server Key", name),
        iterations=change.iterations,
    )
