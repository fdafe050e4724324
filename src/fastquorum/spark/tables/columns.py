"""Columns of things that a program holds as objects: numbers, texts and lists taken out of many at once."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fastquorum.types import Uuid

NODES: Final = pa.list_(pa.int32())
TEXTS: Final = pa.list_(pa.string())
ROWS_MAX: Final = 1 << 16
"""Most rows of a batch."""


class ObjectColumn(NamedTuple):
    """A column that is made from objects, a value for each."""

    kind: pa.DataType
    make: Callable[[Sequence[Any]], pa.Array]


Columns = Mapping[str, ObjectColumn]


def fields(columns: Columns) -> list[pa.Field]:
    return [pa.field(name, column.kind) for name, column in columns.items()]


def plain(kind: pa.DataType, get: Callable[[Any], Any]) -> ObjectColumn:
    """Values as Python has them, None among them."""
    return ObjectColumn(kind, lambda things: pa.array(list(map(get, things)), kind))


def number(kind: pa.DataType, name: str) -> ObjectColumn:
    """An attribute that is a whole number, never None."""
    get, width = attrgetter(name), np.dtype(kind.to_pandas_dtype())
    return ObjectColumn(kind, lambda things: pa.array(np.fromiter(map(get, things), width, len(things))))


def nodes(name: str) -> ObjectColumn:
    """An attribute that is a tuple of node ids."""
    get = attrgetter(name)

    def make(things: Sequence[Any]) -> pa.Array:
        ends, flat = _ends([get(each) for each in things]), itertools.chain.from_iterable(map(get, things))
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.fromiter(flat, np.int32, int(ends[-1]))))

    return ObjectColumn(NODES, make)


def uuids(name: str) -> ObjectColumn:
    """An attribute that is a tuple of Uuids, or None."""
    get = attrgetter(name)

    def make(things: Sequence[Any]) -> pa.Array:
        lists = [get(each) for each in things]
        ends = _ends([each or () for each in lists])
        texts = uuid_words(itertools.chain.from_iterable(each or () for each in lists))
        missing = np.fromiter((each is None for each in lists), np.bool_, len(lists))
        return pa.ListArray.from_arrays(pa.array(ends), texts, mask=pa.array(missing))

    return ObjectColumn(TEXTS, make)


def uuid_words(ids: Iterable[Uuid]) -> pa.Array:
    """One for each. Few are meant many times: each is put into words once."""
    flat = list(ids)
    words = {each: str(each) for each in set(flat)}
    return pa.array(list(map(words.__getitem__, flat)), pa.string())


def spread(column: ObjectColumn, things: Sequence[Any]) -> pa.Array:
    """Return the column with null where there is no thing."""
    there = [each for each in things if each is not None]
    values = column.make(there)
    if len(there) == len(things):
        return values
    is_there = np.fromiter((each is not None for each in things), np.bool_, len(things))
    return values.take(pa.array(np.cumsum(is_there) - 1, pa.int64(), mask=~is_there))


def record(columns: Columns) -> ObjectColumn:
    """All of them, as one."""
    kind = pa.struct(fields(columns))

    def make(things: Sequence[Any]) -> pa.Array:
        return pa.StructArray.from_arrays([each.make(things) for each in columns.values()], fields=list(kind))

    return ObjectColumn(kind, make)


def chunks(things: Iterable[Any], size: int = ROWS_MAX) -> Iterator[list[Any]]:
    """Yield lists of as many things as make a batch."""
    left = iter(things)
    while chunk := list(itertools.islice(left, size)):
        yield chunk


def _ends(lists: Sequence[Sequence[Any]]) -> "np.ndarray[Any, np.dtype[np.int32]]":
    ends = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, lists), np.int32, len(lists)), out=ends[1:])
    return ends
