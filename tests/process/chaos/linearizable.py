"""Decides whether a history of appends and read barriers is linearizable: one log explains it, one operation at a time.

In general that takes a search (Wing and Gong, 1993). A log answers each append with its offset, and so gives the order
of all operations away: an append acts at its offset, a barrier between the last record that it covers and the next. All
that is left to check is that this order agrees with real time: an operation that ended before another one began must
not act after it. One sweep over the beginnings and ends decides it, for any number of operations.

An operation that was never answered may act at any time after it began, or never; what the log holds tells which.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Append:
    """One record appended. Times are seconds on one clock."""

    value: bytes
    began_s: float
    ended_s: float = math.inf
    """When the answer came; infinite: none came, or one that leaves open what became of it."""
    offset: int = -1
    """The acknowledged offset; -1: not acknowledged."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """One answered read barrier: every record below `end_offset` was committed, and all that had been acknowledged."""

    began_s: float
    ended_s: float
    end_offset: int


Operation = Append | Barrier


@dataclass(frozen=True, slots=True)
class _Act:
    """An operation and where in the log's order it acts."""

    operation: Operation
    at: float
    """An append: its offset. A barrier: half a step before the first record that it does not cover."""


def violations(operations: Iterable[Operation], log: Mapping[bytes, int]) -> list[str]:
    """Say where the history contradicts the log (each value's offset); empty if it is linearizable.

    Values are appended once each. Acknowledged appends must be in the log where they were said to be.
    """
    acts: list[_Act] = []
    found: list[str] = []
    for operation in operations:
        if isinstance(operation, Barrier):
            acts.append(_Act(operation, operation.end_offset - 0.5))
            continue
        offset = log.get(operation.value)
        if operation.offset >= 0 and offset != operation.offset:
            found.append(f"{operation.value!r} was acknowledged at {operation.offset}, and is at {offset}")
        elif offset is not None:
            acts.append(_Act(operation, offset))
    return found + _out_of_order(acts)


def _out_of_order(acts: list[_Act]) -> list[str]:
    """Pairs of which one ended before the other began and acts after it; for each such later one, the worst."""
    found = []
    by_end = iter(sorted(acts, key=lambda act: act.operation.ended_s))
    ended = next(by_end, None)
    latest: _Act | None = None
    for act in sorted(acts, key=lambda act: act.operation.began_s):
        while ended is not None and ended.operation.ended_s < act.operation.began_s:
            if latest is None or ended.at > latest.at:
                latest = ended
            ended = next(by_end, None)
        if latest is not None and latest.at > act.at:
            found.append(f"{_text_of(act.operation)} began after {_text_of(latest.operation)} had ended")
    return found


def _text_of(operation: Operation) -> str:
    span = f"from {operation.began_s:.6f} to {operation.ended_s:.6f}"
    if isinstance(operation, Barrier):
        return f"the barrier that covers what is below {operation.end_offset} ({span})"
    return f"the append of {operation.value!r} ({span}, acknowledged at {operation.offset})"
