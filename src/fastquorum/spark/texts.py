"""JSON texts of records to typed columns, in Arrow all the way: no Python object for a record."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_ROWS: Final = 1 << 16


def parsed(texts: pa.ChunkedArray, fields: pa.Schema, wanted: npt.NDArray[np.bool_]) -> pa.Table:
    """These fields of the texts that are wanted, none of them null; null is what a text does not have.

    `wanted`: shape (len(texts),).
    """
    return pa.concat_tables([fields.empty_table(), *_parts(texts, fields, wanted)])


def _parts(texts: pa.ChunkedArray, fields: pa.Schema, wanted: npt.NDArray[np.bool_]) -> Iterator[pa.Table]:
    """Some at a time: what a column of texts holds, and their parser, are bounded by 2 GiB."""
    for start in range(0, len(texts), _ROWS):
        here = wanted[start : start + _ROWS]
        if not here.any():
            continue
        some: Any = texts.slice(start, _ROWS).filter(pa.array(here))
        some = pa.chunked_array([*some.chunks], pa.string()).combine_chunks()
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(some)], pa.int32()), some), "\n")
        data = lines[0].as_buffer()
        yield pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
        )
