"""What a commit takes, stage by stage: both twins count the same, in the same buckets, and record the same."""

from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import UsageError
from fastquorum.kernels.stages import (
    BOUNDS_US,
    BUCKETS,
    CAPACITY_MAX,
    EMPTY,
    STAGES,
    WINDOW,
    StageHistogram,
    Stages,
    bucket_of,
    load_stages,
)

NAMES = ("native", "pure")


@pytest.fixture(params=NAMES)
def stages(request: pytest.FixtureRequest) -> Stages:
    return load_stages(request.param)()


# --- histograms -------------------------------------------------------------------------------------------------------


def test_the_bounds_ascend_and_the_last_bucket_has_no_end() -> None:
    assert len(BOUNDS_US) == BUCKETS
    assert all(lower < upper for lower, upper in pairwise(BOUNDS_US))
    assert BOUNDS_US[-1] == inf


@given(st.integers(0, 1 << 36))
def test_a_value_lies_below_its_buckets_end_and_not_below_the_one_before(value_ns: int) -> None:
    bucket = bucket_of(value_ns)
    assert value_ns / 1000 < BOUNDS_US[bucket]
    assert bucket == 0 or value_ns / 1000 >= BOUNDS_US[bucket - 1]


@given(st.integers(8_192, (1 << 36) - 1))
def test_a_bucket_is_no_wider_than_a_thirtysecond_of_its_values(value_ns: int) -> None:
    bucket = bucket_of(value_ns)
    if bucket < BUCKETS - 1:
        assert BOUNDS_US[bucket] - BOUNDS_US[bucket - 1] <= value_ns / 1000 / 32 + 1e-9


@given(st.lists(st.integers(-5, 1 << 40), min_size=1))
def test_the_twins_count_a_value_in_the_same_bucket(values: list[int]) -> None:
    announced = []
    for name in NAMES:
        each = load_stages(name)()
        for value in values:
            each.synced(0, value)
        announced.append(each.histograms())
    assert announced[0] == announced[1]
    sync = announced[0]["sync"]
    assert sync.count == sum(sync.counts) == len(values)
    assert sync.sum_us == sum(max(value, 0) for value in values) / 1000


def of_values(*values_us: float) -> StageHistogram:
    each = load_stages("pure")()
    for value in values_us:
        each.synced(0, round(value * 1000))
    return each.histograms()["sync"]


def test_quantiles_are_within_two_percent() -> None:
    values = [10.0 * 1.07**step for step in range(100)]
    histogram = of_values(*values)
    for share, value in ((0.01, values[0]), (0.5, values[49]), (0.99, values[98]), (1.0, values[99])):
        assert histogram.quantile_us(share) == pytest.approx(value, rel=0.02)
    assert EMPTY.quantile_us(0.5) == 0.0
    assert EMPTY.mean_us == 0.0


def test_what_came_since_and_both_together() -> None:
    early, late = of_values(5, 100), of_values(5, 100, 100, 7_000)
    since = late.minus(early)
    assert (since.count, since.sum_us) == (2, 7_100)
    assert since.plus(early) == late
    assert since.count_below(50) == 0
    assert since.count_below(1_000) == 1
    assert since.count_below(inf) == 2


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_batch_on_its_way_through_a_leader(stages: Stages) -> None:
    stages.opened(True)
    stages.trace_start(8)
    stages.begin(1_000)
    stages.gathers()
    stages.begin(2_000)
    stages.written(5, 7, 3, 9_000)
    stages.sent(7, 10_000)
    stages.acked(6, 15_000)  # not all of it
    stages.acked(7, 20_000)
    stages.synced(12_000, 18_000)
    stages.flushed(7, 18_000)
    stages.committed(7, 21_000)
    stages.announced(5, 1, 21, 22_000)
    stages.announced(6, 2, 21, 23_000)
    ((group,), lost) = stages.trace_read()
    assert lost == 0
    assert group._asdict() == {
        "base_offset": 5,
        "end_offset": 7,
        "epoch": 3,
        "is_leader": True,
        "append_ns": 1_000,
        "written_ns": 9_000,
        "sent_ns": 10_000,
        "syncing_ns": 12_000,
        "flushed_ns": 18_000,
        "acked_ns": 20_000,
        "committed_ns": 21_000,
        "resolved_ns": 23_000,
    }
    sums = {name: (each.count, each.sum_us) for name, each in stages.histograms().items()}
    assert sums == {
        "append_written": (1, 8),
        "written_sent": (1, 1),
        "written_flushed": (1, 9),
        "sync": (1, 6),
        "sent_acked": (1, 10),
        "written_committed": (1, 12),
        "committed_told": (2, 3),
        "append_told": (2, 42),
    }


