"""A replica and the threads that call it: appends and barriers while raft/ decides, and critical sections cut off."""

from typing import Any

import pytest

from fastquorum.config import MS
from fastquorum.errors import CorruptionError, FatalError, NotLeader, StorageFailed
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse
from tests.lane.builders import CLUSTER
from tests.node.rig import Rig, Ticket, key, partition_of


class Hook:
    """Runs something once, at the end of a method that it stands in for."""

    def __init__(self, owner: Any, name: str, then: Any) -> None:
        self._method, self._then = getattr(owner, name), then
        setattr(owner, name, self)
        self.calls = 0

    def __call__(self, *args: Any, **fields: Any) -> Any:
        result = self._method(*args, **fields)
        self.calls += 1
        if self.calls == 1:
            self._then()
        return result


def vote(epoch: int, candidate: int = 2, last_offset: int = 1_000) -> VoteRequest:
    topic = VoteRequest.TopicData
    partition = topic.PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=key(candidate).directory_id,
        voter_directory_id=key(1).directory_id,
        last_offset_epoch=epoch - 1,
        last_offset=last_offset,
    )
    return VoteRequest(
        cluster_id=CLUSTER, voter_id=1, topics=[topic(topic_name="__cluster_metadata", partitions=[partition])]
    )


# --- while raft/ decides ----------------------------------------------------------------------------------------------


def test_an_append_that_comes_while_a_vote_is_being_stored_is_refused_once_the_vote_ended_the_lead() -> None:
    rig = Rig(1, 2, 3).lead()
    tickets: list[Ticket] = []
    Hook(rig.replica.raft, "step", lambda: tickets.append(rig.append(b"late")))
    end = rig.log.end_offset
    answer = rig.answer_to(VoteResponse, vote(epoch=9), 2)
    assert answer.topics[0].partitions[0].vote_granted
    assert [type(error) for error in tickets[0].errors] == [NotLeader]
    assert rig.log.end_offset == end, "what the vote was granted on"


def test_an_append_that_comes_while_raft_decides_is_appended_when_the_lead_goes_on() -> None:
    rig = Rig(1, 2, 3).lead()
    tickets: list[Ticket] = []
    Hook(rig.replica.raft, "step", lambda: tickets.extend((rig.append(b"first"), rig.append(b"second"))))
    end = rig.log.end_offset
    rig.answer_to(VoteResponse, vote(epoch=rig.replica.raft.epoch - 1), 2)
    rig.fetch(rig.accept(), 2, end)
    rig.sync()
    rig.fetch(rig.accept(), 2, rig.log.end_offset)
    assert [ticket.offsets for ticket in tickets] == [[end], [end + 1]]


def test_a_later_append_does_not_overtake_one_that_waits() -> None:
    rig = Rig().lead()
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    first = rig.append(b"first")
    with rig.lock:
        rig.shell.resume(rig.now_us)
    second = rig.append(b"second")
    rig.work()
    rig.sync()
    assert (first.offsets, second.offsets) == ([1], [2])


def test_an_append_that_waits_for_raft_is_appended_as_it_was_given() -> None:
    rig = Rig().lead()
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    buffer = bytearray(b"as given")
    ticket = Ticket()
    rig.shell.append([buffer], ticket, rig.now_us)
    buffer[:] = b"reused!!"
    rig.work()
    with rig.lock:
        rig.shell.resume(rig.now_us)
    rig.work()
    rig.sync()
    assert ticket.offsets == [1]
    assert b"as given" in rig.replica.reader.read(1, 1_000, 2)


def test_what_is_no_value_is_refused_at_once_and_harms_nobody() -> None:
    rig = Rig().lead()
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    with pytest.raises(TypeError):
        rig.append("text")  # type: ignore[arg-type]
    with rig.lock:
        rig.shell.resume(rig.now_us)
    rig.work()
    assert not rig.replica.stopped


def test_a_barrier_while_raft_decides_names_this_replica_as_the_one_to_ask_again() -> None:
    rig = Rig().lead()
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    with pytest.raises(NotLeader) as refused:
        rig.barrier()
    assert refused.value.leader_id == 1
    with rig.lock:
        rig.shell.resume(rig.now_us)
    ticket = rig.barrier()
    rig.work()
    assert ticket.offsets == [1]


def test_a_barrier_of_a_lead_that_ends_fails() -> None:
    rig = Rig(1, 2, 3).lead()
    ticket = rig.barrier()
    rig.answer_to(VoteResponse, vote(epoch=9), 2)
    assert [type(error) for error in ticket.errors] == [NotLeader]


