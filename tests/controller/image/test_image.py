"""What each record does to the image, what does not fit it, and that a change shares all the rest."""

import pytest
from immutables import Map

from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.features import Features, Level
from fastquorum.controller.image.partition import DIRECTORY_MIGRATING, Partition
from fastquorum.controller.image.registrations import Feature, Listener
from fastquorum.errors import ImageFailed
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
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from fastquorum.wire.records.cluster import (
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from fastquorum.wire.records.metadata import METADATA_RECORDS, decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ID = Uuid(bytes(range(16)))
OTHER = Uuid(bytes(range(1, 17)))
DIRECTORY = Uuid(b"d" * 16)
LEVEL_30 = FeatureLevelRecord(name="metadata.version", feature_level=30)
BROKER = RegisterBrokerRecord(
    broker_id=1,
    broker_epoch=10,
    incarnation_id=ID,
    end_points=[RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)],
    features=[
        RegisterBrokerRecord.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),
        RegisterBrokerRecord.BrokerFeature(name="group.version", max_supported_version=1),
    ],
    rack="r",
    log_dirs=[DIRECTORY],
)
TOPIC = TopicRecord(name="t", topic_id=ID)
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=ID,
    replicas=[1, 2, 3],
    isr=[1, 2, 3],
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    directories=[DIRECTORY] * 3,
)


def image(*records: Message) -> Image:
    return EMPTY.apply(records)


def partition(*changes: PartitionChangeRecord) -> Partition:
    """Partition 0 of topic t after changes."""
    found = image(TOPIC, PARTITION, *changes).topics.partition(ID, 0)
    assert found is not None
    return found


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=ID, **fields)  # type: ignore[arg-type]


# --- features ---------------------------------------------------------------------------------------------------------


def test_metadata_version_stands_apart_and_a_level_of_0_removes_a_feature() -> None:
    with_group = image(LEVEL_30, FeatureLevelRecord(name="group.version", feature_level=1))
    assert with_group.features == Features(Level(30), Map({"group.version": 1}))
    assert with_group.apply([FeatureLevelRecord(name="group.version", feature_level=0)]).features.levels == Map()


def test_kraft_version_is_the_quorums_own() -> None:
    assert image(FeatureLevelRecord(name="kraft.version", feature_level=1)) == EMPTY


def test_a_metadata_version_is_shown_by_its_name() -> None:
    assert [str(Level(number)) for number in (7, 17, 30, 31)] == ["3.3-IV3", "3.7-IV2", "4.3-IV0", "31"]


# --- brokers and controllers ------------------------------------------------------------------------------------------


def test_a_broker_registers_fenced() -> None:
    broker = image(BROKER).brokers[1]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown, broker.is_active) == (10, True, False, False)
    assert broker.listener("PLAINTEXT") == Listener("PLAINTEXT", "h", 9092, 0)
    assert broker.listener("SSL") is None
    assert broker.features == (Feature("group.version", 0, 1), Feature("metadata.version", 7, 30))
    assert broker.cordoned_directories is None


def test_a_registration_changes_bit_by_bit() -> None:
    def after(**fields: object) -> object:
        made = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, **fields)  # type: ignore[arg-type]
        return image(BROKER, made).brokers[1]

    broker = image(BROKER).brokers[1]
    assert after(fenced=-1) == broker._replace(fenced=False)
    assert after(fenced=1) == after() == broker
    assert after(in_controlled_shutdown=1) == broker._replace(in_controlled_shutdown=True)
    assert after(log_dirs=[ID]) == broker._replace(directories=(ID,))
    assert after(cordoned_log_dirs=[]) == broker._replace(cordoned_directories=())


def test_the_old_records_fence_and_unfence_too() -> None:
    unfenced = image(BROKER, UnfenceBrokerRecord(id=1, epoch=10))
    assert unfenced.brokers[1].is_active
    assert unfenced.apply([FenceBrokerRecord(id=1, epoch=10)]) == image(BROKER)


def test_a_broker_is_unregistered_and_registers_anew() -> None:
    assert image(BROKER, UnregisterBrokerRecord(broker_id=1, broker_epoch=10)) == EMPTY
    again = RegisterBrokerRecord(broker_id=1, broker_epoch=20, incarnation_id=OTHER, fenced=False)
    assert image(BROKER, again).brokers[1].epoch == 20


