"""In a forked child every public name of every handle raises ClosedError at once, whatever was locked at the fork."""

import asyncio
import copy
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.broker.io.holding import Holding
from fastquorum.client.committed_log import CommittedLog
from fastquorum.client.connection import Deadline
from fastquorum.client.producer import ResumedProducer
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import ClosedError
from fastquorum.kernels import load
from fastquorum.node.io.handles import Guarded
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, stalled
from tests.broker.clusters import OFTEN, join, one_controller
from tests.conftest import ROOT

CHILD_S = 30
"""What hangs is killed after so long: a busy machine is no failure."""
ENDS = frozenset(("close",))
"""Names that do nothing in the child: a block that was entered before the fork may be left there."""


def in_child(work: Callable[[], None]) -> None:
    """Run it in a forked child; it must return, and in time."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CHILD_S)
        try:
            work()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def public_names(handle: object) -> list[str]:
    return [name for name in {*dir(type(handle)), *vars(handle)} if not name.startswith("_")]


def closed(*handles: object) -> None:
    """All names of these are refused."""
    for handle in handles:
        names = public_names(handle)
        assert len(names) > 1
        for name in set(names) - ENDS:
            with pytest.raises(ClosedError, match="before fork"):
                getattr(handle, name)()


def refused(*uses: Callable[[], object]) -> None:
    for use in uses:
        with pytest.raises(ClosedError, match="before fork"):
            use()


@contextmanager
def locked(*locks: object) -> Iterator[None]:
    """Hold the locks as other threads would at a fork; those threads do not exist in the child."""
    with ExitStack() as held:
        for lock in locks:
            held.enter_context(lock)  # type: ignore[arg-type]
        yield


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_blocking_handle_is_closed_in_a_forked_child(tmp_path: Path, kernels: str) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1, kernels=kernels) as quorum:  # type: ignore[misc]
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
        items, leaders, empty = quorum.committed(), quorum.leadership(), quorum.committed(from_offset=2)
        next(items), next(leaders), next(empty)
        append, node = quorum.append, quorum._node
        settled, unknown = quorum.append_nowait(b"y"), quorum.append_nowait(b"z")
        unknown.result(WAIT_S)
        with quorum.producer(id="p") as producer, quorum.trace(tmp_path / "trace") as recording:
            held = [] if kernels == "pure" else [stalled(quorum)]
            with ExitStack() as stack:
                for each in held:
                    stack.enter_context(each)
                    unknown = quorum.append_nowait(b"z")

                def in_vain() -> None:
                    closed(quorum, producer, quorum._watch)
                    assert "the process that forked this one" in repr(quorum)
                    refused(
                        lambda: next(items),
                        lambda: next(empty),
                        lambda: next(leaders),
                        lambda: append(b"x"),
                        recording.stop,
                        lambda: node.high_watermark,
                        lambda: producer.append(b"x"),
                    )
                    assert settled.result(0) > 0
                    if held:
                        refused(unknown.result, unknown.done, lambda: unknown.result(5))
                    quorum.close()

                with locked(quorum._watch._changed, node._lock, producer._turn):
                    in_child(in_vain)
        assert quorum.append(b"after", timeout=WAIT_S) > 0


def test_a_task_s_handle_is_closed_in_a_forked_child(tmp_path: Path) -> None:
    async def main() -> None:
        async with await fq.open(tmp_path, **QUICK, node_id=1) as quorum:
            await quorum.wait_ready(WAIT_S)
            await quorum.append(b"x")
            append, barrier = quorum.append, quorum.read_barrier
            async with quorum.producer(id="p") as producer:

                def in_vain() -> None:
                    closed(quorum, producer, quorum._bridge)
                    refused(lambda: append(b"x").send(None), lambda: barrier().send(None))
                    with pytest.raises(StopIteration):
                        quorum.close().send(None)

                with locked(quorum._node._lock):
                    in_child(in_vain)
            assert await quorum.append(b"after", timeout=WAIT_S) > 0

    asyncio.run(main())


def test_what_was_closed_before_the_fork_is_closed_in_the_child(tmp_path: Path) -> None:
    quorum = sync.open(tmp_path, **QUICK, node_id=1)
    quorum.close()
    in_child(lambda: closed(quorum))


def test_a_membership_is_closed_in_a_forked_child(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        membership.wait_active(WAIT_S)
        changes = membership.changes()
        next(changes)
        with membership.serving() as work:

            def in_vain() -> None:
                closed(membership)
                refused(lambda: next(changes), work.check, lambda: work.epoch)
                membership.close()

            with locked(membership._member.changed):
                in_child(in_vain)
        assert membership.check() >= 0

        async def main() -> None:
            options = {"bootstrap": bootstrap, "broker_id": 8, "cluster_id": CLUSTER_ID, **OFTEN}
            async with await fq.broker.join(**options) as other:  # type: ignore[arg-type]
                await other.wait_active(WAIT_S)
                in_child(lambda: closed(other))

        asyncio.run(main())


def test_a_client_is_closed_in_a_forked_child(tmp_path: Path) -> None:
    """Both processes would send their next requests under one number, on one connection."""
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
        kernels = load("native")
        with QuorumClient([quorum.endpoint], kernels) as client:
            assert client.read(0, Deadline(WAIT_S)).records
            producer, log = ResumedProducer(client, kernels, WAIT_S), CommittedLog(client, kernels, WAIT_S)
            records = client.read_all(0, 1, Deadline(WAIT_S))

            def in_vain() -> None:
                closed(client)
                refused(lambda: producer.is_known(1), log.extent, lambda: next(records))
                client.close()

            in_child(in_vain)
            assert client.append([b"y"], Deadline(WAIT_S)) > 0


def test_a_stored_log_answers_in_a_forked_child(tmp_path: Path) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
    log = fq.log.open(tmp_path)

    def read() -> None:
        assert [record.value for record in log.records()] == [b"x"]
        assert log.verify().is_sound

    in_child(read)


def test_every_class_of_handle_is_guarded() -> None:
    for cls in (
        fq.Quorum,
        sync.Quorum,
        fq.Producer,
        fq.broker.Membership,
        sync.Membership,
        Holding,
        QuorumClient,
    ):
        assert issubclass(cls, Guarded)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_handle_is_neither_copied_nor_sent_to_a_child_that_is_not_forked(
    tmp_path: Path, copied: Callable[[object], object]
) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum, pytest.raises(TypeError, match="in one process only"):
        copied(quorum)


LEAVE_BY_THEMSELVES = """
import os, sys
from fastquorum import sync
from fastquorum.errors import ClosedError

