"""Counts within a window that slides over time, what chance would bring, and stretches in which there were too many."""

import math
from typing import NamedTuple

import numpy as np

from fastquorum.spark.pipelines.carrying import Flags, Ints

_TAIL_SUMMANDS = 1000


class Burst(NamedTuple):
    """Events of one subject in a row, each with too many in the window that ends with it, or counted there."""

    subject: int
    begin: int
    """The first event's place among those that were handed in."""
    end: int
    """Exclusive."""
    peak: int
    """Most events in one window."""
    usual: float
    """Events that chance would bring to a window, at the rate of the rest of the log."""
    chance: float
    """Chance of `peak` or more events in any of the windows and subjects that were looked at; 1 at most."""


def stretches(subjects: Ints, times_ms: Ints, lasted_ms: int, window_ms: int, least: int, chance: float) -> list[Burst]:
    """Find where a subject has too many events for a window.

    Args:
        subjects: of each event, 0 or more; shape (n,), ascending.
        times_ms: of each event, ascending within a subject.
        lasted_ms: how long the log lasted.
        least: how many there must be in a window.
        chance: below which it is more than chance.
    """
    if len(subjects) == 0:
        return []
    counts = counts_within(subjects, times_ms, window_ms)
    looked_at = len(np.unique(subjects)) * max(lasted_ms / window_ms, 1.0)
    bad = np.flatnonzero(counts >= least)
    found = []
    for group in np.split(bad, np.flatnonzero(_is_apart(bad, counts, subjects)) + 1) if len(bad) else []:
        begin, end = int(group[0] - counts[group[0]] + 1), int(group[-1]) + 1
        peak, subject = int(counts[group].max()), int(subjects[begin])
        total = int(np.searchsorted(subjects, subject, side="right") - np.searchsorted(subjects, subject))
        stretch_ms = int(times_ms[end - 1] - times_ms[begin]) + 1
        usual = _usual(total - (end - begin), lasted_ms - stretch_ms, window_ms)
        improbable = min(poisson_tail(peak, usual) * looked_at, 1.0)
        if improbable < chance:
            found.append(Burst(subject, begin, end, peak, usual, improbable))
    return found


def counts_within(subjects: Ints, times_ms: Ints, window_ms: int) -> Ints:
    """Count the events of the same subject in the window that ends with each event, that one too. Events are ordered as
    for `stretches`, and there is at least one."""
    start = times_ms.min()
    span = int(times_ms.max() - start) + 2 * window_ms + 2
    # No window reaches into the subject before: every key lies a window above its subject's least.
    keys = subjects * span + (times_ms - start) + window_ms
    counts: Ints = np.arange(1, len(keys) + 1) - np.searchsorted(keys, keys - window_ms, side="right")
    return counts


def _is_apart(bad: Ints, counts: Ints, subjects: Ints) -> Flags:
    """Do an event that is too many and the next one belong to stretches that do not touch?"""
    earlier, later = bad[:-1], bad[1:]
    is_apart: Flags = (later - counts[later] + 1 > earlier) | (subjects[later] != subjects[earlier])
    return is_apart


def _usual(rest: int, rest_ms: int, window_ms: int) -> float:
    """Return how many other events a window has. One more is taken for granted: a short log has not seen all."""
    return (rest + 1) * window_ms / max(rest_ms, window_ms)


def poisson_tail(count: int, usual: float) -> float:
    """Return the chance of `count` or more events where `usual` are usual."""
    if count <= 0 or usual <= 0:
        return 1.0 if count <= 0 else 0.0
    if count <= usual:
        return 1.0  # it is half or more, and nothing to speak of
    logs = (-usual + each * math.log(usual) - math.lgamma(each + 1) for each in range(count, count + _TAIL_SUMMANDS))
    return min(math.fsum(map(math.exp, logs)), 1.0)


def median(values: Ints) -> float:
    """Return the median of at least one value."""
    return float(np.median(values))


def minutes(span_ms: float) -> str:
    """For a sentence."""
    span = span_ms / 60_000
    return f"{span:.3g} min" if span < 999.5 else f"{span:,.0f} min"
