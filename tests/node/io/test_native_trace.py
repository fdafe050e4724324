"""What the native shell measures of itself: stages of real commits over real files and sockets, looked at from any
thread while the lane goes on."""

import threading
from collections.abc import Callable

import pytest

from fastquorum.errors import UsageError
from fastquorum.kernels.stages import STAGES, TracedGroup
from fastquorum.node.io.clock import now_us
from tests.lane.builders import value_batch

from .conftest import Arm
from .native_load import HOOKS, Load
from .native_rig import WAIT_S, Rig, is_readable, native, result, until


def counts(rig: Rig) -> dict[str, int]:
    return {name: each.count for name, each in rig.shell.stage_histograms().items()}


def groups(rig: Rig) -> list[TracedGroup]:
    return rig.shell.trace_read().groups


def test_nothing_is_recorded_unless_it_is_asked_for_and_stages_are_counted_all_the_same(rig: Rig) -> None:
    rig.lead([1])
    for _ in range(3):
        assert result(rig.append()) > 0
    assert tuple(counts(rig)) == STAGES
    alone = {"append_written": 3, "written_flushed": 3, "sync": 3, "written_committed": 3}
    until(lambda: counts(rig)["append_told"] == 3, "all three are told")
    assert counts(rig) == dict.fromkeys(STAGES, 0) | alone | {"committed_told": 3, "append_told": 3}


def test_a_leaders_commit_passes_its_stages_in_order(rig: Rig) -> None:
    rig.lead()
    second = rig.voter(2)
    rig.shell.trace_start(16)
    rig.shell.hold_syncs(True)
    slot = rig.append()
    assert second.answer().offsets == [1]
    second.fetch(2)
    until(lambda: groups(rig)[0].acked_ns > 0, "the voter's Fetch is counted")
    (group,) = groups(rig)
    assert (group.base_offset, group.end_offset, group.epoch, group.is_leader) == (1, 2, 5, True)
    assert (group.flushed_ns, group.committed_ns, group.resolved_ns) == (0, 0, 0), "the own sync is awaited"
    rig.shell.hold_syncs(False)
    assert result(slot) == 1
    until(lambda: groups(rig)[0].resolved_ns > 0, "it is told")
    (group,) = groups(rig)
    assert 0 < group.append_ns <= group.written_ns <= group.sent_ns <= group.acked_ns <= group.committed_ns
    assert group.written_ns <= group.syncing_ns <= group.flushed_ns <= group.committed_ns <= group.resolved_ns


def test_the_acknowledgement_of_a_majority_is_that_of_the_second_of_four_others(rig: Rig) -> None:
    rig.lead([1, 2, 3, 4, 5])
    voters = [rig.voter(node_id) for node_id in (2, 3, 4, 5)]
    rig.shell.trace_start(4)
    slot = rig.append()
    for voter in voters:
        assert voter.answer().offsets == [1]
    voters[2].fetch(2)
    until(lambda: any(peer.key.id == 4 and peer.end_offset == 2 for peer in rig.shell.state().peers), "its Fetch")
    assert groups(rig)[0].acked_ns == 0
    voters[0].fetch(2)
    assert result(slot) == 1
    assert groups(rig)[0].acked_ns > 0
    assert counts(rig)["sent_acked"] == 1


