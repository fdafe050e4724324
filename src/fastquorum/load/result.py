"""The result of a run as plain JSON. This is the format of `--format json` and of the history: fields are only added.

`fastquorum.load/1`, one offered load:
    format, version, started, plan                  what was run; driver, api, ... stand in the plan (`plan.LoadPlan`)
    latency_us {p50, p90, p99, p999, max}           from the intended send time (closed loop: from the send) to the
                                                    acknowledgement, of each append; to three digits; null where
                                                    nothing was acknowledged
    offered_per_s                                   records that the schedule brought; closed loop: that were sent
    achieved_per_s                                  records acknowledged before the schedule's end, over its length
    appends, records, acknowledged                  counts; `acknowledged` of appends
    errors {kind: appends}                          refused, given up, killed, or of unknown outcome; never sent again
    generator_was_bottleneck, generator             with `how` it was found, lateness_us of ticks against the schedule,
                                                    own_appends_per_s (to a target that does nothing), cpu_share
    elections [{t_s, epoch, leader}], kills         since the start; before the start is not told
    stolen_cpu_share                                of the CPU time wanted, what a hypervisor gave to other machines
    cpu_us_per_append, nodes [...]                  all processes of the run, where they are ours; memory
    stages {node: {stage: figures}}                 of our nodes, while they were measured: count, sum_us, mean_us,
                                                    p50_us, p99_us, buckets [[number, count]] that are not
                                                    empty; names and buckets are `kernels.stages`'
    timeline [...]                                  an entry per 0.1 s, counts of appends (see `recorded.TimelinePoint`)
    histogram                                       all latencies in ns, HdrHistogram V2, base64
    machine                                         facts about where it ran
    interrupted                                     the user ended it early

`fastquorum.load.sweep/1`, several: steps (results as above), knee, overload, machine, started, version.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastquorum.load.plan import LoadPlan
from fastquorum.load.recorded import RecordedRun
from fastquorum.load.running import Kill
from fastquorum.load.stage import ObservedElection, Stage
from fastquorum.version import __version__

FORMAT: Final = "fastquorum.load/1"
SWEEP_FORMAT: Final = "fastquorum.load.sweep/1"
Result = dict[str, Any]


def result_of(
    plan: LoadPlan,
    recorded: RecordedRun,
    stage: Stage,
    *,
    started: datetime.datetime,
    cpu_s: float | None,
    stolen_share: float | None,
    kill: Kill | None,
    machine: Mapping[str, Any],
) -> Result:
    """`cpu_s`: what all our processes used in the phase; None if the quorum is not ours, or one died."""
    size, window_s = plan.records_per_append, recorded.window_s
    is_slow, how = recorded.bottleneck(is_closed=bool(plan.closed), is_alone=not stage.is_embedded)
    is_open = not (plan.closed or recorded.is_interrupted)
    offered_s = recorded.seconds if is_open else window_s
    achieved_s = max(window_s, recorded.seconds) if is_open else window_s
    acknowledged = recorded.latencies.total
    return {
        "format": FORMAT,
        "version": __version__,
        "started": started.isoformat(timespec="seconds"),
        "plan": plan.as_json(),
        "latency_us": recorded.latencies.as_us() if acknowledged else dict.fromkeys(recorded.latencies.as_us()),
        "offered_per_s": recorded.arrivals * size / max(offered_s, 1e-9),
        "achieved_per_s": recorded.acknowledged_in_time * size / achieved_s,
        "appends": recorded.arrivals,
        "records": recorded.arrivals * size,
        "acknowledged": acknowledged,
        "errors": dict(sorted(recorded.errors.items())),
        "generator_was_bottleneck": is_slow,
        "generator": {
            "how": how,
            "lateness_us": recorded.lateness.as_us(),
            "own_appends_per_s": recorded.own_appends_per_s or None,
            "cpu_share": recorded.generator_cpu_s / window_s,
            "sent": recorded.sent,
        },
        "elections": _elections(stage.elections, recorded.start_ns),
        "kills": _kills(kill, recorded.start_ns),
        "cpu_us_per_append": None if cpu_s is None or not acknowledged else cpu_s / acknowledged * 1e6,
        "stolen_cpu_share": stolen_share,
        "nodes": [
            {"node_id": node.node_id, "resident_bytes_max": node.resident_bytes_max(), "killed": node.was_killed}
            for node in stage.nodes
        ],
        "timeline": [dataclasses.asdict(point) for point in recorded.points],
        "histogram": recorded.latencies.encoded(),
        "machine": dict(machine),
        "interrupted": recorded.is_interrupted,
    }


def sweep_result(
    steps: Sequence[Result], knee: Result | None, overload: Result | None, machine: Mapping[str, Any]
) -> Result:
    """Steps in the order of their offered load. `overload` was offered twice what the knee was."""
    return {
        "format": SWEEP_FORMAT,
        "version": __version__,
        "started": steps[0]["started"] if steps else "",
        "steps": sorted(steps, key=lambda step: float(step["offered_per_s"])),
        "knee": _summary(knee),
        "overload": None
        if knee is None or overload is None
        else {
            **(_summary(overload) or {}),
            "achieved_over_knee": overload["achieved_per_s"] / max(knee["achieved_per_s"], 1e-9),
            "elections": overload["elections"],
        },
        "machine": dict(machine),
        "interrupted": any(step["interrupted"] for step in steps),
    }


def _summary(step: Result | None) -> Result | None:
    if step is None:
        return None
    kept = ("offered_per_s", "achieved_per_s", "latency_us", "errors", "generator_was_bottleneck")
    return {name: step[name] for name in kept}


def _elections(elections: Sequence[ObservedElection], start_ns: int) -> list[dict[str, Any]]:
    return [
        {"t_s": (each.at_ns - start_ns) / 1e9, "epoch": each.epoch, "leader": each.leader_id}
        for each in elections
        if each.at_ns >= start_ns
    ]


def _kills(kill: Kill | None, start_ns: int) -> list[dict[str, Any]]:
    if kill is None or not kill.at_ns:
        return []
    return [{"t_s": (kill.at_ns - start_ns) / 1e9, "node_id": kill.node_id}]
