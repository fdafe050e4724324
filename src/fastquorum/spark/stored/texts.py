"""JSON texts of records to typed columns, by Arrow's own parser: no Python object for a record."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_PARSED_ROWS: Final = 1 << 16


def parsed(texts: pa.ChunkedArray, fields: pa.Schema, wanted: npt.NDArray[np.bool_] | None = None) -> pa.Table:
    """These fields of the texts that are wanted (None: of all), none of them null; null is what a text does not have.

    `wanted`: shape (len(texts),).
    """
    chosen = texts if wanted is None else texts.filter(pa.array(wanted))
    return pa.concat_tables([fields.empty_table(), *_parts(chosen, fields)])


def _parts(texts: pa.ChunkedArray, fields: pa.Schema) -> Iterator[pa.Table]:
    """Parse each text, one JSON object, into the fields; null is what it does not have. Rows are parsed in parts: a
    column of texts, and their parser, are bounded by 2 GiB."""
    for start in range(0, len(texts), _PARSED_ROWS):
        some = pa.chunked_array([*texts.slice(start, _PARSED_ROWS).chunks], pa.string()).combine_chunks()
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(some)], pa.int32()), some), "\n")
        data = lines[0].as_buffer()
        yield pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
        )