def test_a_followers_records_pass_theirs(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(node_id=2)
    leader = rig.connect()
    rig.follow(leader)
    rig.shell.trace_start(4)
    leader.reply(leader.question(), value_batch(1, 5, 3), high_watermark=2)
    leader.reply(leader.question(), high_watermark=4)
    leader.question()
    (group,) = groups(rig)
    assert (group.base_offset, group.end_offset, group.is_leader) == (1, 4, False)
    assert 0 < group.append_ns <= group.written_ns <= group.syncing_ns <= group.flushed_ns <= group.sent_ns
    assert group.sent_ns <= group.committed_ns
    assert (group.acked_ns, group.resolved_ns) == (0, 0)
    assert counts(rig) == dict.fromkeys(STAGES, 0) | {"append_written": 1, "written_flushed": 1, "sync": 1}


def test_appends_that_gather_are_one_group_from_the_first_of_them(rig: Rig) -> None:
    rig.lead([1])
    rig.shell.trace_start(4)
    box = native.Mailbox()
    before = now_us()
    assert [rig.shell.append_mail(b"later", box, f"letter {n}", is_pushed_later=True) for n in range(3)] == [1, 2, 3]
    between = now_us()
    rig.shell.push()
    assert is_readable(box, WAIT_S), "the commit"
    assert [letter for letter, _ in box.collect()] == ["letter 0", "letter 1", "letter 2"]
    (group,) = groups(rig)
    assert (group.base_offset, group.end_offset) == (1, 4)
    assert before <= group.append_ns // 1_000 <= between
    assert group.resolved_ns >= group.committed_ns > 0
    assert (counts(rig)["append_written"], counts(rig)["append_told"]) == (1, 3)


def test_an_append_that_fails_is_not_counted_as_told(rig: Rig) -> None:
    rig.lead()
    slot = rig.append()
    rig.shell.close()
    rig.shell.fail_pending(-77)
    assert result(slot) == -77
    assert counts(rig)["append_told"] == 0


def test_a_thread_that_is_woken_and_one_that_looks_later_are_counted_once_each(rig: Rig) -> None:
    rig.lead([1])
    rig.shell.hold_syncs(True)
    waited, looked = rig.append(), rig.append()
    thread = threading.Thread(target=result, args=(waited,))
    thread.start()
    rig.shell.hold_syncs(False)
    thread.join()
    assert result(looked) == 2
    assert result(looked) == 2
    until(lambda: counts(rig)["append_told"] == 2, "both are told")
    assert result(waited) == 1
    assert counts(rig)["append_told"] == 2


def test_a_trace_keeps_the_latest_batches_and_ends_when_it_is_told_to(rig: Rig) -> None:
    rig.lead([1])
    rig.shell.trace_start(2)
    for _ in range(5):
        result(rig.append())
    found = rig.shell.trace_read()
    assert [group.base_offset for group in found.groups] == [4, 5]
    assert found.lost == 3
    rig.shell.trace_stop()
    result(rig.append())
    assert rig.shell.trace_read() == ([], 0)
    with pytest.raises(UsageError):
        rig.shell.trace_start(0)


def test_a_log_that_was_cut_back_is_measured_from_its_new_end(rig: Rig) -> None:
    rig.lead()
    rig.append()
    until(lambda: rig.shell.flushed_end == 2, "the own sync")
    before = counts(rig)
    rig.shell.close()
    rig.take_back()
    rig.truncate_to_control()
    rig.lead([1])
    assert result(rig.append()) == 1
    after = counts(rig)
    assert after["written_committed"] == before["written_committed"] + 1 == 1
    assert after["written_flushed"] == before["written_flushed"] + 1 == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_it_may_be_looked_at_and_switched_on_and_off_under_load(rig: Rig, arm: Arm, seed: int) -> None:
    """With threads that dawdle, and, in one build, under ThreadSanitizer."""
    for hook in HOOKS:
        arm(hook, "yield", seed)
    load, over, failed = Load(rig, seed), threading.Event(), []

    def look() -> None:
        counted = 0
        while not over.is_set():
            rig.shell.trace_start(64)
            for _ in range(5):
                found, stages = rig.shell.trace_read(), rig.shell.stage_histograms()
                for group in found.groups:
                    stamps = (group.append_ns, group.written_ns, group.committed_ns or group.written_ns)
                    if stamps != tuple(sorted(stamps)):
                        failed.append(group)
                for each in stages.values():
                    if each.count != sum(each.counts):
                        failed.append(each)
                if stages["append_told"].count < counted:
                    failed.append(stages["append_told"])
                counted = stages["append_told"].count
            rig.shell.trace_stop()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        load.run(40)
    finally:
        over.set()
        looking.join()
    assert failed == []
    load.check()
    assert rig.shell.stage_histograms()["append_told"].count > 0
