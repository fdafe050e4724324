"""Many short lists of nodes, asked all at once who is in them."""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.carrying import Flags, Ints


class Lists(NamedTuple):
    """n lists, shape (n,); one that a record does not state is empty."""

    values: Ints
    begins: Ints
    lengths: Ints
    is_stated: Flags

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Self:
        lists = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
        is_stated = np.asarray(lists.is_valid())
        ends = np.asarray(lists.offsets, np.int64)
        lengths = np.where(is_stated, ends[1:] - ends[:-1], 0)
        return cls(np.asarray(lists.values, np.int64), ends[:-1], lengths, is_stated)

    def hold(self, at: Ints, wanted: Ints) -> Flags:
        """Return whether each wanted member is in its list, the one at `at`."""
        found = np.zeros(len(at), np.bool_)
        lengths = self.lengths[at]
        for place in range(int(lengths.max(initial=0))):
            long = np.flatnonzero(lengths > place)
            found[long] |= self.values[self.begins[at[long]] + place] == wanted[long]
        return found

    def hold_all(self, at: Ints, others: "Lists", others_at: Ints) -> Flags:
        """Is everybody of another list in the one at `at`?"""
        holds = np.ones(len(at), np.bool_)
        lengths = others.lengths[others_at]
        for place in range(int(lengths.max(initial=0))):
            long = np.flatnonzero(lengths > place)
            holds[long] &= self.hold(at[long], others.values[others.begins[others_at[long]] + place])
        return holds

    def are_equal(self, at: Ints, others_at: Ints) -> Flags:
        """Are two of them the same nodes, in the same order?"""
        lengths = self.lengths[at]
        same: Flags = lengths == self.lengths[others_at]
        for place in range(int(lengths.max(initial=0))):
            long = np.flatnonzero(same & (lengths > place))
            one, other = self.begins[at[long]] + place, self.begins[others_at[long]] + place
            same[long] = self.values[one] == self.values[other]
        return same

    def text(self, at: int) -> str:
        begin = int(self.begins[at])
        return str(self.values[begin : begin + int(self.lengths[at])].tolist())
