"""Client quotas. Source: KIP-546, KIP-631; Kafka `ClientQuotasImage`."""

from collections.abc import Iterator

from immutables import Map

from fastquorum.wire.messages.quotas import AlterClientQuotasRequest
from fastquorum.wire.records.cluster import ClientQuotaRecord

Entity = tuple[tuple[str, str | None], ...]
"""The owner of a quota: (type, name) pairs, sorted by type; the name None is the default of its type."""
Quotas = Map[Entity, Map[str, float]]


def entity_of(entry: ClientQuotaRecord | AlterClientQuotasRequest.EntryData) -> Entity:
    """Return the entity of a record or request. Of two parts of one type the later counts, as in Kafka."""
    return tuple(sorted({each.entity_type: each.entity_name for each in entry.entity}.items()))


def set_quota(quotas: Quotas, record: ClientQuotaRecord) -> Quotas:
    entity = entity_of(record)
    limits = quotas.get(entity, Map())
    if not record.remove:
        return quotas.set(entity, limits.set(record.key, record.value))
    if record.key not in limits:
        return quotas
    limits = limits.delete(record.key)
    return quotas.set(entity, limits) if limits else quotas.delete(entity)


def quota_records(quotas: Quotas) -> Iterator[ClientQuotaRecord]:
    """Yield the records of a snapshot, by entity and key."""
    for entity, limits in sorted(quotas.items(), key=lambda item: _order(item[0])):
        for key, value in sorted(limits.items()):
            yield quota_record(entity, key, value)


def quota_record(entity: Entity, key: str, value: float | None) -> ClientQuotaRecord:
    """Return the record of a quota; None removes it."""
    part = ClientQuotaRecord.EntityData
    parts = [part(entity_type=entity_type, entity_name=name) for entity_type, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


def _order(entity: Entity) -> list[tuple[str, bool, str]]:
    return [(entity_type, name is not None, name or "") for entity_type, name in entity]
