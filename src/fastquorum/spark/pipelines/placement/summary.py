"""The whole in a few figures, for JSON: stable keys, from which a page or a table is made."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastquorum.controller.planning import NOBODY, Layout, Loss, Plan, spread
from fastquorum.spark.pipelines.placement.layouts import PlannedCluster
from fastquorum.spark.pipelines.placement.rows import REASONS, beside, elected, states_of


def summary_of(
    cluster: PlannedCluster, of_brokers: Sequence[Loss], of_racks: Sequence[Loss], plan: Plan
) -> dict[str, Any]:
    """Summarize one cluster: how it is, what the worst losses are, what the plan comes to."""
    layout, brokers = cluster.layout, cluster.layout.brokers
    states = states_of(cluster)
    names = brokers.rack_names
    return {
        "end_offset": cluster.end_offset,
        "errors": list(cluster.errors),
        "broker_states": {state: states.count(state) for state in sorted(set(states))},
        "racks": _racks(layout),
        "partitions": len(layout.replicas),
        "now": _figures(layout, layout.leaders),
        "worst_losses": {
            "broker": _worst(of_brokers, [int(each) for each in brokers.ids]),
            "rack": _worst(of_racks, list(names)),
        },
        "plan": {
            "partitions": len(plan.partitions),
            "moved_replicas": plan.moved_replicas,
            "reordered": int((plan.reasons != 0).sum() - beside(plan.after, plan.before).any(axis=1).sum()),
            "reasons": {name: int((plan.reasons & reason != 0).sum()) for reason, name in REASONS},
            "stuck": len(plan.stuck),
            "skipped": plan.skipped,
            "after": _figures(plan.layout, elected(plan)),
        },
    }


def _racks(layout: Layout) -> list[dict[str, Any]]:
    brokers = layout.brokers
    replicas, leaders = layout.replica_counts(), layout.leader_counts()
    return [
        {
            "rack": name,
            "brokers": int((brokers.racks == number).sum()),
            "active": int(((brokers.racks == number) & brokers.is_active).sum()),
            "replicas": int(replicas[brokers.racks == number].sum()),
            "leaders": int(leaders[brokers.racks == number].sum()),
        }
        for number, name in enumerate(brokers.rack_names)
    ]


def _figures(layout: Layout, leaders: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Return the figures of one layout, with these leaders."""
    brokers = layout.brokers
    active = np.append(brokers.is_active, False)
    there = layout.replicas != NOBODY
    in_sync = (layout.in_sync & active[layout.replicas]).sum(axis=1)
    rack_count = len({int(each) for each in brokers.racks[brokers.is_active]})
    possible = np.minimum(there.sum(axis=1), rack_count)
    led = np.bincount(leaders + 1, minlength=brokers.total + 1)[1:]
    return {
        "replicas": int(there.sum()),
        "replicas_per_broker": _shares(layout.replica_counts()[brokers.is_active]),
        "leaders_per_broker": _shares(led[brokers.is_active]),
        "preferred_per_broker": _shares(layout.preferred_counts()[brokers.is_active]),
        "offline": int((leaders == NOBODY).sum()),
        "under_replicated": int((in_sync < there.sum(axis=1)).sum()),
        "under_min_isr": int((in_sync < layout.min_isr).sum()),
        "not_led_by_preferred": int((leaders != layout.replicas[:, 0]).sum()) if there.size else 0,
        "replicas_on_inactive": int((there & ~active[layout.replicas]).sum()),
        "rack_violations": int((spread(brokers, layout.replicas) < possible).sum()),
        "moving": int(layout.is_moving.sum()),
    }


def _shares(counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Least, mean and most, and by how much the most is above the mean, as a part of it. Null: no broker is active."""
    if len(counts) == 0:
        return dict.fromkeys(("min", "mean", "max", "imbalance"))
    mean = float(counts.mean())
    return {
        "min": int(counts.min()),
        "mean": round(mean, 3),
        "max": int(counts.max()),
        "imbalance": round(float(counts.max()) / mean - 1, 4) if mean else 0.0,
    }


def _worst(losses: Sequence[Loss], names: Sequence[Any]) -> dict[str, Any] | None:
    """The one that takes most offline, then below the least ISR, then most leaders; and how many take any offline."""
    if not losses:
        return None
    worst = max(losses, key=lambda each: (each.offline, each.under_min_isr, each.leaders, -each.lost))
    return {
        "name": names[worst.lost],
        "offline": worst.offline,
        "under_min_isr": worst.under_min_isr,
        "leaders": worst.leaders,
        "would_take_offline": sum(each.offline > 0 for each in losses),
    }
