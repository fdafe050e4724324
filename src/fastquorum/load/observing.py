"""What a node of a load run says of itself: how long its stages took while it was measured, and what it recorded.

In the worker `Observing` looks; its parent reads what it says with `observed_of`.
"""

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from fastquorum import trace
from fastquorum.kernels.stages import BUCKETS, STAGES, StageHistogram
from fastquorum.trace import NodeTrace, Recording
from fastquorum.trace.recording import Traceable

_PR_SET_PTRACER: Final = 0x59616D61


class Measured(Traceable, Protocol):
    """A `fastquorum.Quorum` or `fastquorum.sync.Quorum`."""

    def stage_histograms(self) -> dict[str, StageHistogram]: ...


class Observing:
    """In a worker: of the node that runs in its process."""

    def __init__(self, quorum: Measured) -> None:
        self._quorum = quorum
        self._before: dict[str, StageHistogram] = {}
        self._recording: Recording | None = None

    def begin(self, trace_capacity: int) -> None:
        """From here on. `trace_capacity` 0: nothing is recorded."""
        self._before = self._quorum.stage_histograms()
        self._recording = trace.start(self._quorum, capacity=trace_capacity) if trace_capacity else None

    def end(self, trace_path: str) -> dict[str, Any]:
        """What the parent is told. What was recorded goes into a file, as there may be much of it."""
        now = self._quorum.stage_histograms()
        stages = {name: _packed(now[name].minus(self._before[name])) for name in STAGES}
        if self._recording is None:
            return {"stages": stages, "trace_path": ""}
        (node,) = self._recording.stop().nodes
        with open(trace_path, "w", encoding="ascii") as file:
            json.dump(node.as_json(), file)
        return {"stages": stages, "trace_path": trace_path}


class Observed(NamedTuple):
    """Stages and trace of one node."""

    stages: dict[str, StageHistogram]
    trace: NodeTrace | None

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return the result's form: for each stage a count, microseconds, and the histogram, for other figures."""
        return {
            name: {
                "count": stage.count,
                "sum_us": round(stage.sum_us, 1),
                "mean_us": round(stage.mean_us, 1),
                "p50_us": round(stage.quantile_us(0.5), 1),
                "p99_us": round(stage.quantile_us(0.99), 1),
                "buckets": _filled(stage),
            }
            for name, stage in self.stages.items()
        }


def observed_of(fields: Mapping[str, Any]) -> Observed:
    """What `Observing.end` said."""
    recorded = None
    if fields["trace_path"]:
        with open(fields["trace_path"], encoding="ascii") as file:
            recorded = NodeTrace.from_json(json.load(file))
        os.unlink(fields["trace_path"])
    return Observed({name: _unpacked(packed) for name, packed in fields["stages"].items()}, recorded)


def _packed(histogram: StageHistogram) -> dict[str, Any]:
    return {"count": histogram.count, "sum_us": histogram.sum_us, "filled": _filled(histogram)}


def _filled(histogram: StageHistogram) -> list[list[int]]:
    """Number and count of each bucket that counts anything."""
    return [[bucket, count] for bucket, count in enumerate(histogram.counts) if count]


def _unpacked(packed: Mapping[str, Any]) -> StageHistogram:
    counts = [0] * BUCKETS
    for bucket, count in packed["filled"]:
        counts[bucket] = count
    return StageHistogram(packed["count"], packed["sum_us"], tuple(counts))


def allow_tracing(pid: int) -> None:
    """Let the process `pid`, and whatever it starts, trace this one where the system (Yama) would refuse that; 0: no.

    A system that knows no such rule refuses the call, and needs none.
    """
    if pid:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