def test_a_controller_registers() -> None:
    record = RegisterControllerRecord(controller_id=3, incarnation_id=ID)
    assert image(record).controllers[3].incarnation_id == ID


# --- topics and partitions --------------------------------------------------------------------------------------------


def test_a_topic_is_found_by_name_and_by_id() -> None:
    made = image(TOPIC, PARTITION).topics
    assert made.named("t") == made.by_id[ID]
    assert made.named("u") is None
    assert made.partition(OTHER, 0) is None
    assert made.partition(ID, 1) is None


def test_any_change_makes_the_partition_epoch_grow_and_a_named_leader_the_leader_epoch() -> None:
    assert partition(change(isr=[1, 2]))[:6] == ((1, 2, 3), (DIRECTORY,) * 3, (1, 2), 1, 0, 1)
    assert partition(change(leader=1))[:6] == ((1, 2, 3), (DIRECTORY,) * 3, (1, 2, 3), 1, 1, 1)
    lost = partition(change(leader=-1, isr=[1]), change(leader=1, leader_recovery_state=1))
    assert (lost.leader_epoch, lost.partition_epoch, lost.recovery) == (2, 2, 1)
    assert partition(change(leader_recovery_state=1), change()).recovery == 1


def test_a_reassignment_is_seen() -> None:
    moving = partition(
        change(replicas=[1, 2, 3, 4], directories=[DIRECTORY] * 4, adding_replicas=[4], removing_replicas=[1])
    )
    assert (moving.replicas, moving.adding, moving.removing, moving.is_reassigning) == ((1, 2, 3, 4), (4,), (1,), True)
    assert not partition(change(adding_replicas=[], removing_replicas=[])).is_reassigning


def test_without_directories_each_replica_is_migrating() -> None:
    bare = PartitionRecord(partition_id=0, topic_id=ID, replicas=[1, 2], isr=[1], leader=1)
    found = image(TOPIC, bare).topics.partition(ID, 0)
    assert found is not None
    assert found.directories == (DIRECTORY_MIGRATING,) * 2
    assert found.directory_of(2) == DIRECTORY_MIGRATING
    with pytest.raises(ValueError, match="not in tuple"):
        found.directory_of(3)


def test_eligible_leader_replicas_are_cleared_of_one_topic_or_of_all() -> None:
    elr = change(isr=[1], eligible_leader_replicas=[2], last_known_elr=[3])
    assert partition(elr)[9:] == ((2,), (3,))
    for name in ("t", ""):
        cleared = image(TOPIC, PARTITION, elr, ClearElrRecord(topic_name=name)).topics.partition(ID, 0)
        again = image(TOPIC, PARTITION, elr).apply([ClearElrRecord(topic_name=name)]).topics.partition(ID, 0)
        assert cleared == again == partition(elr, change(eligible_leader_replicas=[], last_known_elr=[]))
    untouched = image(TOPIC, PARTITION, ClearElrRecord()).topics
    assert untouched == image(TOPIC, PARTITION).topics, "a partition without any does not change"


def test_a_removed_topic_takes_its_configuration_along_and_may_be_made_again() -> None:
    config = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value="1")
    assert image(TOPIC, PARTITION, config, RemoveTopicRecord(topic_id=ID)) == EMPTY
    assert image(TOPIC, PARTITION, config).apply([RemoveTopicRecord(topic_id=ID)]) == EMPTY
    again = TopicRecord(name="t", topic_id=OTHER)
    for made in (
        image(TOPIC, PARTITION, RemoveTopicRecord(topic_id=ID), again),
        image(TOPIC, PARTITION).apply([RemoveTopicRecord(topic_id=ID), again]),
    ):
        assert made == image(again)
    gone = image(TOPIC).apply([RemoveTopicRecord(topic_id=ID), again, RemoveTopicRecord(topic_id=OTHER)])
    assert gone == EMPTY


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_a_configuration_value_is_set_and_removed() -> None:
    def config(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=name, value=value)

    both = image(config("a", "1"), config("b", "2"))
    assert dict(both.configs.items()) == {Resource(ResourceType.BROKER, ""): Map({"a": "1", "b": "2"})}
    assert both.apply([config("a", None)]) == image(config("b", "2"))
    assert both.apply([config("a", None), config("b", None), config("c", None)]) == EMPTY


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        (ResourceType.TOPIC, "message.format.version"),  # gone since Kafka 4.0
        (ResourceType.CLIENT_METRICS, "nonsense"),
        (ResourceType.GROUP, "nonsense"),
        (ResourceType.BROKER_LOGGER, "kafka"),
        (3, "retention.ms"),
    ],
)
def test_a_configuration_that_is_not_known_any_more_is_passed_over(resource_type: int, name: str) -> None:
    """Kafka's `DefaultSupportedConfigChecker`."""
    old = ConfigRecord(resource_type=resource_type, resource_name="r", name=name, value="1")
    assert image(old) == EMPTY


