"""A quorum of one: opening directories, appending, reading, limits."""

import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastquorum import log, sync
from fastquorum.errors import (
    ClosedError,
    ConfigError,
    DirectoryError,
    NotLeader,
    OffsetOutOfRange,
    Overloaded,
    RecordTooLarge,
    UsageError,
)
from fastquorum.node.io.native.shell import NativeShell
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, stalled, values_of
from tests.cli.conftest import Ran, fastquorum, wait_until

__all__ = ["fastquorum"]  # a fixture


def open_one(path: Path, **options: object) -> sync.Quorum:
    quorum = sync.open(path, **{**QUICK, "node_id": 1, **options})  # type: ignore[arg-type]
    quorum.wait_ready(WAIT_S)
    return quorum


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_an_empty_directory_is_formatted_and_opened_again(tmp_path: Path, kernels: str) -> None:
    with open_one(tmp_path / "new", kernels=kernels) as quorum:
        assert quorum.append(b"one", timeout=WAIT_S) == 1  # offset 0 is the leader's own record
        assert quorum.role == "leader"
    with open_one(tmp_path / "new", kernels=kernels) as quorum:
        assert values_of(quorum) == [b"one"]
        assert quorum.epoch == 2


@pytest.mark.parametrize("options", [{}, {"controller": True, "log": "metadata"}], ids=str)
def test_a_port_that_was_drawn_is_kept_while_it_is_free_and_another_is_drawn_when_it_is_not(
    tmp_path: Path, options: dict[str, object], fastquorum: Callable[..., Ran]
) -> None:
    with open_one(tmp_path, **options) as quorum:
        drawn = quorum.endpoint
    with open_one(tmp_path) as quorum:
        assert quorum.endpoint == drawn
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as other:
        other.bind((drawn.host, drawn.port))
        other.connect(server.getsockname())  # another program's connection, which nothing that lists listeners shows
        with open_one(tmp_path) as quorum:
            assert quorum.endpoint != drawn
            # Whoever asks there is led there, too, and not to where it was formatted.
            ran = fastquorum(
                "quorum", "describe", "--status", "--bootstrap", quorum.endpoint.address, "--timeout", WAIT_S
            )
            assert ran.code == 0, ran.err
            assert drawn.address not in ran.out
        with pytest.raises(ConfigError, match="outgoing connection"):
            sync.open(tmp_path, listen=drawn)
    with open_one(tmp_path) as quorum:
        assert quorum.endpoint == drawn


def test_a_port_that_was_chosen_is_not_changed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        chosen = server.getsockname()[1]
    for options in ({"listen": f"127.0.0.1:{chosen}"}, {"voters": f"1@127.0.0.1:{chosen}", "cluster_id": CLUSTER_ID}):
        path = tmp_path / next(iter(options))
        with open_one(path, **options):
            pass
        with socket.create_server(("127.0.0.1", chosen)), pytest.raises(ConfigError, match="is taken"):
            sync.open(path)


def test_appends_in_flight_are_no_work_for_the_garbage_collector(tmp_path: Path) -> None:
    with open_one(tmp_path) as quorum:
        quorum.append(b"first", timeout=WAIT_S)
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            pending = [quorum.append_nowait(b"%d" % number) for number in range(1_000)]
            pending += quorum.append_each([b"%d" % number for number in range(1_000)])
            grown = len(gc.get_objects()) - before
        finally:
            gc.enable()
        assert all(isinstance(each, sync.Pending) for each in pending)
        assert pending[-1].result(WAIT_S) == pending[0].result() + 1_999
    assert grown < 200


def test_a_foreign_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"...")
    with pytest.raises(DirectoryError, match="holiday"):
        sync.open(str(tmp_path), node_id=1)
    assert os.listdir(tmp_path) == ["holiday.jpg"]


