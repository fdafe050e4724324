"""`fastquorum image` and `image diff` over what Apache Kafka left."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.kernels import load
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from fastquorum.wire.records.cluster import BeginTransactionRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.cli.conftest import Ran
from tests.spark.damage import change
from tests.wire.golden import CLUSTER

DIRECTORY = CLUSTER / "c1"


def test_a_picture_of_the_cluster(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("image", DIRECTORY)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "The image of offsets below 3836, epoch 3"
    assert lines[1].startswith("Features: metadata.version 30, eligible.leader.replicas.version 1, group.version 1, ")
    assert lines[1].endswith("(4.3-IV0)")
    rows = [line.split() for line in lines]
    assert ["BROKER", "STATE", "EPOCH", "RACK", "LISTENERS"] in rows
    assert ["12", "active", "3096", "rack12", "PLAINTEXT://127.0.0.1:29012"] in rows
    assert sum(row[:1] == ["TOPIC"] for row in rows) == 1
    shown = json.loads(fastquorum("image", DIRECTORY, "--format", "json").out)
    assert (shown["endOffset"], shown["epoch"]) == (3836, 3)
    topics = shown["topics"]
    assert [row[:3] for row in rows if row and row[0] in topics] == [
        [name, topic["id"], str(len(topic["partitions"]))] for name, topic in sorted(topics.items())
    ]


def test_of_several_directories_each_is_shown_with_its_path(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    other = str(CLUSTER / "c2")
    ran = fastquorum("image", DIRECTORY, "/proc/nowhere", other)
    assert (ran.code, ran.err) == (2, "fastquorum image: /proc/nowhere: there is no such directory\n")
    lines = ran.out.splitlines()
    assert [line for line in lines if line.startswith("/")] == [str(DIRECTORY), other]
    assert sum(line.startswith("The image of offsets below ") for line in lines) == 2
    ran = fastquorum("image", DIRECTORY, other, "--format", "json")
    both = [json.loads(line) for line in ran.out.splitlines()]
    assert [each["path"] for each in both] == [str(DIRECTORY), other]
    alone = json.loads(fastquorum("image", DIRECTORY, "--format", "json").out)
    assert both[0] == {"path": str(DIRECTORY), **alone}
    (topic, *_) = alone["topics"]
    ran = fastquorum("image", DIRECTORY, other, "--topic", topic, "--format", "json")
    assert [json.loads(line)["path"] for line in ran.out.splitlines()] == [str(DIRECTORY), other]


def test_at_an_offset(fastquorum: Callable[..., Ran]) -> None:
    shown = json.loads(fastquorum("image", DIRECTORY, "--at", 145, "--format", "json").out)
    assert (shown["endOffset"], sorted(shown["brokers"]), shown["topics"]) == (145, ["11", "12", "13"], {})


def test_inside_a_batch_it_is_as_before_it_and_says_so(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("image", DIRECTORY, "--at", 7)
    assert ran.out.splitlines() == ["The image of offsets below 3, epoch 1", "Features: none"]
    assert ran.err == "offset 7 is inside a batch, and that counts as a whole: what is shown is as of 3\n"
    ran = fastquorum("image", DIRECTORY, "--at", 1800, "--format", "json")
    assert json.loads(ran.out)["endOffset"] == 1205
    assert ran.err == "offset 1800 is inside a batch, and that counts as a whole: what is shown is as of 1205\n"
    assert fastquorum("image", DIRECTORY, "--at", 1816).err == ""


def test_inside_a_transaction_it_is_as_before_it_and_says_so(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    copy = shutil.copytree(DIRECTORY, tmp_path / "n1")
    value = encode_metadata_record(BeginTransactionRecord(name="t"), 0)
    with (copy / LOG_DIRECTORY / segment_name(0)).open("ab") as file:
        file.write(load("pure").encode_values([value], base_offset=3836, leader_epoch=3, timestamp_ms=1))
    ran = fastquorum("image", copy)
    assert ran.out.startswith("The image of offsets below 3836, epoch 3, in a transaction that is open at 3837\n")
    open_one = "a transaction is open at 3837, and counts when it has ended: what is shown is as of 3836\n"
    for words in (("image", copy, "--format", "json"), ("shell", copy, "ls"), ("image", "diff", copy, "--from", 3836)):
        assert fastquorum(*words).err == open_one


def test_what_an_interrupted_write_left_is_left_out_and_corruption_is_not(
    fastquorum: Callable[..., Ran], tmp_path: Path
) -> None:
    copy = shutil.copytree(DIRECTORY, tmp_path / "n1")
    path = copy / LOG_DIRECTORY / segment_name(0)
    size = path.stat().st_size
    value = encode_metadata_record(BeginTransactionRecord(name="t"), 0)
    batch = bytes(load("pure").encode_values([value] * 9, base_offset=3836, leader_epoch=3, timestamp_ms=1))
    with path.open("ab") as file:
        file.write(batch[:-7])
    note = f"{path}: what an interrupted write left at byte {size} is left out, and the log ends at offset 3836; "
    whole, since = ("image", DIRECTORY, "--format", "json"), ("image", "diff", DIRECTORY, "--from", 1816)
    for words in (whole, since, ("shell", DIRECTORY, "ls", "/image"), (*since, "--to", 3836)):
        sound, torn = fastquorum(*words), fastquorum(*(copy if each is DIRECTORY else each for each in words))
        assert (torn.code, torn.out) == (0, sound.out)
        assert torn.err.startswith(note) or "--to" in words
    assert fastquorum("image", copy, "--at", 3836).err == ""
    beyond = fastquorum("image", copy, "--at", 3840)
    assert (beyond.code, beyond.out) == (2, "")
    assert "offset 3840 lies outside 0..3836" in beyond.err
    change(path, size - 200, b"\xff\x00\xff")
    bad = fastquorum("image", copy)
    assert (bad.code, bad.out) == (4, "")
    assert "corrupt: " in bad.err


def test_damage_before_a_good_batch_is_no_torn_end(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    copy = shutil.copytree(DIRECTORY, tmp_path / "n1")
    change(copy / LOG_DIRECTORY / segment_name(0), 5000, b"\xff\x00\xff")
    for words in (("image", copy), ("image", "diff", copy, "--from", 3), ("shell", copy, "ls")):
        ran = fastquorum(*words)
        assert (ran.code, ran.out) == (4, "")


def test_brokers_that_stop_or_are_fenced_are_told_apart(fastquorum: Callable[..., Ran]) -> None:
    def states(at: int) -> list[str]:
        rows = [line.split() for line in fastquorum("image", DIRECTORY, "--at", at).out.splitlines()]
        return [row[1] for row in rows if row[:1] in (["11"], ["12"], ["13"])]

    assert states(1816) == ["active", "active", "fenced"]
    assert states(3068) == ["active", "stopping", "active"]


def test_one_topic(fastquorum: Callable[..., Ran]) -> None:
    topics = json.loads(fastquorum("image", DIRECTORY, "--format", "json").out)["topics"]
    name, topic = next(iter(topics.items()))
    assert json.loads(fastquorum("image", DIRECTORY, "--topic", name, "--format", "json").out) == {"name": name} | topic
    first, header, *rows = fastquorum("image", DIRECTORY, "--topic", name).out.splitlines()
    assert first == f"Topic {name}, id {topic['id']}"
    assert header.split()[:5] == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR"]
    assert [row.split()[1] for row in rows] == [str(each["leader"]) for each in topic["partitions"].values()]
    refused = fastquorum("image", DIRECTORY, "--topic", "nonsense")
    assert (refused.code, refused.out) == (2, "")
    assert "there is no topic 'nonsense' in the image" in refused.err


def test_what_changed(fastquorum: Callable[..., Ran]) -> None:
    back = ("image", "diff", DIRECTORY, "--from", 1835, "--to", 1836)
    assert fastquorum(*back).out == "broker 13: fenced true -> false\n"
    inside = fastquorum("image", "diff", DIRECTORY, "--from", 1300, "--to", 1800)
    assert (inside.out, len(inside.err.splitlines())) == ("nothing changed\n", 2)
    fencing = ("image", "diff", DIRECTORY, "--from", 1205, "--to", 1816)
    words = fastquorum(*fencing).out.splitlines()
    values = [json.loads(line) for line in fastquorum(*fencing, "--format", "json").out.splitlines()]
    assert len(words) == len(values) > 1
    assert {each["kind"] for each in values} == {"broker", "partition"}
    assert all(line.startswith(f"{each['kind']} {each['name']}: ") for line, each in zip(words, values, strict=True))
    nothing = ("image", "diff", DIRECTORY, "--from", 3836)
    assert (fastquorum(*nothing).out, fastquorum(*nothing, "--format", "json").out) == ("nothing changed\n", "")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("image", DIRECTORY, "--at", 9999), 2, "offset 9999 lies outside 0..3836"),
        (("image", "diff", DIRECTORY, "--from", 5, "--to", 4), 2, "offset 4 is below 5"),
        (("image", DIRECTORY / "nowhere"), 2, "nowhere: there is no such directory\n"),
        (("image", Path(__file__)), 2, "test_image.py: is not a directory\n"),
        (("image", DIRECTORY, "--at", "x"), 2, "'x' is not a whole number from 0"),
        (("image", "diff", DIRECTORY), 2, "--from"),
        (("image",), 2, "DIR"),
    ],
)
def test_what_cannot_be_shown(fastquorum: Callable[..., Ran], words: tuple[object, ...], code: int, why: str) -> None:
    ran = fastquorum(*words)
    assert (ran.code, ran.out) == (code, "")
    assert why in ran.err
    assert "Traceback" not in ran.err
