"""Is it a difference, or chance? What few runs can say, and what they cannot.

The rank test (Wilcoxon, Mann and Whitney) asks how often chance alone would have sorted the runs of two sides as far
apart as they are, or farther: exactly, ties included, from all ways to deal them out. It knows nothing of the runs but
their order, and takes them to be independent: runs of both sides should alternate on one machine. The interval is a
bootstrap over whole runs, since the appends of one run are not independent of each other.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from fastquorum.spark.pipelines.latency.merging import Counts

ALPHA: Final = 0.05
RESAMPLES: Final = 1000
_SEED: Final = 7
_EXACT_MAX: Final = 120
"""Runs of both sides; of more, the normal approximation, which then is as good."""
Values = npt.NDArray[np.float64]


def smallest_p(before: int, after: int) -> float:
    """Return the least two-sided p of so many runs: all of one side lie above all of the other."""
    return min(1.0, 2.0 / math.comb(before + after, before)) if before and after else 1.0


def rank_p(before: Values, after: Values) -> float:
    """Two-sided p of the rank test; 1 where a side is empty."""
    count, total = len(before), len(before) + len(after)
    if not 0 < count < total:
        return 1.0
    ranks = _double_ranks(np.concatenate([before, after]))
    observed, middle = int(ranks[:count].sum()), count * (total + 1)
    distance = abs(observed - middle)
    if total > _EXACT_MAX:
        spread = math.sqrt(
            float(((ranks - (total + 1.0)) ** 2).sum()) * count * (total - count) / (total * (total - 1))
        )
        return 1.0 if spread == 0 else math.erfc(max(distance - 1, 0) / spread / math.sqrt(2))
    ways = _ways(ranks, count)
    sums = np.arange(len(ways))
    return float(min(1.0, ways[np.abs(sums - middle) >= distance].sum() / ways.sum()))


def _double_ranks(values: Values) -> Counts:
    """From 2 on in steps of 2; equal values share the mean of theirs."""
    ordered = np.sort(values)
    low = np.searchsorted(ordered, values, side="left")
    high = np.searchsorted(ordered, values, side="right")
    return (low + high + 1).astype(np.int64)


def _ways(ranks: Counts, count: int) -> Values:
    """In how many ways `count` of the ranks have each sum."""
    largest = int(np.sort(ranks)[-count:].sum())
    ways = np.zeros((count + 1, largest + 1))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        # From the largest number of them down, so that none is taken twice.
        for taken in range(count, 0, -1):
            ways[taken, rank:] += ways[taken - 1, : largest + 1 - rank]
    found: Values = ways[count]
    return found


def bootstrap_ratio(before: Counts, after: Counts, levels: Values, share: float) -> tuple[float, float] | None:
    """Between which ratios of a percentile, after to before, 95 of 100 resamples of the runs lie.

    Args:
        before, after: counts of each run; shape (runs, buckets), the same buckets.
        levels: what each bucket stands for, ascending; shape (buckets,).
        share: of the percentile, as 0.99.
    Returns:
        None where a side has fewer than two runs, or nothing: there is nothing to resample.
    """
    if min(len(before), len(after)) < 2 or not (before.sum() and after.sum()):
        return None
    chance = np.random.default_rng(_SEED)
    sides = [_resampled(side, levels, share, chance) for side in (before, after)]
    ratios = sides[1] / np.maximum(sides[0], 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def _resampled(counts: Counts, levels: Values, share: float, chance: np.random.Generator) -> Values:
    runs = len(counts)
    weights = chance.multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    found = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, 100):
        upto = np.cumsum(weights[start : start + 100] @ counts, axis=1)
        wanted = np.maximum(share * upto[:, -1], 1)[:, None]
        found[start : start + 100] = levels[(upto < wanted).sum(axis=1).clip(max=len(levels) - 1)]
    return found