def test_a_quota_is_for_an_entity_whatever_the_order_of_its_parts() -> None:
    parts = [
        ClientQuotaRecord.EntityData(entity_type="user", entity_name="u"),
        ClientQuotaRecord.EntityData(entity_type="client-id", entity_name=None),
    ]
    rate = ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=5.0)
    made = image(rate)
    assert dict(made.quotas.items()) == {(("client-id", None), ("user", "u")): Map({"producer_byte_rate": 5.0})}
    gone = ClientQuotaRecord(entity=parts[::-1], key="producer_byte_rate", remove=True)
    assert made.apply([gone]) == made.apply([gone, gone]) == EMPTY


def test_producer_ids_go_on() -> None:
    assert image(ProducerIdsRecord(next_producer_id=1000)).next_producer_id == 1000


def test_access_is_kept() -> None:
    acl = AccessControlEntryRecord(id=ID, principal="User:a", host="*")
    scram = UserScramCredentialRecord(name="a", mechanism=1, salt=b"salt", iterations=4096)
    token = DelegationTokenRecord(owner="User:a", token_id="x", renewers=["User:b"])
    made = image(acl, scram, token)
    assert (len(made.acls), len(made.scram), len(made.tokens)) == (1, 1, 1)
    assert "salt" not in repr(made)
    removed = (
        RemoveAccessControlEntryRecord(id=ID),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
        RemoveDelegationTokenRecord(token_id="x"),
    )
    assert made.apply(removed) == EMPTY


def test_some_records_say_nothing() -> None:
    assert image(NoOpRecord(), ZkMigrationStateRecord()) == EMPTY


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (TOPIC, "topic t exists"),
        (TopicRecord(name="u", topic_id=ID), "a topic with id .* exists"),
        (RemoveTopicRecord(topic_id=OTHER), "there is no topic with id"),
        (ClearElrRecord(topic_name="u"), "there is no topic u"),
        (PartitionRecord(partition_id=0, topic_id=OTHER), "there is no topic with id"),
        (PartitionRecord(partition_id=-1, topic_id=ID), "partition -1"),
        (PartitionRecord(partition_id=1, topic_id=ID, replicas=[1, 2], directories=[DIRECTORY]), "1 directories for 2"),
        (PartitionRecord(partition_id=1, topic_id=ID, leader_recovery_state=2), "2 is not a valid Recovery"),
        (PartitionChangeRecord(partition_id=1, topic_id=ID), "topic t has no partition 1"),
        (PartitionChangeRecord(partition_id=0, topic_id=ID, replicas=[1]), "3 directories for 1 replicas"),
        (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=10), "broker 2 is not registered"),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9), "registered with epoch 10, not 9"),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, fenced=2), "fenced is 2"),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=-1),
            "inControlledShutdown is -1",
        ),
        (FenceBrokerRecord(id=1, epoch=11), "registered with epoch 10, not 11"),
        (UnfenceBrokerRecord(id=2, epoch=10), "broker 2 is not registered"),
        (RemoveAccessControlEntryRecord(id=ID), "there is no access control entry"),
        (FeatureLevelRecord(name="metadata.version", feature_level=6), "7 to 30 are supported"),
        (BeginTransactionRecord(), "no place in an image"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_by_name_and_changes_nothing(record: Message, why: str) -> None:
    before = image(LEVEL_30, BROKER, TOPIC, PARTITION)
    with pytest.raises(ImageFailed, match=why) as caught:
        before.apply([NoOpRecord(), record])
    assert caught.value.offset == 1
    assert caught.value.exit_code == 5
    assert before == image(LEVEL_30, BROKER, TOPIC, PARTITION)


def refusal(record: Message) -> str:
    """Why an empty image refuses the record; empty if it does not."""
    try:
        image(record)
    except ImageFailed as error:
        return error.detail
    return ""


def test_every_record_of_kafka_is_told_apart() -> None:
    """Each but those of transactions is applied, or refused for what it says: none is unknown to the image."""
    unknown = [cls.__name__ for cls in METADATA_RECORDS.values() if "no place" in refusal(cls())]
    assert unknown == ["BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"]


# --- sharing and writing ----------------------------------------------------------------------------------------------


def test_a_change_shares_what_it_does_not_touch() -> None:
    before = image(LEVEL_30, BROKER, TOPIC, PARTITION, TopicRecord(name="u", topic_id=OTHER))
    after = before.apply([change(isr=[1])])
    assert after.brokers is before.brokers
    assert after.features is before.features
    assert after.topics.by_id[OTHER] is before.topics.by_id[OTHER]
    assert before.topics.partition(ID, 0) == partition()
    assert before.apply([]).topics is before.topics


FULL = (
    LEVEL_30,
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    BROKER,
    RegisterControllerRecord(controller_id=3, incarnation_id=ID),
    TOPIC,
    PARTITION,
    change(isr=[1], eligible_leader_replicas=[2], last_known_elr=[3]),
    ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value="1"),
    ClientQuotaRecord(
        entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)], key="k", value=0.5, remove=False
    ),
    ProducerIdsRecord(next_producer_id=1000),
    AccessControlEntryRecord(id=ID, principal="User:a", host="*"),
    UserScramCredentialRecord(name="a", mechanism=1, salt=b"salt", iterations=4096),
    DelegationTokenRecord(owner="User:a", token_id="x", renewers=["User:b"]),
)


