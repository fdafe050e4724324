"""Columns that rows are encoded from, checked: what both kernel sets ask of them.

Arrow's layout, as rows are read into it (`fastquorum.kernels.rows`).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.errors import UsageError
from fastquorum.kernels.batches import Buffer, Int64Array


class Column(NamedTuple):
    """n byte strings that lie inside their data: i is data[ends[i]:ends[i + 1]], and null where valid[i] is 0."""

    data: Buffer
    ends: Int64Array
    """shape (n + 1,)"""
    valid: npt.NDArray[np.uint8]


class RowColumns(NamedTuple):
    """n rows, checked. Arrays are copies: nobody else writes to them."""

    values: Column
    keys: Column | None
    header_ends: Int64Array | None
    """shape (n + 1,): the headers of row i are rows header_ends[i]:header_ends[i + 1] of the next two."""
    header_keys: Column | None
    header_values: Column | None


def checked_rows(values: Any, keys: Any, headers: Any) -> RowColumns:
    """From `Packed` and `PackedHeaders`. UsageError: they do not fit together, or lie outside their data."""
    column = _checked("values", values)
    count = len(column.valid)
    if count == 0:
        raise UsageError("a batch needs at least one record")
    key_column = None if keys is None else _checked("keys", keys, count)
    if headers is None:
        return RowColumns(column, key_column, None, None, None)
    names = _checked("header keys", headers.keys)
    ends = _ends("headers", headers.ends, len(names.valid), count)
    if not names.valid.all():
        raise UsageError(f"header {int(names.valid.argmin())} has no key")
    return RowColumns(column, key_column, ends, names, _checked("header values", headers.values, len(names.valid)))


def _checked(name: str, packed: Any, count: int | None = None) -> Column:
    data, ends, valid = packed
    flags = np.array(valid, order="C")
    if flags.ndim != 1 or flags.dtype != np.uint8 or count not in (None, len(flags)):
        raise UsageError(f"{name}: valid must be uint8 of shape ({'n' if count is None else count},)")
    return Column(data, _ends(name, ends, memoryview(data).nbytes, len(flags)), flags)


def _ends(name: str, ends: Any, size: int, count: int) -> Int64Array:
    array = np.array(ends, order="C")
    if array.shape != (count + 1,) or array.dtype not in (np.int32, np.int64):
        raise UsageError(f"{name}: ends must be int32 or int64 of shape ({count + 1},)")
    if array[0] < 0 or array[-1] > size or bool((array[1:] < array[:-1]).any()):
        raise UsageError(f"{name}: ends must ascend within 0..{size}")
    return array.astype(np.int64)
