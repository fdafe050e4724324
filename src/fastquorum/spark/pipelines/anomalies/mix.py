"""Records of a type that suddenly become many: seconds of a window in which one is written, against all other windows.

Seconds, not records: a topic with a thousand partitions, or a broker that leads as many, comes in few of them, and is
nothing unusual.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.anomalies.counting import median, minutes, poisson_tail
from fastquorum.spark.pipelines.anomalies.findings import Anomaly, AnomalyKind, when
from fastquorum.spark.pipelines.anomalies.log import AnomalyLog
from fastquorum.spark.pipelines.anomalies.settings import AnomalySettings
from fastquorum.spark.pipelines.anomalies.storms import chance_words
from fastquorum.spark.pipelines.carrying import Ints

WINDOWS_MIN: Final = 6
"""That a log must have, so that it is known what is usual."""


class Mix(NamedTuple):
    """Seconds with a record of each type in each window; shape (types, windows)."""

    types: list[str]
    seconds: Ints
    records: Ints
    """Likewise, how many records."""

    @property
    def is_enough(self) -> bool:
        return bool(self.seconds.shape[1] >= WINDOWS_MIN)


def mix_of(log: AnomalyLog, window_ms: int) -> Mix:
    """Control records and no-ops left out."""
    known = log.types.dictionary.to_pylist() if len(log.offsets) else []
    window_count = log.lasted_ms // window_ms + 1
    is_control = np.asarray(log.table["is_control"].fill_null(False))
    rows = np.flatnonzero(~is_control & ~log.is_of(signals.NO_OP))
    types = np.asarray(log.types.indices, np.int64)[rows]
    times = log.times_ms[rows] - (log.times_ms[0] if len(log.times_ms) else 0)
    windows = types * window_count + times // window_ms
    seconds = np.unique(windows * (window_ms // 1000 + 2) + times % window_ms // 1000) // (window_ms // 1000 + 2)
    shape = len(known), window_count
    size = shape[0] * shape[1]
    return Mix(
        known, np.bincount(seconds, minlength=size).reshape(shape), np.bincount(windows, minlength=size).reshape(shape)
    )


def mix_changes(log: AnomalyLog, mix: Mix, settings: AnomalySettings) -> Iterator[Anomaly]:
    """Windows one after another are one finding."""
    if not mix.is_enough:
        return
    all_records = mix.records.sum(axis=0)
    for at, kind in enumerate(mix.types):
        counts = mix.seconds[at]
        high = np.flatnonzero(counts >= settings.mix_seconds_min)
        for group in np.split(high, np.flatnonzero(np.diff(high) > 1) + 1) if len(high) else []:
            others = np.delete(counts, np.arange(max(group[0] - 1, 0), min(group[-1] + 2, len(counts))))
            peak = int(counts[group].max())
            if len(others) < WINDOWS_MIN // 2 or peak < settings.mix_factor * int(others.max()):
                continue
            usual = max(float(others.mean()), 1 / len(counts))
            chance = min(poisson_tail(peak, usual) * mix.seconds.size, 1.0)
            if chance >= settings.chance:
                continue
            worst = int(group[counts[group].argmax()])
            group = _with_edges(group, counts, settings.mix_factor * max(int(others.max()), 1))
            share = mix.records[at, worst] / max(int(all_records[worst]), 1)
            rest = mix.records[at].sum() - mix.records[at, group].sum()
            whole = rest / max(int(all_records.sum() - all_records[group].sum()), 1)
            yield _finding(
                log, kind, group, (peak, median(others), int(others.max())), chance, (share, whole), settings
            )


def _with_edges(group: Ints, counts: Ints, many: int) -> Ints:
    """And the windows beside it that it reaches into."""
    begin, end = int(group[0]), int(group[-1]) + 1
    begin -= begin > 0 and int(counts[begin - 1]) >= many
    end += end < len(counts) and int(counts[end]) >= many
    return np.arange(begin, end)


def _finding(
    log: AnomalyLog,
    kind: str,
    group: Ints,
    seconds: tuple[int, float, int],
    chance: float,
    shares: tuple[float, float],
    settings: AnomalySettings,
) -> Anomaly:
    """`seconds`: the peak, the median and the most of the other windows."""
    first_ms = int(log.times_ms[0])
    begin, end = first_ms + int(group[0]) * settings.window_ms, first_ms + int(group[-1] + 1) * settings.window_ms
    is_within = log.is_of(kind) & (log.times_ms >= begin) & (log.times_ms < end)
    rows = np.flatnonzero(is_within)
    begin_ms, end_ms = log.times_ms[rows[[0, -1]]].tolist()
    first, last = log.offsets[rows[[0, -1]]].tolist()
    peak, usual, most = seconds
    text = (
        f"{len(rows)} {kind}s between {when(begin_ms)} and {when(end_ms)}: in "
        f"{peak} seconds of a window of {minutes(settings.window_ms)} there was one, where {settings.mix_seconds_min} "
        f"are too many; other windows have {usual:.3g} (median), {most} at most; {shares[0]:.0%} of all records but "
        f"no-ops, {shares[1]:.1%} else; {chance_words(chance)}"
    )
    place = begin_ms, end_ms, first, last + 1
    numbers = peak, usual, settings.mix_seconds_min
    change = AnomalyKind.RECORD_MIX_CHANGE
    return Anomaly(change, "records", *place, *numbers, text, settings.window_ms, chance, type=kind)
