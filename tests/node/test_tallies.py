"""What a shell counts: records by how they came, refusals by why."""

from fastquorum.errors import NotLeader, Overloaded, ProducerFenced, RecordTooLarge
from fastquorum.node.lane.tallies import LogGrowth, Moved, Refusals, RefusedAppends


def test_records_count_by_the_role_in_which_the_end_moved() -> None:
    progress = LogGrowth()
    assert progress.so_far(100) == Moved(0, 0)
    progress.opened(leads=False, end_offset=100)
    assert progress.so_far(130) == Moved(0, 30)
    progress.closed(140)
    progress.opened(leads=True, end_offset=141)  # one was appended in between, by neither
    assert progress.so_far(150) == Moved(9, 40)
    progress.closed(160)
    assert progress.so_far(999) == Moved(19, 40)


def test_what_raft_fetches_while_the_lane_is_closed_counts_too() -> None:
    progress = LogGrowth()
    progress.opened(leads=True, end_offset=10)
    progress.closed(14)
    progress.fetched_without_session(3)
    progress.opened(leads=False, end_offset=17)
    assert progress.so_far(18) == Moved(4, 4)


def test_a_log_that_was_cut_off_takes_nothing_back() -> None:
    progress = LogGrowth()
    progress.opened(leads=False, end_offset=100)
    assert progress.so_far(90) == Moved(0, 0)
    progress.closed(90)
    progress.opened(leads=False, end_offset=90)
    assert progress.so_far(95) == Moved(0, 5)


def test_refusals_count_by_their_errors() -> None:
    refusals = Refusals()
    for error in (Overloaded(), Overloaded(), NotLeader(), RecordTooLarge(), ProducerFenced()):
        assert refusals.counted(error) is error
    assert refusals.so_far == RefusedAppends(overloaded=2, not_leader=1, too_large=1, otherwise=1)
