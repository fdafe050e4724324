"""Client quotas: AlterClientQuotas. Source: KIP-546, KIP-612 (quotas of addresses)."""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, FLOAT64, INT16, INT32, STRING, array, field


class AlterClientQuotasRequest(Message, api_key=49, kind="request", versions="0-1", flexible="1+"):
    """Set or remove quotas."""

    class EntryData(Struct):
        class EntityData(Struct):
            """One part of whom the quotas are for; a null name is the default."""

            entity_type: str = field(STRING, "0+")
            entity_name: str | None = field(STRING, "0+", nullable="0+")

        class OpData(Struct):
            key: str = field(STRING, "0+")
            value: float = field(FLOAT64, "0+")
            remove: bool = field(BOOL, "0+")

        entity: list[EntityData] = field(array(EntityData), "0+")
        ops: list[OpData] = field(array(OpData), "0+")

    entries: list[EntryData] = field(array(EntryData), "0+")
    validate_only: bool = field(BOOL, "0+")


class AlterClientQuotasResponse(Message, api_key=49, kind="response", versions="0-1", flexible="1+"):
    """What became of each."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = field(STRING, "0+")
            entity_name: str | None = field(STRING, "0+", nullable="0+")

        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        entity: list[EntityData] = field(array(EntityData), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    entries: list[EntryData] = field(array(EntryData), "0+")