def fork_within(quorum):
    pending = [quorum.append_nowait(b"x") for _ in range(50)]
    child = os.fork()
    if not child:
        try:
            quorum.append(b"y", timeout=1)
        except ClosedError:
            sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    pending += [quorum.append_nowait(b"x") for _ in range(50)]
    print(len({each.result(30) for each in pending}), flush=True)

for kernels in ("native", "pure"):
    quorum = sync.open(os.path.join(sys.argv[1], kernels), node_id=1, kernels=kernels)
    quorum.wait_ready(30)
    fork_within(quorum)
"""


def test_children_that_end_as_python_ends_hang_at_nothing_and_spoil_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVE_BY_THEMSELVES, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=4 * CHILD_S,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.split() == ["3", "100"] * 2, done.stderr
    for kernels in ("native", "pure"):
        assert fq.log.open(tmp_path / kernels).verify().is_sound


def test_a_child_s_child_is_none_of_the_parent_s_either(tmp_path: Path) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)

        def opens_its_own() -> None:
            with sync.open(tmp_path / "child", **QUICK, node_id=1) as own:
                own.wait_ready(WAIT_S)
                own.append(b"x")
                in_child(lambda: closed(quorum, own))
                own.append(b"y")

        in_child(opens_its_own)
        assert quorum.append(b"x", timeout=WAIT_S) > 0