def test_another_cluster_or_node_is_refused(tmp_path: Path) -> None:
    open_one(tmp_path, cluster_id=CLUSTER_ID).close()
    with pytest.raises(DirectoryError, match=CLUSTER_ID):
        sync.open(str(tmp_path), cluster_id="BBBBBBBBBBBBBBBBBBBBAQ")
    with pytest.raises(DirectoryError, match="node"):
        sync.open(str(tmp_path), node_id=2)
    open_one(tmp_path, cluster_id=CLUSTER_ID).close()


def test_one_directory_has_one_handle(tmp_path: Path) -> None:
    with open_one(tmp_path), pytest.raises(DirectoryError, match="open in this process"):
        sync.open(str(tmp_path), node_id=1)


def test_a_voter_list_without_the_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not among the voters"):
        sync.open(str(tmp_path / "a"), node_id=3, voters="1@127.0.0.1:9001,2@127.0.0.1:9002", cluster_id=CLUSTER_ID)
    open_one(tmp_path / "b").close()
    with pytest.raises(UsageError, match="not among the voters"):
        sync.open(str(tmp_path / "b"), voters="7@127.0.0.1:9001")


def test_several_voters_need_a_cluster_id(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        sync.open(str(tmp_path), node_id=1, voters="1@127.0.0.1:9001,2@127.0.0.1:9002")
    assert refused.value.key == "cluster_id"


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"{address} is taken") as refused:
            sync.open(str(tmp_path), node_id=1, listen=address)
        assert refused.value.key == "listeners"
    open_one(tmp_path, listen=address).close()  # nothing stayed locked


def test_unknown_options_are_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="election_timeout_us") as refused:
        sync.open(str(tmp_path), node_id=1, election_timout_us=5)  # type: ignore[call-arg]
    assert (refused.value.key, refused.value.source) == ("election_timout_us", "argument")


def test_what_is_no_value_is_refused(tmp_path: Path) -> None:
    with open_one(tmp_path) as quorum:
        for bad in ("text", 5, [], ["text"], [b"good", None]):
            with pytest.raises(UsageError):
                quorum.append(bad)  # type: ignore[arg-type]
        assert values_of(quorum) == []
        assert quorum.append([b"", bytearray(b"ba"), memoryview(b"mv")], timeout=WAIT_S)
        assert values_of(quorum) == [b"", b"ba", b"mv"]


def test_what_exceeds_a_batch_is_refused_or_split(tmp_path: Path) -> None:
    with open_one(tmp_path, batch_bytes_max=4096) as quorum:
        many = [b"%04d" % number * 50 for number in range(100)]
        with pytest.raises(RecordTooLarge):
            quorum.append(many)
        with pytest.raises(RecordTooLarge):
            quorum.append([b"small", b"x" * 5000], atomic=False)
        assert values_of(quorum) == []
        first = quorum.append(many, atomic=False, timeout=WAIT_S)
        assert values_of(quorum, first) == many
        assert len(list(quorum.committed(follow=False))) > 1


def test_beyond_its_bounds_an_append_is_refused_with_a_hint(tmp_path: Path) -> None:
    with open_one(tmp_path, append_queue_records_max=10) as quorum:
        # The lane lock held: nothing commits meanwhile.
        refused = None
        accepted = []
        for _ in range(10_000):
            try:
                accepted.append(quorum.append_nowait([b"x"] * 5))
            except Overloaded as error:
                refused = error
                break
        assert refused is not None
        assert refused.retry_after_s > 0
        assert "10" in refused.reason
        for pending in accepted:
            pending.result(WAIT_S)
        assert len(values_of(quorum)) == 5 * len(accepted)


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_many_appends_in_one_call_each_have_a_fate_of_their_own(tmp_path: Path, kernels: str) -> None:
    with open_one(tmp_path, batch_bytes_max=4096, kernels=kernels) as quorum:
        pending = quorum.append_each([b"a", bytearray(b"x" * 5000), memoryview(b"b"), *[b"c"] * 30])
        with pytest.raises(RecordTooLarge):
            pending[1].result(WAIT_S)
        offsets = [each.result(WAIT_S) for at, each in enumerate(pending) if at != 1]
        assert offsets == list(range(offsets[0], offsets[0] + 32))
        assert values_of(quorum) == [b"a", b"b", *[b"c"] * 30]
        assert quorum.append_each([]) == []
        with pytest.raises(UsageError, match="str"):
            quorum.append_each([b"a", "b"])  # type: ignore[list-item]
    with pytest.raises(ClosedError):
        quorum.append_each([b"a"])


