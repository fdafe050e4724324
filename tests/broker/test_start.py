"""What a program does before it is a broker: offline, while no controller hears of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.broker import State
from fastquorum.broker.agent import Agent
from fastquorum.broker.lifecycle import NEVER
from fastquorum.errors import ClosedError, ConfigError, Fenced, UsageError
from fastquorum.kernels import load
from tests.api.nodes import CLUSTER_ID, WAIT_S
from tests.broker.clusters import OFTEN, join, one_controller
from tests.broker.rig import CONFIG, SETTINGS, NoChance


def brokers_known_at(bootstrap: str) -> set[int]:
    """To the controller, as a member hears that registers now."""
    with join(bootstrap, 8) as other:
        other.wait_active(WAIT_S)
        return set(other.image.brokers) - {8}


def test_it_is_offline_while_it_is_busy_with_its_own_start(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap:

        def start(membership: sync.Membership) -> None:
            membership.set_ready()  # which is noted, and told nobody
            assert brokers_known_at(bootstrap) == set()
            assert (membership.state, membership.epoch, membership.metadata_offset) == (State.OFFLINE, -1, -1)
            with pytest.raises(Fenced, match="not started"), membership.serving():
                pytest.fail("it has not registered")

        with join(bootstrap, start=start) as membership:
            membership.wait_active(WAIT_S)
            with pytest.raises(UsageError, match="'333' is not an epoch"):
                membership.check("333")  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="True is not an epoch"):
                membership.check(True)
            assert brokers_known_at(bootstrap) == {7}


def test_offline_it_asks_for_nothing_and_waits_for_nothing() -> None:
    agent = Agent(SETTINGS, CONFIG, load("pure"), NoChance())
    assert (agent.deadline_us, agent.on_tick(10**12), agent.set_ready(True, 10**12)) == (NEVER, [], [])
    assert agent.start(10**12)
    assert agent.deadline_us > NEVER


def test_it_registers_when_its_own_start_with_log_recovery_is_done(tmp_path: Path) -> None:
    """It opens a log of its own, which recovers it, and reads it; only then do the controllers hear of the broker."""
    order = []
    log = tmp_path / "log"
    with sync.open(log, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"kept")
    with one_controller(tmp_path) as bootstrap:

        async def recover(membership: fq.broker.Membership) -> None:
            assert membership.state is State.OFFLINE
            async with await fq.open(log, node_id=1) as quorum:
                await quorum.wait_ready(WAIT_S)
                values = [record.value async for item in quorum.committed(follow=False) for record in item.records]
                assert values == [b"kept"]
            order.append(("recovered", membership.epoch))

        async def main() -> None:
            async with await fq.broker.join(
                bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, start=recover, **OFTEN
            ) as membership:
                order.append(("registered", await membership.wait_active(WAIT_S)))

        asyncio.run(main())
    (recovered, before), (registered, epoch) = order
    assert (recovered, before, registered) == ("recovered", -1, "registered")
    assert epoch > before


def test_a_start_that_fails_registers_nothing(tmp_path: Path) -> None:
    made = []

    def start(membership: sync.Membership) -> None:
        made.append(membership)
        raise OSError("the log is on a broken disk")

    with one_controller(tmp_path) as bootstrap:
        with pytest.raises(OSError, match="broken disk"):
            join(bootstrap, start=start)
        assert brokers_known_at(bootstrap) == set()
    assert made[0].state is State.GONE
    with pytest.raises(ClosedError):
        made[0].check()


def test_a_start_of_the_other_kind_is_refused_and_nothing_registered(tmp_path: Path) -> None:
    """One that nobody awaits has recovered nothing."""

    async def recover(membership: object) -> None:
        pytest.fail("nobody awaits it")

    async def main(bootstrap: str, start: Any) -> None:
        await fq.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, start=start, **OFTEN)

    with one_controller(tmp_path) as bootstrap:
        with pytest.raises(ConfigError, match="start: is an `async def`"):
            join(bootstrap, start=recover)
        with pytest.raises(ConfigError, match="start: is a plain function"):
            asyncio.run(main(bootstrap, lambda membership: None))
        with pytest.raises(ConfigError, match="start: 5 is not a function"):
            join(bootstrap, start=5)
        assert brokers_known_at(bootstrap) == set()


def test_a_start_that_is_cancelled_registers_nothing(tmp_path: Path) -> None:
    made = []

    async def main(bootstrap: str) -> None:
        has_begun = asyncio.Event()

        async def start(membership: fq.broker.Membership) -> None:
            made.append(membership)
            has_begun.set()
            await asyncio.Event().wait()

        joining = asyncio.create_task(
            fq.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, start=start, **OFTEN)
        )
        await has_begun.wait()
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining

    with one_controller(tmp_path) as bootstrap:
        asyncio.run(main(bootstrap))
        assert brokers_known_at(bootstrap) == set()
    assert made[0].state is State.GONE
