"""Changes quotas of clients.

Source: KIP-546, KIP-599, KIP-612; Kafka `ClientQuotaControlManager`, `QuotaConfig`.
"""

import ipaddress
import math
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from immutables import Map

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.quotas import Entity, entity_of, quota_record
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_ANY_NUMBER: Final = math.inf
OF_CLIENTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "producer_byte_rate": 2.0**63,
        "consumer_byte_rate": 2.0**63,
        "request_percentage": _ANY_NUMBER,
        "controller_mutation_rate": _ANY_NUMBER,
    }
)
"""The quotas of users and client ids, each with its maximum; a quota with a maximum is a whole number."""
OF_ADDRESSES: Final[Mapping[str, float]] = MappingProxyType({"connection_creation_rate": 2.0**31 - 1})
"""The quotas of addresses, each with its maximum."""
_FRACTION_MAX: Final = 1e-6
"""How far a whole number may be off after arithmetic."""

_Entry = AlterClientQuotasRequest.EntryData


def alter_client_quotas(state: ControllerState, request: AlterClientQuotasRequest) -> Decision:
    """Decide an AlterClientQuotas; each entity is answered for itself, once. One that is named twice is not changed."""
    times = Counter(entity_of(each) for each in request.entries)
    answer = AlterClientQuotasResponse()
    records: list[Message] = []
    for entity, each in {entity_of(each): each for each in request.entries}.items():
        code, text = ErrorCode.NONE, None
        try:
            if times[entity] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "The entity is named twice")
            records += _of_one(state, entity, each)
        except Refused as refused:
            code, text = refused.code, refused.text
        answer.entries.append(_result(entity, code, text))
    return Decision(answer, [] if request.validate_only else records)


def not_altered(request: AlterClientQuotasRequest, code: ErrorCode, text: str) -> AlterClientQuotasResponse:
    """Return the error for each entity."""
    return AlterClientQuotasResponse(entries=[_result(entity_of(each), code, text or None) for each in request.entries])


def _result(entity: Entity, code: ErrorCode, text: str | None) -> AlterClientQuotasResponse.EntryData:
    kind = AlterClientQuotasResponse.EntryData
    return kind(
        error_code=code,
        error_message=text,
        entity=[kind.EntityData(entity_type=entity_type, entity_name=name) for entity_type, name in entity],
    )


def _of_one(state: ControllerState, entity: Entity, entry: _Entry) -> list[Message]:
    limits = _limits_of(entity)
    present = state.image.quotas.get(entity, Map())
    records: list[Message] = []
    named: set[str] = set()
    for each in entry.ops:
        if each.key in named:
            raise Refused(ErrorCode.INVALID_REQUEST, f"The quota {each.key} is named twice")
        named.add(each.key)
        if each.remove:
            if each.key in present:
                records.append(quota_record(entity, each.key, None))
            continue
        _check_value(limits, each.key, each.value)
        if present.get(each.key) != each.value:
            records.append(quota_record(entity, each.key, each.value))
    return records


# --- what may be ------------------------------------------------------------------------------------------------------


def _limits_of(entity: Entity) -> Mapping[str, float]:
    """Return the quotas that such an entity may have. Refused if there cannot be such an entity."""
    code, names = ErrorCode.INVALID_REQUEST, dict(entity)
    for entity_type, name in entity:
        if entity_type not in (USER, CLIENT_ID, IP):
            raise Refused(code, f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise Refused(code, f"An empty {entity_type} is not supported; the default of its type is null")
    if not entity:
        raise Refused(code, "Invalid empty client quota entity")
    if IP not in names:
        return OF_CLIENTS
    if len(names) > 1:
        raise Refused(code, "An ip cannot be combined with user or client-id")
    if not _is_address(names[IP]):
        raise Refused(code, f"{names[IP]} is not an IP address; names of hosts are not resolved here")
    return OF_ADDRESSES


def _is_address(name: str | None) -> bool:
    """Return whether the text is an IP address; IPv6 without a zone, which only has a meaning on one node."""
    try:
        return name is None or ("%" not in name and bool(ipaddress.ip_address(name)))
    except ValueError:
        return False


def _check_value(limits: Mapping[str, float], key: str, value: float) -> None:
    code = ErrorCode.INVALID_REQUEST
    most = limits.get(key)
    if most is None:
        raise Refused(code, f"Invalid configuration key {key}")
    if not value > 0:  # nor is NaN
        raise Refused(code, f"Quota {key} must be greater than 0")
    if most == _ANY_NUMBER:
        return
    if value > most:
        raise Refused(code, f"Proposed value for {key} is too large")
    if value % 1 > _FRACTION_MAX:
        raise Refused(code, f"{key} cannot be a fractional value")
