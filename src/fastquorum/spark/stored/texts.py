"""JSON texts of records to typed columns, by Arrow's own parser: no Python object for a record."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_PARSED_ROWS: Final = 1 << 16
"""Rows that are parsed at once: a column of texts, and their parser, are bounded by 2 GiB."""


def parsed(texts: pa.ChunkedArray, fields: pa.Schema, wanted: npt.NDArray[np.bool_] | None = None) -> pa.Table:
    """Parse the texts that are wanted (None: all), each one JSON object and none null, into these fields; null is what
    a text does not have. `wanted`: shape (len(texts),)."""
    chosen, parts = texts if wanted is None else texts.filter(pa.array(wanted)), [fields.empty_table()]
    parse_options = pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore")
    for start in range(0, len(chosen), _PARSED_ROWS):
        some = pa.chunked_array([*chosen.slice(start, _PARSED_ROWS).chunks], pa.string()).combine_chunks()
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(some)], pa.int32()), some), "\n")
        data = lines[0].as_buffer()
        read_options = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        parts.append(pj.read_json(pa.BufferReader(data), read_options=read_options, parse_options=parse_options))
    return pa.concat_tables(parts)
