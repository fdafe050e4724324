"""What changed between two images, in words and as values."""

import json

import pytest

from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.image.diff import differences
from fastquorum.controller.image.view import image_view
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord
from fastquorum.wire.records.cluster import ClientQuotaRecord, ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.controller.image.test_image import FULL

ID = Uuid(bytes(range(16)))
OTHER = Uuid(bytes(range(1, 17)))
BROKER = RegisterBrokerRecord(broker_id=2, broker_epoch=7, incarnation_id=ID)
TOPIC = TopicRecord(name="t", topic_id=ID)


def part(number: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number, topic_id=ID, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=0, partition_epoch=0
    )


def config(value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value=value)


BEFORE = EMPTY.apply([FeatureLevelRecord(name="metadata.version", feature_level=29), BROKER, TOPIC, part(0), part(1)])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (FeatureLevelRecord(name="metadata.version", feature_level=30), "feature metadata.version: level 29 -> 30"),
        (FeatureLevelRecord(name="group.version", feature_level=1), "feature group.version created: level 1"),
        (
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=7, fenced=-1, in_controlled_shutdown=1),
            "broker 2: fenced true -> false, inControlledShutdown false -> true",
        ),
        (UnregisterBrokerRecord(broker_id=2, broker_epoch=7), "broker 2 gone: epoch 7, fenced"),
        (RegisterBrokerRecord(broker_id=10, broker_epoch=9, fenced=False), "broker 10 created: epoch 9"),
        (TopicRecord(name="u", topic_id=OTHER), f"topic u created: 0 partitions, id {OTHER}"),
        (RemoveTopicRecord(topic_id=ID), f"topic t gone: 2 partitions, id {ID}"),
        (part(2), "partition t-2 created: leader 1, replicas [1, 2]"),
        (
            PartitionChangeRecord(partition_id=1, topic_id=ID, isr=[2], leader=2),
            "partition t-1: leader 1 -> 2, isr [1, 2] -> [2], leaderEpoch 0 -> 1, partitionEpoch 0 -> 1",
        ),
        (config("1"), "config topic t created: retention.ms 1"),
        (ProducerIdsRecord(next_producer_id=5), "producer ids: next -1 -> 5"),
    ],
)
def test_one_change_in_words(record: Message, words: str) -> None:
    assert [each.words for each in differences(BEFORE, BEFORE.apply([record]))] == [words]


def test_a_value_that_came_or_went_is_shown_against_a_dash() -> None:
    one = BEFORE.apply([config("1")])
    second = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="flush.ms", value="2")
    both = one.apply([second])
    assert [each.words for each in differences(one, both)] == ["config topic t: flush.ms - -> 2"]
    assert [each.words for each in differences(both, one)] == ["config topic t: flush.ms 2 -> -"]


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    anew = BEFORE.apply([RemoveTopicRecord(topic_id=ID), TopicRecord(name="t", topic_id=OTHER)])
    assert [each.words for each in differences(BEFORE, anew)] == [
        f"topic t gone: 2 partitions, id {ID}",
        f"topic t created: 0 partitions, id {OTHER}",
    ]


def test_brokers_come_by_number() -> None:
    many = EMPTY.apply(RegisterBrokerRecord(broker_id=number, broker_epoch=number) for number in (10, 9, 100))
    assert [each.name for each in differences(EMPTY, many)] == ["9", "10", "100"]


def test_a_quota_is_named_by_whom_it_is_for() -> None:
    parts = [
        ClientQuotaRecord.EntityData(entity_type="user", entity_name=None),
        ClientQuotaRecord.EntityData(entity_type="client-id", entity_name="c"),
    ]
    after = EMPTY.apply([ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=1.5)])
    assert [each.words for each in differences(EMPTY, after)] == [
        "client quota client-id c, user default created: producer_byte_rate 1.5"
    ]


def full() -> Image:
    return EMPTY.apply(FULL)


def test_as_values_it_is_json_and_says_the_same() -> None:
    shown = [json.loads(json.dumps(each.as_view())) for each in differences(EMPTY, full())]
    assert [each["change"] for each in shown if each["kind"] != "producer ids"] == ["created"] * (len(shown) - 1)
    assert {each["kind"] for each in shown} == {
        "feature",
        "broker",
        "controller",
        "topic",
        "config",
        "client quota",
        "producer ids",
        "acl",
        "scram",
        "delegation token",
    }
    gone = [each.as_view() for each in differences(full(), EMPTY)]
    assert [(each["kind"], each["name"]) for each in gone] == [(each["kind"], each["name"]) for each in shown]
    (changed,) = differences(BEFORE, BEFORE.apply([PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1])]))
    assert changed.as_view() == {
        "kind": "partition",
        "name": "t-0",
        "change": "changed",
        "fields": {"isr": {"before": [1, 2], "after": [1]}, "partitionEpoch": {"before": 0, "after": 1}},
    }


def test_nothing_secret_is_shown() -> None:
    shown = json.dumps(image_view(full())) + json.dumps([each.as_view() for each in differences(EMPTY, full())])
    assert "SCRAM-SHA-256 a" in shown
    assert "salt" not in shown
    assert "storedKey" not in shown


def test_equal_images_do_not_differ() -> None:
    assert list(differences(full(), full())) == []
    assert list(differences(full(), EMPTY.apply(FULL[::1]))) == []
