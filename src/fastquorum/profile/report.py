"""A profile's report: plain JSON, and the same as text. `fastquorum.profile/1`; fields are only added.

format, version, started, command    what was run, and when
wall_s, rate_hz, sampled             how long, samples a second, whose stacks (ids of nodes)
sampled_s, waited_s                  seconds in the two flame graphs: on a processor, and waiting
nodes [...]                          node_id, role, threads, running_share and ready_share (of the wall clock),
                                     sync {count, share, mean_us, p50_us, p99_us}, stages (see `kernels.stages`)
commit {...}                         of the leader: mean_us until written, committed and told, and their shares
missing [...]                        what, why, hint
load                                 the load's own result, without its timeline and histogram
files                                what was written
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fastquorum.profile.profiling import Profiler
from fastquorum.version import __version__

FORMAT: Final = "fastquorum.profile/1"
Report = dict[str, Any]
_BULKY: Final = ("timeline", "histogram")
PATH: Final = (
    ("append_written", "until written"),
    ("written_committed", "until committed"),
    ("committed_told", "until reported"),
)
"""The parts of a commit's way, and what people call them."""


def report_of(
    profiler: Profiler, load: Mapping[str, Any], command: Sequence[str], rate: int, started: datetime.datetime
) -> Report:
    """`load`: the result of the run that was profiled."""
    leader = next((each.node_id for each in profiler.subjects if each.is_leader), None)
    stages = load.get("stages", {})
    return {
        "format": FORMAT,
        "version": __version__,
        "started": started.isoformat(timespec="seconds"),
        "command": list(command),
        "wall_s": profiler.wall_s,
        "rate_hz": rate,
        "sampled": profiler.sampled,
        "sampled_s": sum(profiler.stacks.values()),
        "waited_s": sum(profiler.waits.values()),
        "nodes": [
            {
                "node_id": each.node_id,
                "role": "leader" if each.is_leader else "follower",
                "running_share": _share(profiler, each.node_id, "running_s"),
                "ready_share": _share(profiler, each.node_id, "ready_s"),
                "sync": _sync(stages.get(str(each.node_id), {}), profiler.wall_s),
                "threads": profiler.threads[each.node_id],
                "stages": stages.get(str(each.node_id), {}),
            }
            for each in profiler.subjects
        ],
        "commit": _commit(stages.get(str(leader), {})),
        "missing": [each._asdict() for each in profiler.missing],
        "load": {name: value for name, value in load.items() if name not in _BULKY},
        "files": [],
    }


def _share(profiler: Profiler, node_id: int, what: str) -> float | None:
    values = [row[what] for row in profiler.threads[node_id]]
    if not profiler.wall_s or any(value is None for value in values):
        return None
    return float(sum(values)) / profiler.wall_s


def _sync(stages: Mapping[str, Mapping[str, float]], wall_s: float) -> dict[str, float] | None:
    """How much of the time a sync was under way, and how long one took."""
    sync = stages.get("sync")
    if sync is None or not wall_s:
        return None
    kept = {name: sync[name] for name in ("count", "mean_us", "p50_us", "p99_us")}
    return {**kept, "share": sync["sum_us"] / 1e6 / wall_s}


def _commit(stages: Mapping[str, Mapping[str, float]]) -> dict[str, Any] | None:
    """The way of a commit, in its three parts; how long the leader's own disk and the followers took on the way."""
    if not stages or not stages["append_told"]["count"]:
        return None
    parts = {name: stages[name]["mean_us"] for name, _ in PATH}
    whole = sum(parts.values()) or 1.0
    return {
        "appends": stages["append_told"]["count"],
        "batches": stages["append_written"]["count"],
        "append_told_us": stages["append_told"]["mean_us"],
        "mean_us": parts,
        "shares": {name: value / whole for name, value in parts.items()},
        "own_sync_us": stages["written_flushed"]["mean_us"],
        "majority_us": stages["sent_acked"]["mean_us"],
    }


# --- as text ----------------------------------------------------------------------------------------------------------


def achieved(load: Mapping[str, Any]) -> str:
    """Rate and latency of the load. One that was ended in its warm-up has no latency."""
    rate, latency = f"{load['achieved_per_s']:,.0f} records/s", load["latency_us"]
    if latency["p50"] is None:
        return f"{rate}, no append was measured"
    return f"{rate}, p50 {latency['p50']:,.0f} us, p99 {latency['p99']:,.0f} us"


def lines_of(report: Report) -> Iterator[str]:
    """For people."""
    yield f"profile of {report['wall_s']:.1f} s, {report['rate_hz']} samples a second: {' '.join(report['command'])}"
    load = report["load"]
    yield f"load: {achieved(load)}; samplers slow down what they look at"
    yield ""
    for node in report["nodes"]:
        yield from _node_lines(node, report)
    yield from _commit_lines(report["commit"])
    yield "not in this profile:"
    for each in report["missing"]:
        yield f"  {each['what']}: {each['why']}" + (f"; {each['hint']}" if each["hint"] else "")
    yield ""


def _node_lines(node: Mapping[str, Any], report: Report) -> Iterator[str]:
    ready = "" if node["ready_share"] is None else f", ready for one {node['ready_share']:.0%}"
    stacks = "" if node["node_id"] in report["sampled"] else "; its stacks were not taken"
    name = f"node {node['node_id']} ({node['role']})"
    yield f"{name}: on a processor {node['running_share']:.0%} of the time{ready}{stacks}"
    if (sync := node["sync"]) is not None:
        yield (
            f"  a sync under way {sync['share']:.0%} of the time: {sync['count']:,.0f} syncs, "
            f"p50 {sync['p50_us']:,.0f} us, p99 {sync['p99_us']:,.0f} us"
        )
    for row in busiest(node):
        off = "" if row["blocked_s"] is None else f"  ready {row['ready_s']:6.2f} s  off {row['blocked_s']:6.2f} s"
        yield (
            f"  {thread_name(row):<24} running {row['running_s']:6.2f} s (system {row['system_s']:.2f}){off}  yielded "
            f"{row['given_up']:,}, preempted {row['taken']:,}"
        )
    yield ""


def busiest(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Threads that did something."""
    return [row for row in node["threads"] if row["running_s"] >= 0.005 or row["given_up"] > 10]


def thread_name(row: Mapping[str, Any]) -> str:
    return f"{row['name']} (native)" if row["is_native"] else f"{row['name']} [{row['thread']}]"


def _commit_lines(commit: Mapping[str, Any] | None) -> Iterator[str]:
    if commit is None:
        return
    yield f"an append waits {commit['append_told_us']:,.0f} us on average; a batch on the leader:"
    for name, title in PATH:
        yield f"  {title:<16} {commit['mean_us'][name]:>10,.0f} us  {commit['shares'][name]:>4.0%}"
    yield (
        f"  meanwhile: written to its own sync's end {commit['own_sync_us']:,.0f} us, sent to a majority's "
        f"acknowledgement {commit['majority_us']:,.0f} us; "
        f"{commit['appends'] / max(commit['batches'], 1):.1f} appends a batch"
    )
    yield ""
