"""`placement`: how leaders and replicas lie over brokers and racks, what each loss would do, and what would repair it.

From tables `partitions`, `brokers` and `configs` of one cluster's image. What computes is `controller.planning`; what
is here makes tables of it. Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.controller.planning import Layout, Limits, Loss, loss_of_each, plan_moves
from fastquorum.spark.pipelines.choosing import with_unproven
from fastquorum.spark.pipelines.packing import Packing
from fastquorum.spark.pipelines.placement.layouts import cluster_of
from fastquorum.spark.pipelines.placement.rows import BROKERS, LOSSES, MOVES, broker_rows, loss_rows, move_rows
from fastquorum.spark.pipelines.placement.summary import summary_of

ALL: Final = Limits()


class Placement(NamedTuple):
    """Placement of one cluster."""

    brokers: pa.Table
    """A row for each broker, by id."""
    losses: pa.Table
    """A row for each broker, then for each rack."""
    moves: pa.Table
    """A row for each partition that is to change."""
    summary: dict[str, Any]
    """Summary for JSON. A cluster that could not be looked at has `unchecked`, why."""


PACKING: Final = Packing(Placement, {"brokers": BROKERS, "losses": LOSSES, "moves": MOVES})


def placement(
    partitions: pa.Table, brokers: pa.Table, configs: pa.Table, limits: Limits = ALL, *, keep_fenced: bool = False
) -> Placement:
    """Compute the placement of one cluster's image.

    Args:
        partitions, brokers, configs: as `layouts` has their columns, of the tables of these names,
            of one directory. Rows that tell of damage do not count, but are reported.
        keep_fenced: brokers that are registered and fenced will be back; else they are dead, and what they hold is
            to be elsewhere.
    """
    cluster = cluster_of(partitions, brokers, configs)
    layout = cluster.layout
    of_brokers, of_racks = losses_of(layout)
    plan = plan_moves(layout, cluster.dead(keep_fenced=keep_fenced), limits)
    return Placement(
        broker_rows(cluster, plan),
        loss_rows(cluster, of_brokers, of_racks),
        move_rows(cluster, plan),
        summary_of(cluster, of_brokers, of_racks, plan),
    )


def placement_or_why(
    partitions: pa.Table,
    brokers: pa.Table,
    configs: pa.Table,
    limits: Limits = ALL,
    *,
    keep_fenced: bool = False,
    unproven: str | None = None,
) -> Placement:
    """Compute as `placement` does; where nothing of the cluster could be read, return only why. `unproven`: as of
    `choosing.CHOICE`, for the summary."""
    found = placement(partitions, brokers, configs, limits, keep_fenced=keep_fenced)
    errors = found.summary["errors"]
    if errors and found.summary["end_offset"] is None:
        return PACKING.nothing({"unchecked": "; ".join(errors)})
    return found._replace(summary=with_unproven(found.summary, unproven))


def unchecked(cluster_id: str | None, why: str) -> pa.Table:
    """Return the packed result of a cluster that could not be looked at, and why."""
    return PACKING.packed(cluster_id, PACKING.nothing({"unchecked": why}))


def losses_of(layout: Layout) -> tuple[list[Loss], list[Loss]]:
    """Return the losses of each broker, and of each rack; no racks if brokers name none."""
    has_racks = layout.brokers.rack_names not in ((), (None,))
    return list(loss_of_each(layout)), list(loss_of_each(layout, of_racks=True)) if has_racks else []


def as_report(
    found: Iterable[tuple[str | None, Placement]], *, moves_max: int | None = None, losses_max: int | None = None
) -> dict[str, Any]:
    """Return a report for programs: `clusters`, each with its summary, `brokers`, `losses` and `moves`; no more of the
    last two than asked for, the worst losses first. A cluster that could not be looked at has `unchecked`, why."""
    clusters = []
    for cluster_id, each in found:
        if "unchecked" in each.summary:
            clusters.append({"cluster_id": cluster_id, **each.summary})
            continue
        losses = each.losses.sort_by([(name, "descending") for name in ("offline", "under_min_isr", "leaders")])
        clusters.append(
            {
                "cluster_id": cluster_id,
                **each.summary,
                "brokers": each.brokers.to_pylist(),
                "losses": losses.slice(0, losses_max).to_pylist(),
                "moves": each.moves.slice(0, moves_max).to_pylist(),
            }
        )
    return {"clusters": clusters}