# --- cut off in the middle --------------------------------------------------------------------------------------------


def is_over(rig: Rig) -> bool:
    """Nothing is accepted, written or sent any more, and the reason is told."""
    with pytest.raises(FatalError):
        rig.append(b"more")
    assert rig.transport.wakes, "the replica's thread hears of it"
    end = rig.log.end_offset
    rig.work()
    assert rig.replica.stopped
    assert rig.log.failed, "closing writes no mark from what may be half-changed"
    assert len(rig.listener.stopped) == 1
    assert rig.listener.stopped[0] is rig.replica.error is not None
    return rig.log.end_offset == end


def test_a_write_that_fails_on_a_callers_thread_stops_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig().lead()
    waiting = rig.append(b"being synced")

    def fail(*_: object, **__: object) -> None:
        raise StorageFailed(detail="injected", operation="write", path="/fake", errno_code=5)

    monkeypatch.setattr(rig.log._segments[-1].file, "write", fail)
    half = bytes(rig.config.batch_bytes_max // 2)
    rig.append(half)
    with pytest.raises(StorageFailed):
        rig.append(half)
    assert is_over(rig)
    assert waiting.errors


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_append_cut_off_between_the_write_and_its_bookkeeping_stops_the_replica(
    monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    rig = Rig().lead()

    def interrupt(*_: object) -> None:
        raise interruption

    monkeypatch.setattr(rig.log._tail, "append", interrupt)
    with pytest.raises(interruption):
        rig.append(b"half")
    assert is_over(rig)


def test_a_barrier_cut_off_after_it_claimed_a_parked_fetch_stops_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rig.transport, "send", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rig.barrier()
    assert is_over(rig)


def test_an_append_after_the_failed_sync_is_refused_though_the_failure_is_not_reported_yet() -> None:
    rig = Rig().lead()
    rig.flusher.failed = True
    with pytest.raises(StorageFailed):
        rig.append(b"x")
    assert is_over(rig)


def test_between_a_durable_mark_that_failed_and_the_end_nothing_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers may come between the lock's release and the replica's stop."""
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, rig.log.end_offset)

    def fail(*_: object) -> None:
        raise StorageFailed("input/output error", "write", "durable-mark", 5)

    monkeypatch.setattr(rig.disk, "replace_file", fail)
    rig.append(b"x")
    rig.sync()
    with pytest.raises(StorageFailed), rig.lock:
        rig.log.maintain(rig.now_us + 3600 * 1000 * MS)
    rig.journal.clear()
    rig.fetch(connection, 2, rig.log.end_offset)
    rig.barrier()
    assert "send" not in [kind for kind, _ in rig.journal]


def test_what_stopped_the_replica_first_is_what_it_reports() -> None:
    rig = Rig().lead()
    rig.append(b"x")
    with rig.lock:
        rig.shell.cut_off(KeyboardInterrupt())
    rig.replica.on_flush(rig.flusher.run(), 0, rig.now_us)
    assert "KeyboardInterrupt" in str(rig.replica.error)
    assert is_over(rig)


def test_refused_appends_leave_their_room_to_others() -> None:
    rig = Rig(1, 2, 3)
    for _ in range(3):
        with pytest.raises(NotLeader):
            rig.append(b"x" * 1000)
    assert (rig.shell._appends.records, rig.shell._appends.size_bytes) == (0, 0)


def test_the_leaders_answer_reaches_a_parked_fetch_from_a_callers_thread() -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)
    assert rig.answers(connection) == []
    rig.append(b"x")
    (answer,) = rig.answers(connection)
    assert partition_of(answer).records


def test_a_damage_found_on_the_replicas_thread_shuts_the_gate_before_callers_get_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(1, 2, 3).lead()
    parked, damaged = rig.accept(), rig.accept()
    rig.fetch(parked, 2, rig.log.end_offset)
    rig.fetch(damaged, 3, rig.log.end_offset)
    stopped: list[bool] = []

    def damage(*_: object) -> None:
        raise CorruptionError("crc", 0, 0)

    def callers_come_first(error: object, now_us: int) -> None:
        stopped.append(rig.shell.may_send())
        with pytest.raises(CorruptionError):
            rig.barrier()

    monkeypatch.setattr(rig.shell._lane, "on_frame", damage)
    monkeypatch.setattr(rig.replica, "_stop", callers_come_first)
    monkeypatch.setattr(rig.replica, "work", lambda now_us: None)
    rig.journal.clear()
    rig.fetch(damaged, 3, rig.log.end_offset)
    assert stopped == [False]
    assert "send" not in [kind for kind, _ in rig.journal]
