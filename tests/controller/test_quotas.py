"""Quotas of clients are changed. KIP-546, KIP-599, KIP-612."""

import math
from typing import Any

import pytest

from fastquorum.controller import quotas
from fastquorum.controller.requests import refused
from fastquorum.wire import decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from tests.controller.rig import Controller

Entry = AlterClientQuotasRequest.EntryData
ALICE = (("user", "alice"),)
BOTH = (("client-id", "c"), ("user", "alice"))
EVERY_ADDRESS = (("ip", None),)


def entry(entity: tuple[tuple[str, str | None], ...], **limits: float | None) -> Entry:
    """Limits by key, None to remove."""
    return Entry(
        entity=[Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[Entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
    )


def alter(controller: Controller, *entries: Entry, validate_only: bool = False) -> list[ErrorCode]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer = controller.decide(quotas.alter_client_quotas(controller.state, request))
    assert isinstance(answer, AlterClientQuotasResponse)
    assert decode(AlterClientQuotasResponse, 1, encode(answer, 1)) == answer
    assert all((each.error_message is None) == (each.error_code == 0) for each in answer.entries)
    return [ErrorCode(each.error_code) for each in answer.entries]


def held(controller: Controller) -> dict[Any, dict[str, float]]:
    return {entity: dict(limits) for entity, limits in controller.state.image.quotas.items()}


def test_quotas_are_set_changed_and_taken_away() -> None:
    controller = Controller()
    assert alter(controller, entry(ALICE, producer_byte_rate=1024.0, request_percentage=12.5)) == [ErrorCode.NONE]
    alter(controller, entry(ALICE, producer_byte_rate=2048.0, consumer_byte_rate=9.0))
    assert held(controller) == {
        ALICE: {"producer_byte_rate": 2048.0, "consumer_byte_rate": 9.0, "request_percentage": 12.5}
    }
    alter(controller, entry(ALICE, producer_byte_rate=None, consumer_byte_rate=None, request_percentage=None))
    assert held(controller) == {}


def test_what_is_so_already_is_not_written() -> None:
    controller = Controller()
    alter(controller, entry(ALICE, request_percentage=5.0))
    assert alter(controller, entry(ALICE, request_percentage=5.0, producer_byte_rate=None)) == [ErrorCode.NONE]
    assert controller.written == []


def test_a_key_that_nobody_knows_can_be_taken_away() -> None:
    assert alter(Controller(), entry(ALICE, no_such_key=None)) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    "entity",
    [
        ALICE,
        (("user", None),),
        (("client-id", "c"),),
        (("client-id", None),),
        BOTH,
        (("client-id", None), ("user", None)),
    ],
)
def test_users_and_clients_are_limited_together_and_alone(entity: Any) -> None:
    controller = Controller()
    assert alter(controller, entry(entity, controller_mutation_rate=0.5)) == [ErrorCode.NONE]
    assert held(controller) == {entity: {"controller_mutation_rate": 0.5}}


@pytest.mark.parametrize("name", [None, "10.0.0.1", "::1", "2001:db8::7"])
def test_addresses_are_limited_in_connections(name: str | None) -> None:
    controller = Controller()
    assert alter(controller, entry((("ip", name),), connection_creation_rate=2.0**31 - 1)) == [ErrorCode.NONE]
    assert held(controller) == {(("ip", name),): {"connection_creation_rate": 2.0**31 - 1}}


def test_of_two_parts_of_one_type_the_later_counts() -> None:
    controller = Controller()
    alter(controller, entry((("user", "bob"), ("user", "alice")), request_percentage=5.0))
    assert held(controller) == {ALICE: {"request_percentage": 5.0}}


def test_nothing_is_written_that_was_only_to_be_checked() -> None:
    controller = Controller()
    bad = entry(BOTH, x=1.0)
    codes = alter(controller, entry(ALICE, request_percentage=5.0), bad, validate_only=True)
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert controller.written == []


def test_each_entity_is_answered_for_itself() -> None:
    controller = Controller()
    codes = alter(controller, entry(ALICE, request_percentage=5.0, x=1.0), entry(BOTH, request_percentage=7.0))
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert held(controller) == {BOTH: {"request_percentage": 7.0}}


def test_an_entity_that_is_named_twice_is_not_changed() -> None:
    controller = Controller()
    twice = [entry(BOTH, request_percentage=5.0), entry(tuple(reversed(BOTH)), request_percentage=6.0)]
    assert alter(controller, *twice, entry(ALICE, request_percentage=7.0)) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    assert held(controller) == {ALICE: {"request_percentage": 7.0}}


@pytest.mark.parametrize(
    "bad",
    [
        entry((), request_percentage=5.0),
        entry((("group", "g"),), request_percentage=5.0),
        entry((("user", ""),), request_percentage=5.0),
        entry((("ip", "10.0.0.1"), ("user", "alice")), connection_creation_rate=5.0),
        entry((("ip", "some.host"),), connection_creation_rate=5.0),
        entry((("ip", "10.0.0.256"),), connection_creation_rate=5.0),
        entry((("ip", "fe80::1%eth9"),), connection_creation_rate=5.0),
        entry(EVERY_ADDRESS, request_percentage=5.0),
        entry(EVERY_ADDRESS, connection_creation_rate=2.0**31),
        entry(EVERY_ADDRESS, connection_creation_rate=1.5),
        entry(ALICE, connection_creation_rate=5.0),
        entry(ALICE, producer_byte_rate=0.0),
        entry(ALICE, producer_byte_rate=-1.0),
        entry(ALICE, producer_byte_rate=1.5),
        entry(ALICE, producer_byte_rate=math.inf),
        entry(ALICE, consumer_byte_rate=math.nan),
        entry(ALICE, request_percentage=math.nan),
        Entry(entity=[Entry.EntityData(entity_type="user", entity_name="alice")], ops=[Entry.OpData(key="x")] * 2),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(bad: Entry) -> None:
    controller = Controller()
    alter(controller, entry(ALICE, request_percentage=5.0))
    before = controller.state.image
    assert alter(controller, bad) == [ErrorCode.INVALID_REQUEST]
    assert controller.state.image == before


def test_a_key_that_is_named_twice_changes_nothing() -> None:
    controller = Controller()
    twice = entry(ALICE, request_percentage=5.0)
    twice.ops *= 2
    assert alter(controller, twice) == [ErrorCode.INVALID_REQUEST]
    assert controller.written == []


def test_what_is_nearly_whole_is_whole() -> None:
    assert alter(Controller(), entry(ALICE, producer_byte_rate=3.0000001)) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", [0, 1])
def test_an_error_stands_at_each_entity(version: int) -> None:
    request = AlterClientQuotasRequest(entries=[entry(ALICE), entry(EVERY_ADDRESS)])
    read = decode(
        AlterClientQuotasResponse, version, encode(refused(request, version, ErrorCode.NOT_CONTROLLER, "why"), version)
    )
    assert [(each.error_code, each.error_message) for each in read.entries] == [(ErrorCode.NOT_CONTROLLER, "why")] * 2
    assert [(part.entity_type, part.entity_name) for each in read.entries for part in each.entity] == [
        ("user", "alice"),
        ("ip", None),
    ]
