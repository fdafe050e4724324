"""Snapshots that did not come: a distance between two, or from the last to the log's end, far above the others.

A controller takes one after so many bytes, or after so long (KIP-630): whichever it is, the other may vary with the
load. So a gap is one only if it is too long both in time and in offsets.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from fastquorum.spark.pipelines.anomalies.counting import median, minutes
from fastquorum.spark.pipelines.anomalies.findings import Anomaly, AnomalyKind, when
from fastquorum.spark.pipelines.anomalies.log import AnomalyLog
from fastquorum.spark.pipelines.anomalies.settings import AnomalySettings
from fastquorum.spark.pipelines.carrying import ints

_MINUTE_MS = 60_000


def snapshot_gaps(log: AnomalyLog, settings: AnomalySettings) -> Iterator[Anomaly]:
    """Find gaps between a replica's own snapshots. The same gap in several replicas is one finding."""
    found: dict[tuple[int, int], Anomaly] = {}
    for directory in sorted(pc.unique(log.checkpoints["directory"]).to_pylist()):
        mine = log.checkpoints.filter(pc.equal(log.checkpoints["directory"], directory))
        mine = mine.filter(pc.is_valid(mine["time_ms"])).sort_by("offset")
        offsets, times = ints(mine["offset"]), ints(mine["time_ms"])
        end = int(log.offsets[-1]) + 1 if len(log.offsets) else 0
        is_open = len(offsets) > 0 and end > offsets[-1]
        offsets = np.append(offsets, end) if is_open else offsets
        times = np.append(times, max(log.end_ms, int(times[-1]))) if is_open else times
        lengths, spans = np.diff(offsets), np.diff(times)
        for at in range(len(spans)):
            # What is open at the end is not yet a distance to compare with.
            others = [each for each in range(len(spans) - is_open) if each != at]
            if len(others) < settings.gaps_min:
                continue
            usual_ms, usual = median(spans[others]), median(lengths[others])
            if spans[at] < settings.gap_factor * usual_ms or lengths[at] < settings.gap_factor * usual:
                continue
            key = int(offsets[at]), int(offsets[at + 1])
            if key in found:
                known = found[key].directories
                assert known is not None
                known.append(directory)
                continue
            is_last = is_open and at + 1 == len(spans)
            until = "the end of the log" if is_last else f"the next, at offset {key[1]}"
            text = (
                f"no snapshot for {minutes(spans[at])} and {lengths[at]} offsets, from that at offset "
                f"{key[0]} ({when(int(times[at]))}) to {until}: others lie {minutes(usual_ms)} and "
                f"{usual:.0f} offsets apart (medians of {len(others)}); {settings.gap_factor:g} times both is a gap"
            )
            kind, span_ms, least_ms = AnomalyKind.SNAPSHOT_GAP, float(spans[at]), settings.gap_factor * usual_ms
            begin_ms, end_ms = times[[at, at + 1]].tolist()
            numbers = span_ms / _MINUTE_MS, usual_ms / _MINUTE_MS, least_ms / _MINUTE_MS
            found[key] = Anomaly(kind, "snapshots", begin_ms, end_ms, *key, *numbers, text, directories=[directory])
    yield from found.values()
