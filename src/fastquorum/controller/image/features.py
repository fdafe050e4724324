"""Finalized features, and the meaning of the levels of metadata.version.

`kraft.version` is never among them: it is the quorum's own (KRAFT_VERSION control records), and a FeatureLevelRecord
of it, which old Kafkas wrote by mistake, is passed over. Source: KIP-584, KIP-778; Kafka `FeaturesDelta` (KAFKA-18979),
`MetadataVersion`.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from immutables import Map

from fastquorum.wire.records.cluster import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"

METADATA_VERSION_MIN: Final = 7
METADATA_VERSION_MAX: Final = 30
_RELEASES = "3.3:3 3.4:0 3.5:012 3.6:012 3.7:01234 3.8:0 3.9:0 4.0:0123 4.1:01 4.2:01 4.3:0"
"""Releases, and the steps of each that are levels."""
METADATA_VERSIONS: Final = MappingProxyType(
    dict(
        enumerate(
            (
                f"{release}-IV{step}"
                for release, _, steps in (each.partition(":") for each in _RELEASES.split())
                for step in steps
            ),
            METADATA_VERSION_MIN,
        )
    )
)
"""The name of each level that Kafka 4.3 supports."""
_WITH_NEW_RECORDS: Final = (7, 8, 11, 13, 14, 15, 17, 23, 30)
"""Levels whose records can express more than those of the levels before."""
SUPPORTED: Final = MappingProxyType(
    {
        METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
        KRAFT_VERSION: (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        ELIGIBLE_LEADER_REPLICAS: (0, 1),
        "share.version": (0, 1),
        "streams.version": (0, 1),
    }
)
"""The lowest and the highest level of each feature that Kafka 4.3's controllers support. Source: Kafka `Feature`."""


class Level(int):
    """A level of metadata.version: the records that may be written at it, and their versions."""

    __slots__ = ()

    @property
    def has_migration(self) -> bool:
        return self >= 8

    @property
    def has_scram(self) -> bool:
        return self >= 11

    @property
    def bumps_leader_epoch_on_isr_shrink(self) -> bool:
        return self < 12

    @property
    def has_transactions(self) -> bool:
        return self >= 13

    @property
    def has_delegation_tokens(self) -> bool:
        return self >= 14

    @property
    def has_controller_registration(self) -> bool:
        return self >= 15

    @property
    def has_directories(self) -> bool:
        return self >= 17

    @property
    def has_eligible_leader_replicas(self) -> bool:
        return self >= 23

    @property
    def has_cordoned_directories(self) -> bool:
        return self >= 30

    @property
    def register_broker_version(self) -> int:
        return 1 + self.has_migration + self.has_directories + self.has_cordoned_directories

    @property
    def partition_version(self) -> int:
        """The version of PartitionRecord and of PartitionChangeRecord."""
        return self.has_directories + self.has_eligible_leader_replicas

    def loses_nothing_at(self, lower: int) -> bool:
        """Return whether that level can express all that may have been written at this one."""
        return not any(lower < each <= self for each in _WITH_NEW_RECORDS)

    def __str__(self) -> str:
        return METADATA_VERSIONS.get(self, int.__str__(self))


class Features(NamedTuple):
    """The finalized features; metadata.version stands apart, as it decides how everything else is written."""

    metadata_version: Level | None = None
    """None until a record has set it."""
    levels: Map[str, int] = Map()
    """The level of every other feature, each above 0."""

    @property
    def is_elr_enabled(self) -> bool:
        return self.levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def by_name(self) -> dict[str, int]:
        """Return the level of each, metadata.version first."""
        known = {} if self.metadata_version is None else {METADATA_VERSION: int(self.metadata_version)}
        return known | dict(sorted(self.levels.items()))

    def apply(self, record: FeatureLevelRecord) -> Self:
        """Set a feature's level. ValueError for an unknown metadata.version."""
        if record.name == KRAFT_VERSION:
            return self
        if record.name != METADATA_VERSION:
            levels = self.levels
            if record.feature_level == 0:
                return self._replace(levels=levels.delete(record.name)) if record.name in levels else self
            return self._replace(levels=levels.set(record.name, record.feature_level))
        if record.feature_level not in METADATA_VERSIONS:
            raise ValueError(
                f"metadata.version {record.feature_level} is unknown: {METADATA_VERSION_MIN} to {METADATA_VERSION_MAX} "
                "are supported"
            )
        return self._replace(metadata_version=Level(record.feature_level))

    def records(self) -> Iterator[FeatureLevelRecord]:
        """Yield the records of a snapshot, metadata.version first: readers need it to decode the rest."""
        for name, level in self.by_name().items():
            yield FeatureLevelRecord(name=name, feature_level=level)
