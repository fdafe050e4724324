"""The golden logs, folded, are what Apache Kafka wrote into its own checkpoints: record for record, order aside."""

import itertools
from typing import Any

import pytest

from fastquorum.controller.image import EMPTY
from fastquorum.controller.image.fold import Fold
from fastquorum.wire import to_json
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import RegisterBrokerRecord, RegisterControllerRecord
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from tests.controller.image.logs import CHECKPOINTS, LOG, folded
from tests.wire.golden import CLUSTER, log_records

SEGMENT = f"{LOG}/{0:020d}.log"


def comparable(record: Message, version: int) -> tuple[str, int, str]:
    """Kafka's maps have no order: listeners and features of a registration come in any."""
    shown: dict[str, Any] = to_json(record, version)
    if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
        for key in ("endPoints", "features"):
            shown[key] = sorted(shown[key], key=lambda each: each["name"])
    return type(record).__name__, version, repr(shown)


@pytest.mark.parametrize("replica", ["c1", "c2", "c3"])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_an_image_at_an_offset_is_kafkas_checkpoint(replica: str, name: str) -> None:
    path = CLUSTER / replica / LOG / name
    if not path.exists():
        path = CLUSTER / "c1" / LOG / name  # c3 was down when some were written; the log is the same
    image = folded(CLUSTER / replica / SEGMENT, int(name[:20])).image
    theirs = [decode_metadata_record(record.value) for record in log_records(path) if not record.control]
    assert sorted(comparable(*each) for each in image.records()) == sorted(comparable(*each) for each in theirs)
    assert image == EMPTY.apply(record for record, _ in theirs)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_log_goes_on_from_a_checkpoint(name: str) -> None:
    """A node that was sent the snapshot folds the rest of the log from there on."""
    start = int(name[:20])
    fold = Fold(folded(CLUSTER / "c1" / LOG / name).image)
    for record in log_records(CLUSTER / "c1" / SEGMENT):
        if record.offset >= start and not record.control:
            fold.add(record.offset, decode_metadata_record(record.value)[0], 1, 1)
    assert fold.image == folded(CLUSTER / "c1" / SEGMENT).image


def test_what_is_written_of_an_image_makes_it_again() -> None:
    for name in CHECKPOINTS:
        image = folded(CLUSTER / "c1" / LOG / name).image
        written = [encode_metadata_record(*each) for each in image.records()]
        again = EMPTY.apply(decode_metadata_record(value)[0] for value in written)
        assert again == image
        assert [encode_metadata_record(*each) for each in again.records()] == written


def test_every_kind_comes_where_kafka_puts_it() -> None:
    """Features first, then brokers, controllers, topics each with its partitions, configurations, producer ids."""
    image = folded(CLUSTER / "c1" / LOG / CHECKPOINTS[-1]).image
    kinds = [type(record).__name__ for record, _ in image.records()]
    theirs = [
        type(decode_metadata_record(record.value)[0]).__name__
        for record in log_records(CLUSTER / "c1" / LOG / CHECKPOINTS[-1])
        if not record.control
    ]

    def order(names: list[str]) -> list[str]:
        merged = ["TopicRecord" if name == "PartitionRecord" else name for name in names]
        return [name for name, _ in itertools.groupby(merged)]

    assert order(kinds) == order(theirs)
