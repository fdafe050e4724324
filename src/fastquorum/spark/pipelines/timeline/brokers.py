"""How long each broker was registered, fenced and in controlled shutdown, and how many partitions it led."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.timeline.lives import BrokerLife, LifeState
from fastquorum.spark.pipelines.timeline.states import States
from fastquorum.spark.stored import arrow
from fastquorum.types import NO_NODE, NodeId

SCHEMA: Final = pa.schema(
    [
        pa.field("broker_id", pa.int32(), nullable=False),
        *arrow.fields(pa.int64(), "registered_ms", "active_ms", "fenced_ms", "controlled_shutdown_ms", nullable=False),
        *arrow.fields(pa.int64(), "bounces", "fences", nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("led_ms", pa.int64(), nullable=False),
        pa.field("led_mean", pa.float64()),
        pa.field("led", pa.int64(), nullable=False),
    ]
)
"""One row for each broker, by id. registered = active + fenced + in controlled shutdown, which is what it is no longer
once it is fenced. `bounces`: how often it registered as another incarnation than before. `led_ms`: partitions times
how long it led them; `led_mean`: that over its registered time, null if there is none. `led`, `state`: at the end."""


def broker_availability(states: States, lives: dict[NodeId, BrokerLife]) -> pa.Table:
    """One row for each broker that was registered or led, of SCHEMA."""
    leads = states.is_there & (states.leaders != NO_NODE)
    leaders, at = np.unique(states.leaders[leads], return_inverse=True)
    led_ms = np.zeros(len(leaders), np.int64)
    np.add.at(led_ms, at.reshape(-1), states.durations_ms[leads])
    last = np.append(states.starts[1:], len(states.is_there))[: len(states.starts)] - 1
    at_end, counts = np.unique(states.leaders[last][leads[last]], return_counts=True)
    led_by = dict(zip(leaders.tolist(), led_ms.tolist(), strict=True))
    led_at_end = dict(zip(at_end.tolist(), counts.tolist(), strict=True))
    rows = [
        _row(lives.get(each) or BrokerLife(each), led_by.get(each, 0), led_at_end.get(each, 0))
        for each in sorted({*lives, *led_by})
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _row(life: BrokerLife, led_ms: int, led: int) -> dict[str, Any]:
    lasted = life.lasted_ms
    registered_ms = sum(lasted[each] for each in LifeState if each is not LifeState.GONE)
    return {
        "broker_id": life.id,
        "registered_ms": registered_ms,
        "active_ms": lasted[LifeState.ACTIVE],
        "fenced_ms": lasted[LifeState.FENCED],
        "controlled_shutdown_ms": lasted[LifeState.SHUTTING_DOWN],
        "bounces": life.bounces,
        "fences": life.fences,
        "state": life.state.value,
        "led_ms": led_ms,
        "led_mean": led_ms / registered_ms if registered_ms else None,
        "led": led,
    }
