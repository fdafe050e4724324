from collections.abc import Sequence
from typing import final

from fastquorum.kernels.batches import Buffer
from fastquorum.kernels.rows import RowFilter, Rows, TextLayout

@final
class RowReader:
    def __init__(
        self,
        layouts: Sequence[TextLayout],
        want: int = ...,
        row_filter: RowFilter = ...,
        *,
        is_metadata: bool = True,
        decompressed_bytes_max: int = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @next_offset.setter
    def next_offset(self, offset: int) -> None: ...
    def read(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        rows_max: int = ...,
        bytes_max: int = ...,
    ) -> int: ...
    def take(self) -> Rows: ...
