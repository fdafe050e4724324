"""Finds the smallest run that breaks the same promise: fewer nodes, then fewer kinds of faults.

A seed is not a list of faults that could be shortened: it draws them as it goes. Only the choices that it draws from
can be reduced, and then it draws others; so each try is its own run, and the result is the smallest of them.
"""

from collections.abc import Callable
from typing import Final

from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Report
from fastquorum.sim.runs import KernelChoice, run
from fastquorum.sim.swarm import draw, hardships, spared

TRIES_MAX: Final = 60


def shrink(
    report: Report,
    *,
    kernels: KernelChoice = "mixed",
    tries_max: int = TRIES_MAX,
    simulate: Callable[..., Report] = run,
) -> Report:
    """Return the smallest run of the same seed that breaks the same promise, within `tries_max` runs.

    Args:
        report: the report of a failed run; that of a good one is returned as it is.
        simulate: `run`, or a wrapper of it.
    """
    if report.ok:
        return report
    search = _Search(report, kernels, tries_max, simulate)
    for nodes in range(1, report.voters):
        if search.is_as_bad(nodes, ()):
            break
    best = search.best
    left = list(hardships(spared(draw(Prng(report.seed), best.nodes), best.without)))
    size = len(left)
    while left and size:
        # Larger parts first: most of them have nothing to do with it.
        size = min(size, len(left))
        for start in range(0, len(left), size):
            part = left[start : start + size]
            if search.is_as_bad(best.nodes, (*search.best.without, *part)):
                left = [each for each in left if each not in part]
                break
        else:
            size //= 2
    return search.best


class _Search:
    def __init__(self, report: Report, kernels: KernelChoice, tries_max: int, simulate: Callable[..., Report]) -> None:
        self.best = report
        self._kernels: KernelChoice = kernels
        self._left = tries_max
        self._simulate = simulate

    def is_as_bad(self, nodes: int | None, without: tuple[str, ...]) -> bool:
        """Return whether a run breaks the same promise; then it is the best so far."""
        if not self._left:
            return False
        self._left -= 1
        found = self._simulate(
            self.best.seed, nodes, kernels=self._kernels, controller=self.best.brokers > 0, without=without
        )
        if found.invariant != self.best.invariant:
            return False
        self.best = found
        return True
