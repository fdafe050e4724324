"""How many partitions and brokers were in what condition, over time; in few steps, however long the log is.

Of each step two figures: the most at once, however short that was, and the mean.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np

from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.lives import BrokerLife, LifeState
from fastquorum.spark.pipelines.timeline.partitions import CONDITIONS
from fastquorum.spark.pipelines.timeline.states import States

STEPS_MAX: Final = 240
STRIPS_MAX: Final = 40
_DIGITS: Final = 6


class _Steps(NamedTuple):
    """Steps of one length; the last one has the end in it."""

    edges: Ints
    length_ms: int
    end_ms: int


def over_time(history: History, states: States, lives: Iterable[BrokerLife]) -> dict[str, Any]:
    """For JSON: `begin`, `step_ms`, and for each of what is counted `most` and `mean`, a figure for each step."""
    steps = _steps(history.begin_ms, history.end_ms)
    lives = list(lives)
    curves = {"partitions": states.is_there} | {each: getattr(states, f"is_{each}") for each in CONDITIONS}
    return {
        "begin": iso_time(history.begin_ms),
        "step_ms": steps.length_ms,
        **{name: _curve(steps, *_changes(states, flags)) for name, flags in curves.items()},
        "brokers": _curve(steps, *_broker_changes(lives, {*LifeState} - {LifeState.GONE})),
        "active_brokers": _curve(steps, *_broker_changes(lives, {LifeState.ACTIVE})),
    }


def iso_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def strips(history: History, lives: Iterable[BrokerLife]) -> list[dict[str, Any]]:
    """For JSON: what brokers were, of the STRIPS_MAX that were active for the shortest time, by id. A span is a state,
    and from when until when, in ms since the beginning."""
    chosen = sorted(lives, key=lambda each: (each.lasted_ms[LifeState.ACTIVE], each.id))[:STRIPS_MAX]
    return [
        {
            "broker_id": life.id,
            "spans": [
                [state.value, begin - history.begin_ms, end - history.begin_ms] for state, begin, end in life.spans
            ],
        }
        for life in sorted(chosen, key=lambda each: each.id)
    ]


def _steps(begin_ms: int, end_ms: int) -> _Steps:
    lasted = end_ms - begin_ms + 1
    length = max(-(-lasted // STEPS_MAX), 1)
    return _Steps(begin_ms + length * np.arange(-(-lasted // length) + 1, dtype=np.int64), length, end_ms)


def _changes(states: States, flags: Flags) -> tuple[Ints, Ints]:
    """When there was one more, or one less."""
    before = np.append(False, flags[:-1])[: len(flags)]
    before[states.starts] = False
    changes = flags.astype(np.int64) - before
    at = np.flatnonzero(changes)
    return states.times_ms[at], changes[at]


def _broker_changes(lives: list[BrokerLife], counted: set[LifeState]) -> tuple[Ints, Ints]:
    """What a broker is in the end, it is still."""
    begins = [begin for life in lives for state, begin, _ in life.spans if state in counted]
    ends = [end for life in lives for state, _, end in life.spans[:-1] if state in counted]
    return np.array(begins + ends, np.int64), np.repeat([1, -1], [len(begins), len(ends)])


def _curve(steps: _Steps, times: Ints, changes: Ints) -> dict[str, Any]:
    moments, at = np.unique(np.append(times, steps.edges[0]), return_inverse=True)
    sums = np.zeros(len(moments), np.int64)
    np.add.at(sums, at.reshape(-1), np.append(changes, 0))
    levels = np.cumsum(sums)
    begins = steps.edges[:-1]
    most = levels[np.searchsorted(moments, begins, side="right") - 1]
    held = most.copy()
    np.maximum.at(most, (moments - begins[0]) // steps.length_ms, levels)
    areas = np.append(0, np.cumsum(levels[:-1] * np.diff(moments)))
    limits = np.minimum(steps.edges, steps.end_ms)
    last = np.searchsorted(moments, limits, side="right") - 1
    widths = np.diff(limits)
    area = np.diff(areas[last] + levels[last] * (limits - moments[last]))
    mean = np.where(widths > 0, area / np.maximum(widths, 1), held)
    return {"most": most.tolist(), "mean": np.round(mean, _DIGITS).tolist()}
