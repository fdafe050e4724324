"""What one request may make at most, and what it names more than once. Kafka `ControllerApis`, `BoundedList`."""

from typing import Any

import pytest

from fastquorum.controller.requests import refused
from fastquorum.types import TOPIC_NAME, ZERO_UUID, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.controller.rig import TOPIC_ID, Controller, refusal, uuid
from tests.controller.test_topics import NewTopic, ask, create, delete, three, topic

INVALID = ErrorCode.INVALID_REQUEST


def outcomes(results: list[Any]) -> list[tuple[str | None, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in results]


def held(controller: Controller) -> list[str]:
    return sorted(controller.state.image.topics.ids)


# --- how much ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_tried_only", [True, False])
@pytest.mark.parametrize(
    ("topics", "text"),
    [
        ([topic("a", 6_000), topic("b", 4_001)], "Excessively large number of partitions per request."),
        ([topic("a", 10_000)], "Unable to perform excessively large batch operation."),
        ([topic("a", 9_999, retention_ms="5")], "Unable to perform excessively large batch operation."),
        ([topic("a", 9_998), topic("b", 1)], "Unable to perform excessively large batch operation."),
    ],
)
def test_a_request_that_would_write_too_much_writes_nothing(
    topics: list[NewTopic], text: str, is_tried_only: bool
) -> None:
    """A topic is one record, and each of its configurations and partitions one."""
    controller = three()
    before = len(controller.records)
    request = CreateTopicsRequest(topics=topics, validate_only=is_tried_only)
    with pytest.raises(Exception, match=text):
        ask(controller, request)
    assert refusal(lambda: ask(controller, request)) is ErrorCode.POLICY_VIOLATION
    answer: Any = refused(request, 7, ErrorCode.POLICY_VIOLATION, text)
    assert outcomes(answer.topics) == [(each.name, ErrorCode.POLICY_VIOLATION, text) for each in topics]
    assert len(controller.records) == before


@pytest.mark.parametrize(
    "topics",
    [
        [topic("a", 9_999)],
        [topic("a", 9_998, retention_ms="5")],
        [topic("a", 9_999), topic("b", 1, replicas=9)],  # which cannot be, and so is no record
        [topic("a", 9_999), topic("b", 5), topic("b", 5), topic(TOPIC_NAME, 5)],
    ],
)
def test_what_fits_is_made(topics: list[NewTopic]) -> None:
    controller = three()
    before = len(controller.records)
    create(controller, *topics)
    assert len(controller.records) == before + 10_000
    assert held(controller) == ["a"]


@pytest.mark.parametrize(("count", "code"), [(10_001, 0), (10_002, ErrorCode.POLICY_VIOLATION)])
def test_as_many_partitions_are_added_as_records_may_be_written(count: int, code: int) -> None:
    controller = three()
    controller.topic([1, 2])
    request = CreatePartitionsRequest(topics=[grown("t", count)], validate_only=True)
    assert [each.error_code for each in ask(controller, request, 3).results] == [code]
    assert controller.written == []


# --- more than once ---------------------------------------------------------------------------------------------------


def grown(name: str, count: int) -> CreatePartitionsRequest.CreatePartitionsTopic:
    return CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)


def test_a_topic_that_is_named_more_than_once_is_not_made_and_answered_once() -> None:
    controller = three()
    topics = [
        topic("d"),
        topic("b", 20_000),
        topic("a"),
        topic(TOPIC_NAME),
        topic("b"),
        topic("d"),
        topic("d"),
        topic("c"),
    ]
    assert outcomes(create(controller, *topics)) == [
        ("a", 0, None),
        ("c", 0, None),
        ("d", INVALID, "Duplicate topic name."),
        ("b", INVALID, "Duplicate topic name."),
        (TOPIC_NAME, INVALID, "Creation of internal topic __cluster_metadata is prohibited."),
    ]
    assert held(controller) == ["a", "c"]


def test_a_topic_that_is_to_grow_more_than_once_does_not_and_is_answered_once() -> None:
    controller = three()
    controller.topic([1, 2])
    controller.topic([1, 2], name="u", topic_id=uuid(2))
    request = CreatePartitionsRequest(topics=[grown("u", 2), *(grown("t", each) for each in (5, 6, 7)), grown("v", 3)])
    assert outcomes(ask(controller, request, 3).results) == [
        ("t", INVALID, "Duplicate topic name."),
        ("u", 0, None),
        ("v", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ]
    assert len(controller.written) == 1


@pytest.mark.parametrize(
    ("named", "answers"),
    [
        ([("t", ZERO_UUID)] * 3, [("t", ZERO_UUID, "Duplicate topic name.")]),
        ([("nowhere", ZERO_UUID)] * 2, [("nowhere", ZERO_UUID, "Duplicate topic name.")]),
        ([(None, TOPIC_ID)] * 3, [(None, TOPIC_ID, "Duplicate topic id.")]),
        (
            [("t", ZERO_UUID), (None, TOPIC_ID)],
            [("t", TOPIC_ID, "The provided topic name maps to an ID that was already supplied.")],
        ),
        (
            [("t", ZERO_UUID), (None, TOPIC_ID), (None, TOPIC_ID)],
            [
                (None, TOPIC_ID, "Duplicate topic id."),
                ("t", TOPIC_ID, "The provided topic name maps to an ID that was already supplied."),
            ],
        ),
    ],
)
def test_a_topic_that_is_to_be_deleted_more_than_once_stays_and_is_answered_once(
    named: list[tuple[str | None, Uuid]], answers: list[tuple[str | None, Uuid, str]]
) -> None:
    controller = three()
    controller.topic([1])
    controller.topic([1], name="u", topic_id=uuid(2))
    results = delete(controller, *named, ("u", ZERO_UUID))
    assert [(each.name, each.topic_id, each.error_message) for each in results] == [*answers, ("u", uuid(2), None)]
    assert [each.error_code for each in results] == [INVALID] * len(answers) + [0]
    assert held(controller) == ["t"]


def test_so_it_is_for_older_clients() -> None:
    controller = three()
    controller.topic([1])
    answer = ask(controller, DeleteTopicsRequest(topic_names=["t", "u", "t"]), 5)
    assert outcomes(answer.responses) == [
        ("t", INVALID, "Duplicate topic name."),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
    ]
    assert held(controller) == ["t"]
