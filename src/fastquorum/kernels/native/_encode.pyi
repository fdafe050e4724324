from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastquorum.kernels import Buffer, Int64Array, Record
from fastquorum.kernels.rows import Packed, PackedHeaders

def encode_values(
    values: Sequence[Buffer],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes: ...
def encode_records(
    records: Sequence[Record],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes: ...
def encode_columns(
    data: Buffer,
    offsets: Buffer | Int64Array | npt.NDArray[np.int32],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes: ...
def encode_rows(
    values: Packed,
    keys: Packed | None = None,
    headers: PackedHeaders | None = None,
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes: ...
