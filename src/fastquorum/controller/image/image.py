"""The image: all metadata of the log at one offset. Immutable; a changed image shares all other parts.

Two replicas that applied the same records have equal images, and write equal snapshots of them. Source: KIP-631; Kafka
`MetadataImage`, `MetadataDelta`.
"""

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from immutables import Map

from fastquorum.controller.image import access, configs, quotas, registrations
from fastquorum.controller.image.access import Acls, Scram, Tokens
from fastquorum.controller.image.configs import Configs
from fastquorum.controller.image.features import Features, Level
from fastquorum.controller.image.partition import partition_record
from fastquorum.controller.image.quotas import Quotas
from fastquorum.controller.image.registrations import Brokers, Controllers
from fastquorum.controller.image.topics import Topics, TopicsEditor
from fastquorum.controller.image.vector import Make
from fastquorum.errors import ImageFailed
from fastquorum.kernels.partitions import PartitionRun
from fastquorum.wire.message import Message
from fastquorum.wire.records import access as access_records
from fastquorum.wire.records import brokers as broker_records
from fastquorum.wire.records import cluster as cluster_records
from fastquorum.wire.records import topics as topic_records
from fastquorum.wire.records.metadata import record_type_name

NO_PRODUCER_ID: Final = -1


class Image(NamedTuple):
    """The cluster's metadata; immutable, compared by value."""

    features: Features = Features()
    brokers: Brokers = Map()
    controllers: Controllers = Map()
    topics: Topics = Topics()
    configs: Configs = Map()
    quotas: Quotas = Map()
    next_producer_id: int = NO_PRODUCER_ID
    """The first producer id of the next block; NO_PRODUCER_ID before the first block."""
    acls: Acls = Map()
    scram: Scram = Map()
    tokens: Tokens = Map()

    def apply(self, records: Iterable[Message]) -> "Image":
        """Return the image after these records, in this order; the cost is that of the change.

        It does not take transaction records: see `fold`.

        Raises:
            ImageFailed: a record, which it names, does not fit. This image is unchanged.
        """
        editor = ImageEditor(self)
        for number, record in enumerate(records):
            editor.apply(record, number)
        return editor.finish()

    def records(self) -> Iterator[tuple[Message, int]]:
        """Yield the records of a snapshot of this image, each with its version, in Kafka's order.

        Raises:
            ImageFailed: the log has not set its metadata.version yet, or that level cannot express the image.
        """
        level = self.features.metadata_version
        if level is None:
            raise ImageFailed("no record has set the metadata.version yet, which a snapshot needs")
        try:
            yield from self._records(level)
        except ValueError as error:
            raise ImageFailed(f"a snapshot cannot be written: {error}") from error

    def _records(self, level: Level) -> Iterator[tuple[Message, int]]:
        yield from ((record, 0) for record in self.features.records())
        for _, broker in sorted(self.brokers.items()):
            yield registrations.broker_record(broker, level), level.register_broker_version
        if self.controllers and not level.has_controller_registration:
            raise ValueError(f"metadata.version {level} cannot hold registrations of controllers")
        for _, controller in sorted(self.controllers.items()):
            yield registrations.controller_record(controller), 0
        yield from self._topic_records(level)
        yield from ((record, 0) for record in configs.config_records(self.configs))
        yield from ((record, 0) for record in quotas.quota_records(self.quotas))
        if self.next_producer_id != NO_PRODUCER_ID:
            ids = cluster_records.ProducerIdsRecord(
                broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id
            )
            yield ids, 0
        yield from ((record, 0) for record in access.acl_records(self.acls))
        if self.scram and not level.has_scram:
            raise ValueError(f"metadata.version {level} cannot hold SCRAM credentials")
        yield from ((record, 0) for record in access.scram_records(self.scram))
        if self.tokens and not level.has_delegation_tokens:
            raise ValueError(f"metadata.version {level} cannot hold delegation tokens")
        yield from ((record, 0) for record in access.token_records(self.tokens))

    def _topic_records(self, level: Level) -> Iterator[tuple[Message, int]]:
        with_elr = self.features.is_elr_enabled
        for topic in self.topics.sorted():
            yield topic_records.TopicRecord(name=topic.name, topic_id=topic.id), 0
            for partition_id, partition in topic.partitions.items():
                record = partition_record(topic.id, partition_id, partition, level, with_elr=with_elr)
                yield record, level.partition_version


