"""Stories: allowed but suspicious events, each far beyond the ordinary ones (`life`).

* election storm: twelve leaders of the quorum within six minutes. Ordinary: one in eight hours.
* flapping broker: one broker dies and is back six times within half an hour. Ordinary: once in three hours.
* ISR churn: the ISR of one partition loses and regains a follower thirty times within an hour. Ordinary: once a
  restart of one of its brokers, and hardly ever else.
* record-mix change: a topic's configuration is changed 600 times within forty minutes. Ordinary: once in two hours.

The fifth, a gap between snapshots, is not an event: see `snapshots`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.config import SECOND
from fastquorum.generate.calendar import MINUTE
from fastquorum.generate.kinds import Kind
from fastquorum.generate.life import OrdinaryLife
from fastquorum.generate.planted import Planted, begun, ended

STORM_ELECTIONS, STORM_EVERY_US = 12, 30 * SECOND
FLAPS, FLAP_EVERY_US, FLAP_DOWN_US = 6, 5 * MINUTE, MINUTE
CHURNS, CHURN_EVERY_US = 30, 2 * MINUTE
CHANGES, CHANGE_EVERY_US = 600, 4 * SECOND


def election_storm(life: OrdinaryLife) -> Planted:
    planted = begun(life.controller, Kind.ELECTION_STORM)
    _repeat(life, planted, STORM_ELECTIONS, STORM_EVERY_US, life.change_leader)
    return planted


def flapping_broker(life: OrdinaryLife) -> Planted:
    planted = begun(life.controller, Kind.FLAPPING_BROKER)
    planted.broker = broker_id = life.sim_brokers.partition(life.whole()).leader

    def flap() -> None:
        life.restart(broker_id, FLAP_DOWN_US, is_crash=True, rejoin_us=MINUTE // 2)

    _repeat(life, planted, FLAPS, FLAP_EVERY_US, flap, rest_us=3 * MINUTE)
    return planted


def isr_churn(life: OrdinaryLife) -> Planted:
    key = life.whole()
    planted = begun(life.controller, Kind.ISR_CHURN, key)

    def churn() -> None:
        follower = life.shrink(key)
        life.calendar.after(CHURN_EVERY_US // 2, lambda: life.sim_brokers.catch_up(follower, [key]))

    _repeat(life, planted, CHURNS, CHURN_EVERY_US, churn, rest_us=CHURN_EVERY_US // 2)
    return planted


def record_mix_change(life: OrdinaryLife) -> Planted:
    planted = begun(life.controller, Kind.RECORD_MIX_CHANGE)
    number = life.prng.randrange(life.topics.count)
    planted.topic = life.topics.name_of(number)
    _repeat(life, planted, CHANGES, CHANGE_EVERY_US, lambda: life.configure(number, life.prng.between(1, 14)))
    return planted


def _repeat(
    life: OrdinaryLife, planted: Planted, count: int, every_us: int, act: Callable[[], None], *, rest_us: int = 0
) -> None:
    """Repeat an action, the first time at once; the story ends rest_us after the last."""
    for number in range(count):
        life.calendar.after(number * every_us, act)
    life.calendar.after((count - 1) * every_us + rest_us + SECOND // 1000, lambda: ended(life.controller, planted))


STORIES: Final[Mapping[Kind, Callable[[OrdinaryLife], Planted]]] = MappingProxyType(
    {
        Kind.ELECTION_STORM: election_storm,
        Kind.FLAPPING_BROKER: flapping_broker,
        Kind.ISR_CHURN: isr_churn,
        Kind.RECORD_MIX_CHANGE: record_mix_change,
    }
)
"""The function of each story, to be called in its own calm time."""