def test_a_full_image_is_written_and_read_back() -> None:
    made = image(*FULL)
    values = [encode_metadata_record(*each) for each in made.records()]
    assert EMPTY.apply(decode_metadata_record(value)[0] for value in values) == made


def test_eligible_leader_replicas_are_written_only_where_they_are_enabled() -> None:
    made = image(*FULL).apply([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)])
    (written,) = [record for record, _ in made.records() if isinstance(record, PartitionRecord)]
    assert (written.eligible_leader_replicas, written.last_known_elr) == (None, None)


@pytest.mark.parametrize(
    ("level", "held", "why"),
    [
        (16, (TOPIC, PARTITION), "hold the directories of partition 0"),
        (16, (BROKER,), "of broker 1 which directories it has"),
        (7, (RegisterBrokerRecord(broker_id=1, is_migrating_zk_broker=True),), "that it migrates"),
        (29, (RegisterBrokerRecord(broker_id=1, cordoned_log_dirs=[]),), "which directories are cordoned"),
        (14, (RegisterControllerRecord(controller_id=3),), "hold registrations of controllers"),
        (10, (UserScramCredentialRecord(name="a"),), "SCRAM"),
        (13, (DelegationTokenRecord(token_id="x"),), "delegation tokens"),
    ],
)
def test_no_snapshot_leaves_out_what_its_level_cannot_say(level: int, held: tuple[Message, ...], why: str) -> None:
    made = image(FeatureLevelRecord(name="metadata.version", feature_level=level), *held)
    with pytest.raises(ImageFailed, match=why):
        list(made.records())
    assert list(image(FeatureLevelRecord(name="metadata.version", feature_level=level + 1), *held).records())


def test_no_snapshot_is_written_before_metadata_version_is_known() -> None:
    with pytest.raises(ImageFailed, match=r"no record has set the metadata\.version yet"):
        list(EMPTY.records())


@pytest.mark.parametrize(("level", "broker", "partition"), [(7, 1, 0), (8, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)])
def test_records_are_written_in_the_version_of_their_level(level: int, broker: int, partition: int) -> None:
    made = image(
        FeatureLevelRecord(name="metadata.version", feature_level=level),
        RegisterBrokerRecord(broker_id=1),
        TOPIC,
        PartitionRecord(partition_id=0, topic_id=ID, replicas=[1], isr=[1], leader=1),
    )
    assert [version for _, version in made.records()] == [0, broker, 0, partition]
