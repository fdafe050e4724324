"""What the active controller has folded is not folded again when it is committed, and nothing else is taken for it."""

from collections.abc import Sequence

import pytest

from fastquorum.controller.image import Image
from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.controller.image.image import ImageEditor
from fastquorum.kernels import Kernels, load
from fastquorum.node.metadata.folding import MetadataFolder, Step
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import AbortTransactionRecord, BeginTransactionRecord, NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord
from tests.node.rig import Rig
from tests.node.test_controller_role import after_restart, leader, register, registration

EPOCH, AT_MS = 3, 77


@pytest.fixture(scope="module", params=["native", "pure"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def topic(number: int, name: str = "", leader: int = 1) -> list[Message]:
    """Its records."""
    topic_id = Uuid(bytes([number]) * 16)
    partition = PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=leader)
    return [TopicRecord(name=name or f"topic-{number}", topic_id=topic_id), partition]


def values(records: Sequence[Message]) -> list[bytes]:
    return [encode_metadata_record(record, 0) for record in records]


class Log:
    """A log, a fold of what is committed of it, and a controller that appends."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self.counts = PartitionCounts()
        self.fold = Fold(counts=self.counts)
        self.folder = MetadataFolder(kernels)
        self.image = self.fold.image
        """The controller's."""
        self.end = 0

    def foresee(self, records: Sequence[Message], *, before: Image | None = None) -> Image:
        """The controller appends these; its image then."""
        before = self.image if before is None else before
        editor = ImageEditor(before)
        for record in records:
            editor.apply(record)
        self.image = editor.finish()
        self.folder.foreseen.add(Step(self.end, before, values(records), editor, self.image))
        self.end += len(records)
        return self.image

    def commit(self, records: Sequence[Message]) -> Image:
        """One batch, from where the fold stands; the committed image then."""
        data = self.kernels.encode_values(
            values(records), base_offset=self.fold.next_offset, leader_epoch=EPOCH, timestamp_ms=AT_MS
        )
        self.folder.take(bytes(data), self.fold)
        return self.fold.image


@pytest.fixture
def log(kernels: Kernels) -> Log:
    return Log(kernels)


def test_what_was_foreseen_is_taken_over_when_it_is_committed(log: Log) -> None:
    first = log.foresee(topic(1))
    second = log.foresee(topic(2, leader=2))
    assert log.commit(topic(1)) is first
    assert log.fold.place == Place(2, EPOCH, AT_MS)
    assert log.counts == PartitionCounts(partitions=1)
    assert log.commit(topic(2, leader=2)) is second
    assert log.fold.place == Place(4, EPOCH, AT_MS)
    assert log.counts == PartitionCounts(partitions=2, imbalanced=1) == PartitionCounts.of(second.topics)


def test_several_appends_may_be_one_batch(log: Log) -> None:
    log.foresee(topic(1))
    second = log.foresee(topic(2))
    assert log.commit([*topic(1), *topic(2)]) is second


def test_another_record_that_is_committed_there_is_what_counts(log: Log) -> None:
    foreseen = log.foresee(topic(1))
    after = log.commit(topic(1, leader=2))
    assert after != foreseen
    assert after == Image().apply(topic(1, leader=2))
    assert log.counts == PartitionCounts(partitions=1, imbalanced=1)


def test_what_follows_on_it_is_not_taken_over_either(log: Log) -> None:
    log.foresee(topic(1))
    log.foresee(topic(2))
    log.commit(topic(1, leader=2))
    assert log.commit(topic(2)) == Image().apply([*topic(1, leader=2), *topic(2)])


def test_fewer_records_than_were_foreseen_are_folded(log: Log) -> None:
    log.foresee(topic(1))
    assert log.commit(topic(1)[:1]) == Image().apply(topic(1)[:1])
    assert log.commit(topic(1)[1:]) == Image().apply(topic(1))


def test_what_was_foreseen_of_another_image_is_not_taken_over(log: Log) -> None:
    log.foresee(topic(1), before=Image().apply(topic(2)))
    assert log.commit(topic(1)) == Image().apply(topic(1))


def test_what_was_foreseen_for_another_offset_is_not_taken_over(log: Log) -> None:
    log.end = 2
    foreseen = log.foresee(topic(1))
    assert log.commit(topic(1)) is not foreseen
    assert log.commit(topic(2)) == Image().apply([*topic(1), *topic(2)])


def test_what_is_in_a_transaction_counts_when_that_has_ended(log: Log) -> None:
    log.commit([BeginTransactionRecord()])
    log.end = 1
    log.foresee(topic(1))
    assert log.commit(topic(1)) == Image()
    assert log.fold.is_in_transaction


def test_what_changes_nothing_leaves_the_very_image(log: Log) -> None:
    """So that what follows is taken over all the same."""
    log.commit([*topic(1), BeginTransactionRecord(), *topic(2)])
    log.image, log.end = log.fold.image, 5
    log.folder.foreseen.add(Step(5, log.image, values([AbortTransactionRecord()]), ImageEditor(log.image), log.image))
    log.end = 6
    log.foresee([NoOpRecord()])
    after = log.foresee(topic(3))
    log.commit([AbortTransactionRecord()])
    log.commit([NoOpRecord()])
    assert log.commit(topic(3)) is after == Image().apply([*topic(1), *topic(3)])


def test_of_a_lead_that_is_over_nothing_is_taken_over(log: Log) -> None:
    foreseen = log.foresee(topic(1))
    log.folder.foreseen.clear()
    assert log.commit(topic(1)) == foreseen
    assert log.fold.image is not foreseen


# --- on a replica -----------------------------------------------------------------------------------------------------


def images(rig: Rig) -> tuple[Image, Image | None]:
    """Return the committed image and the one that the controller decides on."""
    role = rig.replica.controller
    assert role is not None
    return role.replay.image, None if role.state is None else role.state.image


def test_the_controllers_image_is_the_committed_one_as_soon_as_it_is_and_no_sooner() -> None:
    rig = leader()
    register(rig, 1)
    committed, decided = images(rig)
    assert committed is decided
    rig.ask(rig.accept(), registration(2), 4)
    rig.ask(rig.accept(), registration(3), 4)
    shown, decided = images(rig)
    assert shown is committed, "nothing more is committed"
    assert decided is not None
    assert list(decided.brokers) == [1, 2, 3]
    rig.sync()
    assert images(rig) == (decided, decided)
    assert images(rig)[0] is decided


def test_after_a_transaction_was_aborted_it_is_so_too() -> None:
    plain = leader()
    plain.append(encode_metadata_record(BeginTransactionRecord(name="half"), 0))
    rig = after_restart(plain)
    rig.work()
    rig.sync()
    register(rig, 1)
    committed, decided = images(rig)
    assert committed is decided
    assert list(committed.brokers) == [1]


def test_a_lead_that_ends_takes_what_it_foresaw_with_it() -> None:
    """The log says what came of it, as it does to everybody."""
    rig = leader(1, 2, 3)
    follower = rig.accept()
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    rig.ask(rig.accept(), registration(1), 4)
    end = rig.log.end_offset
    _, decided = images(rig)
    assert decided is not None
    assert 1 in decided.brokers
    rig.sync()
    epoch = rig.replica.raft.epoch
    rig.follow(2, epoch + 1)
    rig.work()
    committed, nobody = images(rig)
    assert nobody is None
    assert 1 not in committed.brokers
    assert rig.log.end_offset == end, "it may be committed yet"
    replay = rig.replica.controller.replay  # type: ignore[union-attr]
    assert not replay.foreseen
