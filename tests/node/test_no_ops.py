"""An idle leader of a metadata log appends no-ops; nobody else does."""

from fastquorum.config import MS, QuorumConfig
from fastquorum.node.records.bootstrap_records import first_values
from fastquorum.node.records.no_ops import NO_OP
from fastquorum.storage.identity import LogKind
from tests.lane.builders import value_batch
from tests.node.rig import Rig
from tests.node.test_first_records import LEVELS, stored

FIRST = list(first_values(LEVELS))


def leader(idle_us_max: int = 500 * MS) -> Rig:
    config = QuorumConfig(preallocate_bytes=4096, idle_us_max=idle_us_max)
    return Rig(kind=LogKind.METADATA, config=config, first_records=LEVELS).lead()


def after(rig: Rig, us: int) -> list[bytes]:
    """What its log holds after the first records, so much later."""
    rig.pass_time(us)
    rig.sync()
    assert rig.replica.high_watermark == rig.log.end_offset
    return stored(rig)[len(FIRST) :]


def test_one_for_every_interval_in_which_nothing_else_was_appended() -> None:
    rig = leader()
    assert after(rig, 499 * MS) == []
    assert after(rig, 1 * MS) == [NO_OP]
    assert after(rig, 1_000 * MS) == [NO_OP] * 3
    rig.pass_time(499 * MS)
    rig.append(LEVELS[0])
    assert after(rig, 499 * MS) == [NO_OP, NO_OP, NO_OP, LEVELS[0]]
    assert after(rig, 1 * MS) == [NO_OP, NO_OP, NO_OP, LEVELS[0], NO_OP]


def test_none_if_the_interval_is_0() -> None:
    assert after(leader(0), 5_000 * MS) == []


def test_none_in_a_user_log() -> None:
    rig = Rig(config=QuorumConfig(preallocate_bytes=4096)).lead()
    rig.append(b"first")
    rig.pass_time(5_000 * MS)
    assert stored(rig) == [b"first"]


def test_none_before_the_first_record() -> None:
    rig = Rig(kind=LogKind.METADATA).lead()
    rig.pass_time(5_000 * MS)
    assert stored(rig) == []
    rig.append(LEVELS[0])
    rig.sync()
    rig.pass_time(500 * MS)
    rig.sync()
    assert stored(rig) == [LEVELS[0], NO_OP]


def test_none_by_a_follower() -> None:
    rig = Rig(1, 2, 3, kind=LogKind.METADATA, first_records=LEVELS)
    rig.log.append_batch(value_batch(0, 1), base_offset=0, next_offset=1, epoch=1, timestamp_ms=1)
    rig.log.request_flush()
    rig.sync()
    rig.follow()
    rig.pass_time(1_900 * MS)
    assert not rig.replica.stopped
    assert rig.log.end_offset == 1


def test_none_while_so_many_wait_for_their_commit_that_there_is_no_room() -> None:
    config = QuorumConfig(preallocate_bytes=4096, append_queue_records_max=1)
    rig = Rig(kind=LogKind.METADATA, config=config, first_records=LEVELS).lead()
    ticket = rig.append(LEVELS[0])
    rig.pass_time(2_000 * MS)  # the disk is slow
    rig.sync()
    assert stored(rig) == [*FIRST, LEVELS[0]]
    assert ticket.offsets
    assert after(rig, 500 * MS) == [LEVELS[0], NO_OP]
