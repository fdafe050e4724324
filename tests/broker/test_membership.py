"""Programs that join real controllers of ours, in one process, by both faces of the API."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum.broker import Membership, State
from fastquorum.errors import ClosedError, ConfigError, Fenced, NotAdmitted, UsageError
from fastquorum.types import Uuid
from tests.api.nodes import CLUSTER_ID, WAIT_S
from tests.broker.clusters import (
    OFTEN,
    bootstrap_of,
    create_topic,
    is_fenced,
    join,
    one_controller,
    seen,
    three_controllers,
)

FOREIGN = "AAAAAAAAAAAAAAAAAAAAAg"
DIRECTORY = str(Uuid(b"d" * 16))


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_program_joins_and_knows_that_it_may_act(tmp_path: Path, kernels: str) -> None:
    with (
        one_controller(tmp_path, kernels=kernels) as bootstrap,
        join(bootstrap, host="h7", port=9092, rack="r1", kernels=kernels) as membership,
    ):
        epoch = membership.wait_active(WAIT_S)
        assert (membership.is_active, membership.epoch, membership.check(epoch)) == (True, epoch, epoch)
        assert membership.metadata_offset >= epoch, "it has read its registration"
        broker = membership.image.brokers[7]
        assert (broker.epoch, broker.incarnation_id, broker.fenced) == (epoch, membership.incarnation_id, False)
        assert (broker.rack, [(each.host, each.port) for each in broker.listeners]) == ("r1", [("h7", 9092)])
    assert (membership.state, membership.is_active) == (State.GONE, False)
    assert membership.view.reason == "let go by the controller"
    with pytest.raises(ClosedError, match="membership is over"):
        membership.check()


def test_a_program_with_a_longer_session_than_the_controllers_is_not_let_in(tmp_path: Path) -> None:
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, session_timeout_us=OFTEN["session_timeout_us"] + 1_000) as membership,
        pytest.raises(ConfigError, match="session_timeout_us: controller 1 admits a successor after 3000000 us"),
    ):
        membership.wait_active(WAIT_S)


def test_the_same_in_an_event_loop(tmp_path: Path) -> None:
    async def main(bootstrap: str) -> None:
        states = []
        async with await fq.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, **OFTEN) as membership:

            async def watch() -> None:
                async for now in membership.changes():
                    states.append(now.state)

            watching = asyncio.create_task(watch())
            epoch = await membership.wait_active(WAIT_S)
            assert membership.check(epoch) == epoch
            assert await membership.wait_active() == epoch
        await watching
        assert states[-1] is State.GONE
        await membership.close()
        with pytest.raises(ClosedError):
            await membership.wait_active(WAIT_S)

    with one_controller(tmp_path) as bootstrap:
        asyncio.run(main(bootstrap))


def test_in_another_event_loop_it_is_refused(tmp_path: Path) -> None:
    """Whatever waits there would be woken by nobody."""

    async def main(bootstrap: str) -> None:
        options: dict[str, Any] = {"bootstrap": bootstrap, "broker_id": 7, "cluster_id": CLUSTER_ID, **OFTEN}
        async with fq.broker.join(**options) as membership:

            async def serve() -> None:
                async with membership.serving(cancel=True):
                    pytest.fail("the fence could not cancel this")

            uses: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
                membership.close,
                lambda: membership.wait_active(WAIT_S),
                lambda: anext(membership.changes()),  # type: ignore[arg-type]
                serve,
            )
            for use in uses:
                with pytest.raises(UsageError, match="not the event loop that the membership belongs to"):
                    await asyncio.to_thread(asyncio.run, use())
            assert await membership.wait_active(WAIT_S) == membership.epoch

    with one_controller(tmp_path) as bootstrap:
        asyncio.run(main(bootstrap))


def test_once_its_loop_is_closed_it_may_be_closed_in_any(tmp_path: Path) -> None:
    """Nobody could otherwise."""

    async def joined(bootstrap: str) -> fq.broker.Membership:
        membership = await fq.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, **OFTEN)
        await membership.wait_active(WAIT_S)
        return membership

    with one_controller(tmp_path) as bootstrap:
        membership = asyncio.run(joined(bootstrap))
        asyncio.run(membership.close())
        assert membership.state is State.GONE


def test_its_loop_may_go_on_in_another_thread(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    options: dict[str, Any] = {"broker_id": 7, "cluster_id": CLUSTER_ID, **OFTEN}

    async def joined(bootstrap: str) -> Membership:
        return await fq.broker.join(bootstrap=bootstrap, **options)

    with one_controller(tmp_path) as bootstrap:
        membership = loop.run_until_complete(joined(bootstrap))
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            waiting = asyncio.run_coroutine_threadsafe(membership.wait_active(WAIT_S), loop)
            assert waiting.result(WAIT_S) == membership.epoch
            asyncio.run_coroutine_threadsafe(membership.close(), loop).result(WAIT_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
    assert membership.state is State.GONE


def test_no_rack_may_be_said_by_an_empty_one(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap, rack="") as membership:
        membership.wait_active(WAIT_S)
        assert membership.image.brokers[7].rack is None


def test_not_ready_it_stays_fenced_until_it_says_so(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap, ready=False) as membership:
        seen(membership, lambda view: is_fenced(view, 7))
        with pytest.raises(NotAdmitted, match=r"not ready|registration"):
            membership.wait_active(0.6)
        with pytest.raises(Fenced):
            membership.check()
        membership.set_ready()
        assert membership.wait_active(WAIT_S) == membership.epoch


def test_of_two_with_one_id_the_second_waits_until_the_firsts_session_is_over(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap:
        first = join(bootstrap)
        epoch = first.wait_active(WAIT_S)
        with join(bootstrap) as second:
            reason = ""
            while "no controller has answered" in reason or not reason:
                with pytest.raises(NotAdmitted) as refusal:
                    second.wait_active(0.5)
                reason = str(refusal.value)
            assert "another process is registered as broker 7" in reason
            assert first.check(epoch) == epoch
            first._member.abort()  # it vanishes without a word
            assert second.wait_active(WAIT_S) > epoch
            assert second.image.brokers[7].incarnation_id == second.incarnation_id
            with pytest.raises(ClosedError, match="abandoned"):
                first.check(epoch)


def test_it_outlives_the_controller_that_leads_and_is_let_go_by_the_next(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as nodes:
        membership = join(bootstrap_of(nodes))
        epoch = membership.wait_active(WAIT_S)
        before = membership.view.controller
        assert before is not None
        nodes.crash(before.id)
        with join(bootstrap_of(nodes), 8) as other:  # the next controller works, and both read what it writes
            other.wait_active(WAIT_S)
            seen(membership, lambda view: 8 in view.image.brokers and not is_fenced(view, 8))
            after = membership.view.controller
            assert after is not None
            assert (after.id != before.id, after.epoch > before.epoch) == (True, True)
            assert membership.wait_active(WAIT_S) == epoch
            membership.close()
            assert membership.view.reason == "let go by the controller"


def test_without_controllers_it_fences_itself_and_comes_back_with_them(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as nodes, join(bootstrap_of(nodes)) as membership:
        epoch = membership.wait_active(WAIT_S)
        for node_id in list(nodes.nodes):
            nodes.crash(node_id)
        seen(membership, lambda view: view.state is State.FENCED)
        assert not membership.is_active
        with pytest.raises(Fenced) as fenced:
            membership.check(epoch)
        assert (fenced.value.broker_id, fenced.value.epoch) == (7, epoch)
        nodes.open(1, 2, 3)
        assert membership.wait_active(WAIT_S) == epoch, "nobody was registered in its place"


def test_it_learns_what_it_leads_and_hands_it_over_when_it_goes(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap, 8) as other:
        with join(bootstrap, 7) as membership:
            membership.wait_active(WAIT_S)
            other.wait_active(WAIT_S)
            create_topic(bootstrap, "shards", 7, 8)
            seen(membership, lambda _: membership.partitions())
            (led,) = membership.partitions()
            assert (led.topic, led.partition, led.is_leader, led.leader) == ("shards", 0, True, 7)
            assert (led.replicas, led.isr) == ((7, 8), (7, 8))
            seen(other, lambda _: other.partitions())
            assert not other.partitions()[0].is_leader
        assert membership.view.reason == "let go by the controller"
        seen(other, lambda _: other.partitions()[0].is_leader)
        (taken,) = other.partitions()
        assert (taken.leader, taken.isr) == (8, (8,))
        assert taken.leader_epoch > led.leader_epoch, "whoever checks it refuses the former leader"


def test_going_in_good_order_ends_at_its_deadline_if_nobody_answers(tmp_path: Path) -> None:
    with three_controllers(tmp_path) as nodes:
        membership = join(bootstrap_of(nodes))
        membership.wait_active(WAIT_S)
        for node_id in list(nodes.nodes):
            nodes.crash(node_id)
        membership.close(timeout=0.3)
        assert membership.state is State.GONE
        assert membership.view.reason == "not let go in time"


# --- what cannot be ---------------------------------------------------------------------------------------------------


def test_another_clusters_controllers_are_refused(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap:
        membership = join(bootstrap, cluster_id=FOREIGN)
        with pytest.raises(UsageError, match=f"not those of cluster {FOREIGN}"):
            membership.wait_active(WAIT_S)
        with pytest.raises(UsageError, match="not those of"):
            membership.check()
        assert membership.state is State.GONE


def test_a_quorum_that_keeps_a_user_log_is_named_as_one(tmp_path: Path) -> None:
    options = {"node_id": 1, "cluster_id": CLUSTER_ID}
    with fq.sync.open(tmp_path / "n1", **options) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
        quorum.append(b"value")
        membership = join(str(quorum.endpoint))
        with pytest.raises(UsageError, match="keeps a user log; join nodes that were formatted with --controller"):
            membership.wait_active(WAIT_S)
        assert membership.state is State.GONE


def test_a_quorum_without_controllers_is_named_as_one(tmp_path: Path) -> None:
    with (
        one_controller(tmp_path, controller=False) as bootstrap,
        join(bootstrap) as membership,
        pytest.raises(NotAdmitted, match=r"does not know BrokerRegistration: .* with --controller"),
    ):
        membership.wait_active(2.0)


def test_a_controllers_id_is_refused(tmp_path: Path) -> None:
    """A Fetch under a voter's id would count as that voter's acknowledgement."""
    with one_controller(tmp_path) as bootstrap:
        with pytest.raises(UsageError, match="broker id 1 is a controller's"):
            join(bootstrap, 1).wait_active(WAIT_S)
        with join(bootstrap, 2) as membership:
            membership.wait_active(WAIT_S)
            assert 1 not in membership.image.brokers


def test_a_directory_that_another_broker_has_is_refused(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap, 7, log_dirs=[DIRECTORY]) as membership:
        membership.wait_active(WAIT_S)
        with pytest.raises(fq.RegistrationRefused, match="INVALID_REGISTRATION") as refused:
            join(bootstrap, 8, log_dirs=[DIRECTORY]).wait_active(WAIT_S)
        assert refused.value.broker_id == 8


def test_without_anybody_to_ask_it_says_whom_it_asked() -> None:
    with join("127.0.0.1:1") as membership:
        with pytest.raises(NotAdmitted, match=r"127\.0\.0\.1:1: Connection refused"):
            membership.wait_active(0.3)
        assert isinstance(NotAdmitted("x"), TimeoutError)


def test_a_forked_child_is_no_member(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        epoch = membership.wait_active(WAIT_S)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(ClosedError):
                    membership.check()
                with pytest.raises(ClosedError):
                    membership.is_active  # noqa: B018 - it is not even asked
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert membership.check(epoch) == epoch


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"broker_id": -1}, "broker_id"),
        ({"broker_id": "7"}, "broker_id"),
        ({"bootstrap": "h1"}, "bootstrap"),
        ({"bootstrap": "q2..svc:9093"}, "bootstrap"),
        ({"bootstrap": None}, "bootstrap"),
        ({"cluster_id": " "}, "cluster_id"),
        ({"host": "h"}, "port"),
        ({"host": "h", "port": 0}, "port"),
        ({"host": "h", "port": 1, "listeners": [fq.broker.Listener("A", "h", 1, 0)]}, "listeners"),
        ({"host": "q2..svc", "port": 1}, "host"),
        ({"listeners": [fq.broker.Listener("A", "0.0.0.0", 1, 0)]}, "host"),
        ({"log_dirs": ["short"]}, "log_dirs"),
        ({"log_dirs": []}, "log_dirs"),
        ({"kernels": "fast"}, "kernels"),
        ({"heartbeat_interval_us": 0}, "heartbeat_interval_us"),
        ({"heartbeat_interval_us": 9_000_000}, "heartbeat_interval_us"),
        ({"brokerid": 1}, "brokerid"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, object], key: str) -> None:
    given = {"bootstrap": "h:1", "broker_id": 7, "cluster_id": CLUSTER_ID, **options}
    with pytest.raises(ConfigError) as refused:
        fq.sync.join(**given)  # type: ignore[arg-type]
    assert refused.value.key == key
