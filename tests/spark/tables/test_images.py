"""Tables of the image at an offset: what Kafka's own snapshots hold, and what changed between two."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import differences
from fastquorum.controller.image.view import sections_view
from fastquorum.errors import OffsetOutOfRange, UsageError
from fastquorum.kernels import load
from fastquorum.spark.scan import read_table
from fastquorum.storage.images import fold_log, fold_snapshot
from fastquorum.storage.io.opening import open_offline
from fastquorum.types import NO_NODE, OffsetAndEpoch
from tests.spark.damage import make_log
from tests.wire.golden import CLUSTER

PATH = str(CLUSTER / "c1")
KERNELS = load("native")
LOGS = {node: open_offline(str(CLUSTER / node), KERNELS) for node in ("c1", "c2", "c3")}
LOG = LOGS["c1"]


def image_at(offset: int | None) -> Image:
    return fold_log(LOG, KERNELS, offset).image


def shown(image: Image) -> dict[tuple[str, str | None], Any]:
    """Section and key to value, as a program reads them."""
    return {
        (section, key or None): json.loads(json.dumps(value))
        for section, things in sections_view(image)
        for key, value in things
    }


def read(table: str, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(PATH, table, **options).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("node", "snapshot"), [(node, each) for node, log in LOGS.items() for each in log.checkpoints], ids=str
)
def test_the_image_at_a_real_checkpoints_offset_is_that_checkpoint(node: str, snapshot: OffsetAndEpoch) -> None:
    rows = read_table(str(CLUSTER / node), "image", asOfOffset=snapshot.offset).to_pylist()
    expected = shown(fold_snapshot(LOGS[node], KERNELS, snapshot).image)
    found = {(row["section"], row["key"]): json.loads(row["data"]) for row in rows}
    assert found == expected
    assert {row["end_offset"] for row in rows} == {snapshot.offset}


@pytest.mark.parametrize("offset", [500, 1820, 2460, 3836])
def test_partitions_topics_brokers_and_configs_are_the_images(offset: int) -> None:
    image = image_at(offset)
    partitions = read("partitions", asOfOffset=offset)
    assert len(partitions) == sum(len(topic.partitions) for topic in image.topics.sorted())
    for row in partitions:
        topic = image.topics.named(row["topic"])
        assert topic is not None
        there = dict(topic.partitions.items())[row["partition"]]
        assert (row["leader"], tuple(row["isr"]), tuple(row["replicas"])) == (there.leader, there.isr, there.replicas)
        assert (row["leader_epoch"], row["partition_epoch"]) == (there.leader_epoch, there.partition_epoch)
        assert row["directories"] == [str(each) for each in there.directories]
        assert (row["topic_id"], row["change"], row["before"], row["error"]) == (str(topic.id), None, None, None)
    topics = {row["topic"]: row for row in read("topics", asOfOffset=offset)}
    assert list(topics) == [topic.name for topic in image.topics.sorted()]
    for topic in image.topics.sorted():
        leaderless = sum(each.leader == NO_NODE for each in topic.partitions)
        assert (topics[topic.name]["partition_count"], topics[topic.name]["leaderless_count"]) == (
            len(topic.partitions),
            leaderless,
        )
    brokers = {row["broker_id"]: row for row in read("brokers", asOfOffset=offset)}
    assert {each: row["fenced"] for each, row in brokers.items()} == {
        each: broker.fenced for each, broker in image.brokers.items()
    }
    assert [each["name"] for row in brokers.values() for each in row["listeners"]] == ["PLAINTEXT"] * len(brokers)
    configs = {(row["resource_name"], row["name"]): row["value"] for row in read("configs", asOfOffset=offset)}
    assert configs == {
        (resource.name, name): value for resource, values in image.configs.items() for name, value in values.items()
    }


def test_what_changed_between_two_offsets_is_told_with_what_it_was() -> None:
    before, after = image_at(1800), image_at(1830)
    rows = read("image", diffFrom=1800, asOfOffset=1830)
    assert len(rows) == len(list(differences(before, after)))
    changed = {row["topic"]: row for row in read("partitions", diffFrom=1800, asOfOffset=1830)}
    assert changed
    for row in read("partitions", diffFrom=1800, asOfOffset=1830):
        assert row["change"] == "changed"
        assert row["before"]["partition_epoch"] < row["partition_epoch"]
        assert 13 not in row["isr"] or row["leader"] != 13
    (broker,) = [row for row in read("brokers", diffFrom=1800, asOfOffset=1830) if row["broker_id"] == 13]
    assert (broker["change"], broker["before"]["fenced"], broker["fenced"]) == ("changed", False, True)


def test_nothing_changed_between_an_offset_and_itself() -> None:
    assert read("image", diffFrom=2000, asOfOffset=2000) == []


def test_a_topic_alone() -> None:
    assert {row["topic"] for row in read("partitions", topic="clicks-15", asOfOffset=977)} == {"clicks-15"}


def test_as_of_a_time() -> None:
    by_time = read("brokers", asOfTimestamp="2026-11-21T06:34:25Z")
    (broker,) = [row for row in by_time if row["broker_id"] == 13]
    assert broker["fenced"]
    assert broker["end_offset"] <= 1827


def test_beyond_the_log_the_error_names_it_and_what_it_holds() -> None:
    with pytest.raises(OffsetOutOfRange, match=f"{PATH}.*3836"):
        read("image", asOfOffset=9999)
    (row,) = read("image", asOfOffset=9999, mode="quarantine")
    assert "3836" in row["error"]


def test_what_means_nothing_to_an_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="option fromOffset means nothing to table 'image'"):
        read("image", fromOffset=3)
    with pytest.raises(UsageError, match="option topic means nothing to table 'brokers'"):
        read("brokers", topic="a")
    with pytest.raises(UsageError, match="holds user records; table 'image' is made of metadata logs"):
        read_table(str(make_log(tmp_path / "n1")), "image")