EMPTY: Final = Image()


class ImageEditor:
    """Applies records one by one. Unusable once a record did not fit."""

    def __init__(self, image: Image, make: Make = tuple) -> None:
        """Begin with an image; `make` as in `Vector.updated`."""
        self.topics: Final = TopicsEditor(image.topics, make)
        """The topics, and what has changed of them."""
        self._parts: dict[str, Any] = {}
        self._before = image

    def apply(self, record: Message, offset: int = -1) -> None:
        """Apply one record; `offset` is its place, for the error. ImageFailed if it does not fit."""
        kind = record.__class__
        change = _TOPIC_CHANGES.get(kind)
        try:
            if change is not None:
                change(self.topics, record)
            elif kind in _CHANGES:
                part, apply = _CHANGES[kind]
                self._parts[part] = apply(self._part(part), record)
            elif kind is topic_records.RemoveTopicRecord:
                name = self.topics.remove(record)  # type: ignore[arg-type]
                self._parts["configs"] = configs.forget_topic(self._part("configs"), name)
            elif kind not in _WITHOUT_EFFECT:
                raise ValueError("such a record has no place in an image")
        except ValueError as error:
            raise ImageFailed(str(error), record_type_name(kind), offset) from error

    def create_partitions(self, run: PartitionRun, offset: int = -1) -> None:
        """Apply PartitionRecords of one topic, the first at `offset`. ImageFailed if they do not fit."""
        try:
            self.topics.create_partitions(run.topic_id, run.rows)
        except ValueError as error:
            raise ImageFailed(str(error), record_type_name(topic_records.PartitionRecord), offset) from error

    def finish(self) -> Image:
        """Return the image after all records; the same object as before, if none of them changed it."""
        topics = self.topics.finish()
        if not self._parts and topics is self._before.topics:
            return self._before
        return self._before._replace(topics=topics, **self._parts)

    def _part(self, name: str) -> Any:
        return self._parts[name] if name in self._parts else getattr(self._before, name)


def _next_producer_id(_: int, record: cluster_records.ProducerIdsRecord) -> int:
    return record.next_producer_id


_TOPIC_CHANGES: Final = MappingProxyType[type[Message], Callable[..., None]](
    {
        topic_records.TopicRecord: TopicsEditor.create,
        topic_records.PartitionRecord: TopicsEditor.create_partition,
        topic_records.PartitionChangeRecord: TopicsEditor.change_partition,
        topic_records.ClearElrRecord: TopicsEditor.clear_elr,
    }
)
_CHANGES: Final = MappingProxyType[type[Message], tuple[str, Callable[..., Any]]](
    {
        cluster_records.FeatureLevelRecord: ("features", Features.apply),
        broker_records.RegisterBrokerRecord: ("brokers", registrations.register_broker),
        broker_records.UnregisterBrokerRecord: ("brokers", registrations.unregister_broker),
        broker_records.BrokerRegistrationChangeRecord: ("brokers", registrations.change_broker),
        broker_records.FenceBrokerRecord: ("brokers", registrations.fence_broker),
        broker_records.UnfenceBrokerRecord: ("brokers", registrations.unfence_broker),
        broker_records.RegisterControllerRecord: ("controllers", registrations.register_controller),
        cluster_records.ConfigRecord: ("configs", configs.set_config),
        cluster_records.ClientQuotaRecord: ("quotas", quotas.set_quota),
        cluster_records.ProducerIdsRecord: ("next_producer_id", _next_producer_id),
        access_records.AccessControlEntryRecord: ("acls", access.add_acl),
        access_records.RemoveAccessControlEntryRecord: ("acls", access.remove_acl),
        access_records.UserScramCredentialRecord: ("scram", access.set_scram),
        access_records.RemoveUserScramCredentialRecord: ("scram", access.remove_scram),
        access_records.DelegationTokenRecord: ("tokens", access.set_token),
        access_records.RemoveDelegationTokenRecord: ("tokens", access.remove_token),
    }
)
_WITHOUT_EFFECT: Final = frozenset({cluster_records.NoOpRecord, cluster_records.ZkMigrationStateRecord})
