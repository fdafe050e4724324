"""Metadata records of the cluster as a whole: configurations, quotas, features, producer ids, transactions.

Keys and versions as in Kafka 4.3. Source: KIP-631; KIP-584, KIP-730, KIP-868 (transactions), KIP-866 (migration).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, FLOAT64, INT8, INT16, INT32, INT64, STRING, array, field


class ConfigRecord(Message, api_key=4, kind="metadata", versions="0", flexible="0+"):
    """A configuration value was set, or (null) removed."""

    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")


class FeatureLevelRecord(Message, api_key=12, kind="metadata", versions="0", flexible="0+"):
    """A feature was finalized at a level; 0 removes it."""

    name: str = field(STRING, "0+")
    feature_level: int = field(INT16, "0+")


class ClientQuotaRecord(Message, api_key=14, kind="metadata", versions="0", flexible="0+"):
    """A client quota was set or removed."""

    class EntityData(Struct):
        """One part of whom the quota is for; a null name is the default."""

        entity_type: str = field(STRING, "0+")
        entity_name: str | None = field(STRING, "0+", nullable="0+")

    entity: list[EntityData] = field(array(EntityData), "0+")
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")
    remove: bool = field(BOOL, "0+")


class ProducerIdsRecord(Message, api_key=15, kind="metadata", versions="0", flexible="0+"):
    """A block of producer ids was given out; the next begins at next_producer_id."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    next_producer_id: int = field(INT64, "0+")


class NoOpRecord(Message, api_key=20, kind="metadata", versions="0", flexible="0+"):
    """Nothing happened: it only moves the high watermark."""


class ZkMigrationStateRecord(Message, api_key=21, kind="metadata", versions="0", flexible="0+"):
    """How far the migration from ZooKeeper has come; 0 where there was none."""

    zk_migration_state: int = field(INT8, "0+")


class BeginTransactionRecord(Message, api_key=23, kind="metadata", versions="0", flexible="0+"):
    """What follows counts only once the transaction has ended."""

    name: str | None = field(STRING, "0+", nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message, api_key=24, kind="metadata", versions="0", flexible="0+"):
    """The transaction counts."""


class AbortTransactionRecord(Message, api_key=25, kind="metadata", versions="0", flexible="0+"):
    """The transaction never happened."""

    reason: str | None = field(STRING, "0+", nullable="0+", default=None, tag=0)