def test_of_many_appends_in_one_call_those_beyond_the_bounds_are_refused_at_once(tmp_path: Path) -> None:
    with open_one(tmp_path, append_queue_records_max=20) as quorum:
        with stalled(quorum):
            pending = quorum.append_each([b"%d" % number for number in range(30)])
            assert [each.done() for each in pending] == [False] * 20 + [True] * 10
            for each in pending[20:]:
                with pytest.raises(Overloaded, match="at most 20"):
                    each.result()
        assert [each.result(WAIT_S) for each in pending[:20]] == list(range(1, 21))


def test_offsets_out_of_range_are_refused(tmp_path: Path) -> None:
    with open_one(tmp_path) as quorum:
        with pytest.raises(OffsetOutOfRange):
            next(quorum.committed(from_offset=-1))
        assert list(quorum.committed(from_offset=1_000, follow=False)) == []


@pytest.mark.parametrize("offset", [True, 2**63, 1.0, "1", None])
def test_what_is_no_offset_is_refused(tmp_path: Path, offset: Any) -> None:
    with open_one(tmp_path) as quorum, pytest.raises(UsageError, match=f"from_offset {offset!r} is not an offset"):
        next(quorum.committed(from_offset=offset))
    stored = log.open(tmp_path)
    for read in (stored.records, stored.batches, stored.diff):
        with pytest.raises(UsageError, match=f"from_offset {offset!r} is not an offset"):
            list(read(offset))


def test_progress_reports_past_control_records(tmp_path: Path) -> None:
    with open_one(tmp_path) as quorum:
        (item,) = quorum.committed(follow=False, progress=True)
        assert (item.next_offset, item.records) == (1, ())


def test_a_closed_handle_says_so(tmp_path: Path) -> None:
    quorum = open_one(tmp_path)
    quorum.close()
    quorum.close()
    uses = (
        lambda: quorum.append(b"x"),
        quorum.read_barrier,
        quorum.wait_ready,
        quorum.describe,
        lambda: next(quorum.committed()),
    )
    for use in uses:
        with pytest.raises(ClosedError):
            use()


def test_offline_the_same_records_are_there(tmp_path: Path) -> None:
    with open_one(tmp_path) as quorum:
        quorum.append([b"a", b"b"], timeout=WAIT_S)
        online = [record for item in quorum.committed(follow=False) for record in item.records]
    offline = log.open(tmp_path)
    assert list(offline.records()) == online
    assert [batch.info.is_control for batch in offline.batches()] == [True, False]
    assert list(offline.records(from_offset=2)) == online[1:]


def test_what_was_appended_many_leads_ago_may_be_committed_whenever_it_is_asked_about(tmp_path: Path) -> None:
    with open_one(tmp_path) as node:
        with stalled(node):
            waiting = node.append_nowait(b"x")
            shell, lock = node._node._shell, node._node._lock
            assert isinstance(shell, NativeShell)
            for epoch in range(1, 100):
                with lock:
                    shell._fail_pending(NotLeader(2, epoch, None, maybe_committed=True))
        with pytest.raises(NotLeader) as failed:
            waiting.result(WAIT_S)
        assert failed.value.maybe_committed


def test_a_lane_that_stands_goes_on_when_the_timer_fires(tmp_path: Path) -> None:
    with open_one(tmp_path) as node:
        shell = node._node._shell
        assert isinstance(shell, NativeShell)
        shell._shell.freeze()  # as the end of a segment does; whoever came upon it is gone
        wait_until(lambda: not shell.is_standing, WAIT_S)
        assert node.append(b"x", timeout=WAIT_S) == 1
