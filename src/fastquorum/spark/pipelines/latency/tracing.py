"""How long batches and their stages took, from the events of a trace (`fastquorum.trace`, Chrome's format).

A stage that took no time is not in a trace: such histograms tell of those that took some. Batches that were not
committed when the trace ended count in their stages, and not as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BATCH: Final = "traced batch"
"""Name of a leader's batch: from its first append until all were notified, or until it was committed at least."""
SYNC: Final = "traced sync"
_COMMITTED: Final = ("until committed", "until reported")
_SYNCS: Final = "sync up to "
_STAGE: Final = "until "
_END_NS: Final = 1
"""Times in a file are rounded to the nanosecond."""
Durations = npt.NDArray[np.int64]


def trace_durations(events: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str | None], Durations]:
    """By what it is and the node's role for that batch: nanoseconds. ValueError if an event is none of ours."""
    try:
        slices = [each for each in events if each.get("ph") == "X"]
        rows = [(each["pid"], each["tid"]) for each in slices]
        times = np.array([[each["ts"], each["dur"]] for each in slices], np.float64).reshape(-1, 2)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a trace with an event that lacks {error}") from error
    starts, lasted = np.rint(times * 1000).astype(np.int64).T
    found: dict[tuple[str, str | None], list[int]] = {}
    by_row: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        by_row.setdefault(row, []).append(at)
    for _, members in sorted(by_row.items()):
        members.sort(key=lambda at: (starts[at], -lasted[at]))
        parent, end, is_over = -1, -1, True
        for at in members:
            name, values = str(slices[at]["name"]), slices[at].get("args") or {}
            if name.startswith(_SYNCS):
                found.setdefault((SYNC, None), []).append(int(lasted[at]))
            elif "role" in values:
                parent, end, is_over = at, int(starts[at] + lasted[at]), False
            elif name.startswith(_STAGE) and parent >= 0 and starts[at] <= end + _END_NS:
                role = str(slices[parent]["args"]["role"])
                found.setdefault((name, role), []).append(int(lasted[at]))
                if role == "leader" and name in _COMMITTED and not is_over:
                    found.setdefault((BATCH, role), []).append(int(lasted[parent]))
                    is_over = True
    return {key: np.array(values, np.int64) for key, values in sorted(found.items(), key=lambda item: str(item[0]))}
