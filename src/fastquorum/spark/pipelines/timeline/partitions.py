"""How long each partition was offline, under-replicated or under its min ISR.

* offline: it has no leader.
* under-replicated: the ISR is smaller than the replicas, those aside that a reassignment is adding, as in Kafka's
  metric UnderReplicatedPartitions.
* under min ISR: the ISR is smaller than the effective min.insync.replicas (`min_isr`).
"""

from typing import Final

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.timeline.states import States
from fastquorum.spark.stored import arrow

CONDITIONS: Final = ("offline", "under_replicated", "under_min_isr")
SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("existed_ms", pa.int64(), nullable=False),
        *arrow.fields(pa.int64(), *(f"{each}_ms" for each in CONDITIONS), nullable=False),
        *arrow.fields(pa.int64(), *(f"longest_{each}_ms" for each in CONDITIONS), "leader_changes", nullable=False),
        pa.field("is_there", pa.bool_(), nullable=False),
        pa.field("leader", pa.int32()),
        *arrow.fields(pa.bool_(), *(f"is_{each}" for each in CONDITIONS), nullable=False),
    ]
)
"""One row for each partition that there was, by topic and number; a topic made again under its name has another id.
`longest_...`: the worst single stretch. `leader_changes`: how often the leader became another one, or none, or one
after none. `is_...` and `leader`: at the end; -1 is no leader, null no partition any more."""


def partition_availability(states: States) -> pa.Table:
    """One row for each partition that there was, of SCHEMA."""
    if len(states.starts) == 0:
        return SCHEMA.empty_table()
    starts, topics, partitions = states.starts, states.topics, states.partitions
    last = np.append(starts[1:], len(states.is_there)) - 1
    conditions = {each: getattr(states, f"is_{each}") for each in CONDITIONS}
    columns = {
        "topic": topics.names_of(partitions.topics),
        "topic_id": topics.ids.take(pa.array(partitions.topics)),
        "partition": pa.array(partitions.numbers, pa.int32()),
        "existed_ms": _sums(states.is_there, states),
        "leader_changes": np.add.reduceat(_leader_changed(states).astype(np.int64), starts),
        "is_there": states.is_there[last],
        "leader": pa.array(states.leaders[last], pa.int32(), mask=~states.is_there[last]),
    }
    for name, flags in conditions.items():
        columns |= {f"{name}_ms": _sums(flags, states), f"longest_{name}_ms": _longest(flags, states)}
        columns[f"is_{name}"] = flags[last]
    ever = pa.array(np.logical_or.reduceat(states.is_there, starts))
    made = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA).filter(ever)
    return made.sort_by([("topic", "ascending"), ("topic_id", "ascending"), ("partition", "ascending")])


def _sums(flags: Flags, states: States) -> Ints:
    """For how long, of each partition."""
    return np.add.reduceat(np.where(flags, states.durations_ms, 0), states.starts)


def _longest(flags: Flags, states: States) -> Ints:
    """For how long at a stretch, at most."""
    is_first = np.append(True, flags[1:] != flags[:-1])
    is_first[states.starts] = True
    runs = np.flatnonzero(is_first)
    lasted = np.add.reduceat(np.where(flags, states.durations_ms, 0), runs)
    return np.maximum.reduceat(lasted, np.searchsorted(runs, states.starts))


def _leader_changed(states: States) -> Flags:
    there, leaders = states.is_there, states.leaders
    changed = np.append(False, there[1:] & there[:-1] & (leaders[1:] != leaders[:-1]))
    changed[states.starts] = False
    return changed
