"""SCRAM credentials are set and removed. KIP-554, KIP-900; RFC 5802, RFC 7677."""

import base64
import hashlib
import hmac

import pytest

from fastquorum.controller import scram
from fastquorum.controller.requests import refused
from fastquorum.wire import decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.credentials import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from fastquorum.wire.records.access import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tests.controller.rig import Controller

SHA_256, SHA_512 = 1, 2
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def setting(name: str = "alice", mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"p") -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password)


def removal(name: str = "alice", mechanism: int = SHA_256) -> Deletion:
    return Deletion(name=name, mechanism=mechanism)


def alter(controller: Controller, *changes: Upsertion | Deletion) -> dict[str, ErrorCode]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, Deletion)],
        upsertions=[each for each in changes if isinstance(each, Upsertion)],
    )
    answer = controller.decide(scram.alter_credentials(controller.state, request))
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    assert decode(AlterUserScramCredentialsResponse, 0, encode(answer, 0)) == answer
    assert all((each.error_message is None) == (each.error_code == 0) for each in answer.results)
    codes = {each.user: ErrorCode(each.error_code) for each in answer.results}
    assert len(codes) == len(answer.results), "each user once"
    return codes


def held(controller: Controller) -> list[tuple[int, str]]:
    return sorted(controller.state.image.scram)


def test_what_is_kept_proves_the_password_of_the_rfc() -> None:
    """The exchange of RFC 7677, section 3: the user "user" with the password "pencil"."""
    salt, iterations = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096
    first, nonce = "n=user,r=rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"{first},r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    server_signature = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

    controller = Controller()
    password = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, iterations)
    change = Upsertion(name="user", mechanism=SHA_256, iterations=iterations, salt=salt, salted_password=password)
    assert alter(controller, change) == {"user": ErrorCode.NONE}
    kept = controller.state.image.scram[SHA_256, "user"]
    assert hmac.digest(kept.server_key, exchange, "sha256") == server_signature
    client_signature = hmac.digest(kept.stored_key, exchange, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
    assert hashlib.sha256(client_key).digest() == kept.stored_key
    assert (kept.salt, kept.iterations) == (salt, iterations)


def test_credentials_are_set_anew_and_removed_each_by_its_mechanism() -> None:
    controller = Controller()
    alter(controller, setting(mechanism=SHA_256))
    alter(controller, setting(mechanism=SHA_512, iterations=16384))
    assert held(controller) == [(SHA_256, "alice"), (SHA_512, "alice")]
    assert len(controller.state.image.scram[SHA_512, "alice"].stored_key) == 64
    before = controller.state.image.scram[SHA_256, "alice"]
    alter(controller, setting(mechanism=SHA_256, password=b"another"))
    assert controller.state.image.scram[SHA_256, "alice"] != before
    assert alter(controller, removal(mechanism=SHA_256)) == {"alice": ErrorCode.NONE}
    assert controller.written == [RemoveUserScramCredentialRecord(name="alice", mechanism=SHA_256)]
    assert held(controller) == [(SHA_512, "alice")]


def test_removals_and_settings_of_several_users_are_one_batch() -> None:
    controller = Controller()
    alter(controller, setting("bob"))
    assert alter(controller, setting("alice"), removal("bob")) == {"bob": ErrorCode.NONE, "alice": ErrorCode.NONE}
    assert [type(each) for each in controller.written] == [RemoveUserScramCredentialRecord, UserScramCredentialRecord]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (setting(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (removal(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (setting(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (removal(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (setting(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting(password=b""), ErrorCode.UNKNOWN_SERVER_ERROR),
        (removal(mechanism=SHA_512), ErrorCode.RESOURCE_NOT_FOUND),
        (removal("carol"), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing_of_the_user(
    change: Upsertion | Deletion, code: ErrorCode
) -> None:
    controller = Controller()
    alter(controller, setting("alice"))
    assert alter(controller, change, setting("bob")) == {change.name: code, "bob": ErrorCode.NONE}
    assert held(controller) == [(SHA_256, "alice"), (SHA_256, "bob")]
    assert len(controller.written) == 1


@pytest.mark.parametrize(
    "changes",
    [
        (setting(), setting()),
        (setting(mechanism=SHA_256), setting(mechanism=SHA_512)),
        (removal(), setting()),
        (removal(), removal()),
    ],
)
def test_a_user_who_is_named_twice_stays_as_before(changes: tuple[Upsertion | Deletion, ...]) -> None:
    controller = Controller()
    alter(controller, setting())
    before = controller.state.image
    assert alter(controller, *changes) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert controller.state.image == before


def test_a_fault_of_the_first_is_told_before_that_there_are_two() -> None:
    assert alter(Controller(), removal(), setting()) == {"alice": ErrorCode.RESOURCE_NOT_FOUND}


def test_a_level_that_cannot_hold_credentials_refuses_them() -> None:
    controller = Controller(level=10)
    changes = setting("alice"), removal("bob")
    assert alter(controller, *changes) == dict.fromkeys(("bob", "alice"), ErrorCode.UNSUPPORTED_VERSION)
    assert controller.written == []
    assert alter(Controller(level=11), setting("alice")) == {"alice": ErrorCode.NONE}


def test_an_error_stands_at_each_user_once() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[removal("bob")], upsertions=[setting("bob"), setting("alice")]
    )
    response = refused(request, 0, ErrorCode.NOT_CONTROLLER, "why")
    assert isinstance(response, AlterUserScramCredentialsResponse)
    results = [(each.user, each.error_code, each.error_message) for each in response.results]
    assert results == [("bob", ErrorCode.NOT_CONTROLLER, "why"), ("alice", ErrorCode.NOT_CONTROLLER, "why")]
