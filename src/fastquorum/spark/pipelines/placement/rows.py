"""Results of `placement` as Arrow tables with brokers' own ids."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastquorum.controller.planning import NOBODY, Loss, Plan, Reason
from fastquorum.spark.pipelines.placement.layouts import Ints, PlannedCluster
from fastquorum.spark.stored import arrow

_NODES: Final = pa.list_(pa.int32())
_COUNTS: Final = ("replicas", "leaders", "preferred", "replicas_after", "leaders_after", "preferred_after")
BROKERS: Final = pa.schema(
    [
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("rack", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        *arrow.fields(pa.int64(), *_COUNTS, "gains", "gives", nullable=False),
    ]
)
"""`preferred`: partitions that it is to lead, being their first. `leaders_after`: once all is moved, and preferred
leaders are elected. `gains`, `gives`: replicas that the moves bring and take."""
LOSSES: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string()),
        *arrow.fields(pa.int64(), "partitions", "leaders", "offline", nullable=False),
        *arrow.fields(pa.int64(), "without_replica", "under_min_isr", "most_led", nullable=False),
        pa.field("most_leader", pa.int32()),
        pa.field("heirs", pa.list_(pa.struct([("broker_id", pa.int32()), ("leaders", pa.int64())])), nullable=False),
    ]
)
"""`kind`: broker or rack. Counts as of `controller.planning.Loss`: what would be wrong beyond what is."""
MOVES: Final = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        *arrow.fields(_NODES, "replicas", "planned", nullable=False),
        pa.field("added", pa.int32(), nullable=False),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
    ]
)
"""`added`: replicas that have to be copied; 0 if only the order changes."""
REASONS: Final = tuple((reason, reason.name.lower()) for reason in Reason if reason.name)


def states_of(cluster: PlannedCluster) -> list[str]:
    """Return the state of each broker, in words."""
    brokers = cluster.layout.brokers
    return [
        "active" if active else "not registered" if not registered else "fenced" if fenced else "shutting down"
        for active, registered, fenced in zip(brokers.is_active, brokers.is_registered, cluster.fenced, strict=True)
    ]


def broker_rows(cluster: PlannedCluster, plan: Plan) -> pa.Table:
    """Return the rows of brokers (BROKERS)."""
    layout, after, brokers = cluster.layout, plan.layout, cluster.layout.brokers
    gains, gives = _exchanged(plan, brokers.total)
    columns = [
        pa.array(brokers.ids),
        pa.array([brokers.rack_names[rack] for rack in brokers.racks.tolist()], pa.string()),
        pa.array(states_of(cluster), pa.string()),
        *(
            pa.array(counts)
            for counts in (
                layout.replica_counts(),
                layout.leader_counts(),
                layout.preferred_counts(),
                after.replica_counts(),
                np.bincount(elected(plan) + 1, minlength=brokers.total + 1)[1:],
                after.preferred_counts(),
            )
        ),
        pa.array(gains),
        pa.array(gives),
    ]
    return pa.table(columns, schema=BROKERS)


def elected(plan: Plan) -> Ints:
    """Return the leader of each partition in the end: its preferred leader, where that is in sync and active."""
    layout = plan.layout
    if layout.replicas.shape[1] == 0:
        return layout.leaders
    first = layout.replicas[:, 0]
    is_good = layout.in_sync[:, 0] & np.append(layout.brokers.is_active, False)[first] & (layout.leaders != NOBODY)
    return np.where(is_good, first, layout.leaders)


def _exchanged(plan: Plan, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    came, went = plan.after[beside(plan.after, plan.before)], plan.before[beside(plan.before, plan.after)]
    gains, gives = (np.bincount(each + 1, minlength=count + 1)[1:].astype(np.int64) for each in (came, went))
    return gains, gives


def beside(places: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """Return which of each partition's places are not among the others."""
    are_apart: npt.NDArray[np.bool_] = (places[:, :, None] != others[:, None, :]).all(axis=2)
    return are_apart


def loss_rows(cluster: PlannedCluster, of_brokers: Sequence[Loss], of_racks: Sequence[Loss]) -> pa.Table:
    """LOSSES."""
    brokers = cluster.layout.brokers
    both = [*of_brokers, *of_racks]
    names = [str(brokers.ids[each.lost]) for each in of_brokers] + [brokers.rack_names[each.lost] for each in of_racks]
    heirs = [each.heirs for each in both]
    ends = np.append(0, np.cumsum([len(each) for each in heirs])).astype(np.int32)
    flat = pa.StructArray.from_arrays(
        [
            pa.array(brokers.ids[np.concatenate([*heirs, np.zeros(0, np.int32)])]),
            pa.array(np.concatenate([*(each.inherited for each in both), np.zeros(0, np.int64)])),
        ],
        fields=list(LOSSES.field("heirs").type.value_type),
    )
    most = [None if each.most_leader == NOBODY else int(brokers.ids[each.most_leader]) for each in both]
    columns = [
        pa.array(["broker"] * len(of_brokers) + ["rack"] * len(of_racks), pa.string()),
        pa.array(names, pa.string()),
        *(pa.array([getattr(each, name) for each in both], pa.int64()) for name in LOSSES.names[2:-2]),
        pa.array(most, pa.int32()),
        pa.ListArray.from_arrays(pa.array(ends), flat),
    ]
    return pa.table(columns, schema=LOSSES)


def move_rows(cluster: PlannedCluster, plan: Plan) -> pa.Table:
    """MOVES."""
    ids = cluster.layout.brokers.ids
    topics = pa.DictionaryArray.from_arrays(
        pa.array(np.asarray(cluster.topics.indices)[plan.partitions]), cluster.topics.dictionary
    )
    named = [[name for reason, name in REASONS if value & reason] for value in range(1 << len(REASONS))]
    columns = [
        topics.cast(pa.string()),
        pa.array(cluster.numbers[plan.partitions]),
        _lists(ids, plan.before),
        _lists(ids, plan.after),
        pa.array(beside(plan.after, plan.before).sum(axis=1).astype(np.int32)),
        pa.array(named, pa.list_(pa.string())).take(pa.array(plan.reasons.astype(np.int32))),
    ]
    return pa.table(columns, schema=MOVES)


def _lists(ids: Ints, places: Ints) -> pa.ListArray:
    is_there = places != NOBODY
    ends = np.append(0, np.cumsum(is_there.sum(axis=1))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(ids[places[is_there]]))
