"""What becomes of records in transactions: what one holds counts when it has ended, and never if it is aborted or open.

Source: KIP-868.
"""

from typing import Final

import numpy as np

from fastquorum.errors import ImageFailed
from fastquorum.spark.pipelines.carrying import Flags, Ints

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"


def fates(
    types: Ints, type_names: tuple[str, ...], is_control: Flags, offsets: Ints, *, begins_whole: bool
) -> tuple[Flags, Ints]:
    """Does each row count, and from which row on? ImageFailed: an end without a begin, or two begins in a row."""
    numbers = {name: type_names.index(name) for name in (BEGIN, END, ABORT) if name in type_names}
    rows = np.arange(len(types), dtype=np.int64)
    markers = np.flatnonzero(np.isin(types, list(numbers.values())))
    begins = types[markers] == numbers.get(BEGIN)
    ends = types[markers] == numbers.get(END)
    _check(begins, [type_names[each] for each in types[markers][:1]], offsets[markers], begins_whole=begins_whole)
    following = np.searchsorted(markers, rows, side="right")
    is_marker = np.zeros(len(types), np.bool_)
    is_marker[markers] = True
    began = np.concatenate([[False], begins])[following] & ~is_marker
    is_open = np.concatenate([begins, [True]])[following]
    is_ended = np.concatenate([ends, [False]])[following]
    is_held = (began | ~is_open) & ~is_control & ~is_marker
    settled_at = np.where(is_held & is_ended, np.concatenate([markers, [0]])[following], rows)
    return ~is_held | is_ended, settled_at


def _check(begins: Flags, first: list[str], offsets: Ints, *, begins_whole: bool) -> None:
    """Begins and ends take turns. A log that is cut off may begin inside a transaction. ImageFailed."""
    if len(begins) and not begins[0] and begins_whole:
        raise ImageFailed("no transaction is open", first[0], int(offsets[0]))
    again = np.flatnonzero(begins[1:] == begins[:-1]) + 1
    if len(again):
        is_begin = bool(begins[again[0]])
        why = "a transaction is open already" if is_begin else "no transaction is open"
        raise ImageFailed(why, BEGIN if is_begin else END, int(offsets[again[0]]))