def test_a_follower_counts_what_is_its_own(stages: Stages) -> None:
    stages.opened(False)
    stages.begin(1_000)
    stages.written(0, 4, 1, 2_000)
    stages.synced(2_500, 3_000)
    stages.flushed(4, 3_000)
    stages.sent(4, 4_000)
    stages.committed(4, 5_000)
    counted = {name for name, each in stages.histograms().items() if each.count}
    assert counted == {"append_written", "written_flushed", "sync"}


def test_what_is_forgotten_is_measured_no_further(stages: Stages) -> None:
    stages.opened(True)
    stages.begin(1_000)
    stages.written(0, 4, 1, 2_000)
    stages.forget()
    stages.flushed(4, 3_000)
    assert stages.histograms()["written_flushed"].count == 0
    stages.begin(4_000)
    stages.written(2, 3, 2, 5_000)  # the log was cut back
    stages.flushed(3, 6_000)
    assert stages.histograms()["written_flushed"].sum_us == 1


def test_a_full_ring_keeps_the_latest_and_counts_the_rest(stages: Stages) -> None:
    stages.opened(True)
    stages.trace_start(3)
    for offset in range(10):
        stages.begin(1_000 * offset + 1)
        stages.written(offset, offset + 1, 1, 1_000 * offset + 2)
    groups, lost = stages.trace_read()
    assert [group.base_offset for group in groups] == [7, 8, 9]
    assert lost == 7
    stages.flushed(10, 20_000)
    assert stages.histograms()["written_flushed"].count == 3, "those that were overwritten are given up"
    stages.trace_stop()
    assert stages.trace_read() == ([], 0)


def test_without_a_trace_many_batches_on_their_way_are_measured(stages: Stages) -> None:
    stages.opened(True)
    for offset in range(WINDOW):
        stages.begin(1)
        stages.written(offset, offset + 1, 1, 2)
    stages.committed(WINDOW, 3)
    assert stages.histograms()["written_committed"].count == WINDOW


@pytest.mark.parametrize("capacity", [0, -1, CAPACITY_MAX + 1])
def test_a_ring_has_bounds(stages: Stages, capacity: int) -> None:
    with pytest.raises(UsageError, match=str(capacity)):
        stages.trace_start(capacity)


# --- the twins --------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("append", "write", "send", "sync", "ack", "commit", "tell", "forget", "lead", "follow", "start", "stop")
        ),
        st.integers(0, 300_000),
        st.integers(1, 4),
    ),
    max_size=80,
)


class Play:
    """Steps as a node could take them: time goes on, offsets ascend but for what is forgotten."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.now = 1_000_000
        self.end = 0

    def step(self, what: str, wait: int, count: int) -> None:
        self.now += wait
        now, some = self.now, max(self.end - count + 1, 0)
        does: dict[str, Callable[[], None]] = {
            "append": self._append,
            "write": lambda: self._write(count),
            "send": lambda: self.stages.sent(some, now),
            "sync": lambda: self._sync(some),
            "ack": lambda: self.stages.acked(some, now),
            "commit": lambda: self.stages.committed(some, now),
            "tell": lambda: self.stages.announced(some - 1, now // 2_000, now // 1_500, now),
            "forget": self._forget,
            "lead": lambda: self.stages.opened(True),
            "follow": lambda: self.stages.opened(False),
            "start": lambda: self.stages.trace_start(count),
            "stop": self.stages.trace_stop,
        }
        does[what]()

    def _append(self) -> None:
        self.stages.begin(self.now)
        self.stages.gathers()

    def _write(self, count: int) -> None:
        self.stages.begin(self.now)
        self.now += 77
        self.stages.written(self.end, self.end + count, 1, self.now)
        self.end += count

    def _sync(self, end: int) -> None:
        began, self.now = self.now, self.now + 1_234
        self.stages.synced(began, self.now)
        self.stages.flushed(end, self.now)

    def _forget(self) -> None:
        self.stages.forget()
        self.end = max(self.end - 1, 0)


@given(STEPS)
def test_the_twins_agree_whatever_happens(steps: list[tuple[str, int, int]]) -> None:
    native, pure = (Play(load_stages(name)()) for name in NAMES)
    for step in steps:
        native.step(*step)
        pure.step(*step)
        assert native.stages.trace_read() == pure.stages.trace_read(), step
    assert native.stages.histograms() == pure.stages.histograms()
    assert tuple(native.stages.histograms()) == STAGES
