"""Transactions of metadata records: what one holds counts when it has ended, or never. KIP-868."""

import pytest

from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.features import Features, Level
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import ImageFailed
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
)


def ids(next_producer_id: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(next_producer_id=next_producer_id)


def fold(*records: Message) -> Fold:
    """Fold records at offsets from 0, in epoch 3, a millisecond apart."""
    folded = Fold()
    for offset, record in enumerate(records):
        folded.add(offset, record, 3, 1000 + offset)
    return folded


def test_records_count_at_once() -> None:
    folded = fold(ids(1000), NoOpRecord(), ids(2000))
    assert folded.image == Image(next_producer_id=2000)
    assert folded.place == Place(3, 3, 1002)


def test_a_transaction_counts_when_it_has_ended() -> None:
    folded = fold(ids(1), BeginTransactionRecord(name="t"), ids(2), ids(3))
    assert (folded.image.next_producer_id, folded.place) == (1, Place(1, 3, 1000))
    assert folded.is_in_transaction
    assert folded.next_offset == 4
    folded.add(4, EndTransactionRecord(), 3, 1004)
    assert (folded.image.next_producer_id, folded.place) == (3, Place(5, 3, 1004))
    assert not folded.is_in_transaction


def test_an_aborted_transaction_never_happened() -> None:
    folded = fold(ids(1), BeginTransactionRecord(), ids(2), AbortTransactionRecord(reason="Controller failover"))
    assert (folded.image.next_producer_id, folded.place) == (1, Place(4, 3, 1003))
    folded.add(4, ids(5), 4, 1004)
    assert (folded.image.next_producer_id, folded.place) == (5, Place(5, 4, 1004))


def test_a_leader_change_in_a_transaction_moves_nothing() -> None:
    folded = fold(BeginTransactionRecord(), ids(1))
    folded.skip(3, 4, 2000)
    assert (folded.place, folded.next_offset) == (Place(), 3)
    folded.add(3, EndTransactionRecord(), 4, 2001)
    assert folded.place == Place(4, 4, 2001)


@pytest.mark.parametrize(
    ("records", "name", "offset"),
    [
        ((BeginTransactionRecord(), BeginTransactionRecord()), "BEGIN_TRANSACTION_RECORD", 1),
        ((ids(1), EndTransactionRecord()), "END_TRANSACTION_RECORD", 1),
        ((AbortTransactionRecord(),), "ABORT_TRANSACTION_RECORD", 0),
    ],
)
def test_a_misplaced_transaction_record_is_named(records: tuple[Message, ...], name: str, offset: int) -> None:
    with pytest.raises(ImageFailed, match=rf"^{name} at offset {offset} cannot be applied .* transaction is open"):
        fold(*records)


def test_a_record_that_does_not_fit_is_named_by_its_own_offset_even_at_the_end_of_a_transaction() -> None:
    bad = FeatureLevelRecord(name="metadata.version", feature_level=99)
    with pytest.raises(ImageFailed, match=r"^FEATURE_LEVEL_RECORD at offset 1 .*: metadata.version 99 is unknown"):
        fold(BeginTransactionRecord(), bad, ids(1), EndTransactionRecord())


def test_an_image_that_was_asked_for_stays_as_it_was() -> None:
    folded = fold(FeatureLevelRecord(name="metadata.version", feature_level=30))
    first = folded.image
    folded.add(1, ids(7), 3, 1001)
    assert first == EMPTY._replace(features=Features(Level(30)))
    assert folded.image == first._replace(next_producer_id=7)
