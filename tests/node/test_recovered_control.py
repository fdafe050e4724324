"""What raft/ is told of a recovered log: the voter sets and kraft.versions in it, without reading the log again."""

import pytest

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Attribute, Kernels, Record, load
from fastquorum.kernels.producers import Stamp
from fastquorum.node.records.control_batches import encode_batch, recovered
from fastquorum.types import OffsetAndEpoch
from fastquorum.wire.records.control_values import KRaftVersionRecord
from tests.storage.logs import Rig


@pytest.fixture(params=["pure", "native"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def append_version(rig: Rig, epoch: int, version: int) -> None:
    base = rig.log.end_offset
    batch = encode_batch(rig.kernels, [KRaftVersionRecord(kraft_version=version)], base, epoch, 1_000)
    rig.log.append_batch(batch, base_offset=base, next_offset=base + 1, epoch=epoch, timestamp_ms=1_000)


def append_stamped(rig: Rig, producer_id: int, epoch: int = 1) -> None:
    base = rig.log.end_offset
    batch = rig.kernels.encode_values(
        [b"stamped"],
        base_offset=base,
        leader_epoch=epoch,
        timestamp_ms=1_000,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    rig.log.append_batch(batch, base_offset=base, next_offset=base + 1, epoch=epoch, timestamp_ms=1_000)


def written(kernels: Kernels) -> Rig:
    """Two versions among values, over several segments; a producer's batch in the first."""
    rig = Rig(kernels)
    append_version(rig, 1, 0)
    append_stamped(rig, 77)
    for number in range(20):
        rig.append(1, b"%d" % number)
    append_version(rig, 1, 1)
    for number in range(20):
        rig.append(2, b"%d" % number)
    rig.flush()
    return rig


def test_what_recovery_saw_is_told_and_nothing_is_read_again(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    again = written(kernels).reopen()

    def read(*_: object) -> bytes:
        raise AssertionError("the log was read again")

    monkeypatch.setattr(again.log, "read", read)
    assert recovered(kernels, again.log) == ((), ((0, 0), (22, 1)))
    assert again.log.producers.end_offset == again.log.end_offset
    assert again.log.producers.get(77) is not None


def test_what_was_appended_since_is_told_too(kernels: Kernels) -> None:
    again = written(kernels).reopen()
    append_version(again, 2, 1)
    append_stamped(again, 78, epoch=2)
    end = again.log.end_offset
    assert recovered(kernels, again.log) == ((), ((0, 0), (22, 1), (end - 2, 1)))
    assert again.log.producers.end_offset == end
    assert again.log.producers.get(78) is not None


def test_what_was_truncated_since_is_not_told(kernels: Kernels) -> None:
    again = written(kernels).reopen()
    assert again.log.truncate_to(22) == 22
    assert recovered(kernels, again.log) == ((), ((0, 0),))
    assert again.log.producers.check(Stamp(77, 0, 0, 1)) is not None  # it is there, once


def test_a_log_that_begins_anew_behind_a_snapshot_tells_nothing_of_before(kernels: Kernels) -> None:
    again = written(kernels).reopen()
    again.install(OffsetAndEpoch(100, 2))
    assert recovered(kernels, again.log) == ((), ())
    append_version(again, 3, 1)
    again.flush()
    assert recovered(kernels, again.reopen().log) == ((), ((100, 1),))


def test_a_control_record_that_does_not_decode_is_corruption_with_its_offset(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    record = Record(value=b"\xff", key=b"\0\0\0\5")  # a kraft.version of no length
    batch = kernels.encode_records(
        [record], base_offset=1, leader_epoch=1, timestamp_ms=1_000, attributes=Attribute.CONTROL
    )
    rig.log.append_batch(batch, base_offset=1, next_offset=2, epoch=1, timestamp_ms=1_000)
    rig.flush()
    with pytest.raises(CorruptionError) as raised:
        recovered(kernels, rig.reopen().log)
    assert raised.value.offset == 1
