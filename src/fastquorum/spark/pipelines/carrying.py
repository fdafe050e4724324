"""What many owners were, from one row to the next, in columns: an owner costs no Python object.

Rows are ordered by owner, then time; a row leaves unsaid what did not change, which is filled in from the row before.
Who the owners are, partitions or topics, this does not know.
"""

from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
UNSAID: Final = -2
"""Value that stands for "no change", as in Kafka's leader fields; no length or epoch is -2."""
UNSET: Final = 0


class ValueHistory(NamedTuple):
    """One value over time, for many owners: sorted by owner, then row."""

    owners: Ints
    rows: Ints
    values: Ints

    @classmethod
    def of(cls, owners: Ints, rows: Ints, values: Ints) -> Self:
        order = np.lexsort((rows, owners))
        return cls(owners[order], rows[order], values[order])

    def at(self, owners: Ints, rows: Ints) -> Ints:
        """Return the value of each owner as of each row; UNSET if it has none. Owners are 0 or more, and rows too."""
        if len(self.owners) == 0:
            return np.full(len(owners), UNSET, np.int64)
        span = int(max(self.rows.max(), rows.max(initial=0))) + 1
        found = np.searchsorted(self.owners * span + self.rows, owners * span + rows, side="right") - 1
        is_its = (found >= 0) & (self.owners[found] == owners)
        return np.where(is_its, self.values[found], UNSET)

    def after(self, owners: Ints, rows: Ints) -> Ints:
        """The first row behind each row at which its owner said something; -1 if there is none."""
        if len(self.owners) == 0:
            return np.full(len(owners), -1, np.int64)
        span = int(max(self.rows.max(), rows.max(initial=0))) + 2
        found = np.searchsorted(self.owners * span + self.rows, owners * span + rows, side="right")
        last = np.minimum(found, len(self.owners) - 1)
        return np.where((found < len(self.owners)) & (self.owners[last] == owners), self.rows[last], -1)


def ints(column: pa.ChunkedArray) -> Ints:
    """Return a column as int64; -1 for null."""
    return np.asarray(column.fill_null(-1).cast(pa.int64()), np.int64)


def carried(values: Ints, starts: Ints) -> Ints:
    """Each as it was said last; never from one owner to the next. `starts`: the first row of each owner."""
    return values[stated_at(values != UNSAID, starts)]


def stated_at(is_stated: Flags, starts: Ints) -> Ints:
    """Return the last row, up to each row, in which its owner has a value; the owner's first row if none has."""
    known = is_stated.copy()
    known[starts] = True
    return np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))


def spread(groups: Ints, rows: Ints, group_of: Ints) -> tuple[Ints, Ints]:
    """Repeat each row for every member of its group. `group_of`: the group of each member. Shapes (n,)."""
    members = np.argsort(group_of, kind="stable")
    in_order = group_of[members]
    begins = np.searchsorted(in_order, groups)
    counts = np.searchsorted(in_order, groups, side="right") - begins
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return members[np.repeat(begins, counts) + within], np.repeat(rows, counts)


def pairs(groups: Ints, numbers: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Each pair once, in order: groups and numbers, shape (k,), the first row that has it; of each row which it is."""
    span = int(numbers.max(initial=0)) + 1
    keys, first, owners = np.unique(groups * span + numbers, return_index=True, return_inverse=True)
    return *np.divmod(keys, span), first, owners.reshape(-1)
