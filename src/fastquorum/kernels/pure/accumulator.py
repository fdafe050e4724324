"""The open batch: values are encoded as they come, the header is written once, when it is sealed."""

from collections.abc import Sequence

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_BYTES_MAX, BATCH_HEADER_BYTES, Buffer
from fastquorum.kernels.pure.batch_encode import encode_value, value_size
from fastquorum.kernels.pure.batch_header import BATCH_SIZE_MAX, INT32_MAX, INT64_MAX, as_view, seal


class Accumulator:
    """An open batch that values are encoded straight into, and sealed once. Not thread-safe."""

    def __init__(self, batch_bytes_max: int = BATCH_BYTES_MAX) -> None:
        if not BATCH_HEADER_BYTES < batch_bytes_max <= BATCH_SIZE_MAX:
            raise UsageError(
                f"batch_bytes_max {batch_bytes_max} lies outside {BATCH_HEADER_BYTES + 1}..{BATCH_SIZE_MAX}"
            )
        self._batch_bytes_max = batch_bytes_max
        self._is_open = False
        self._base_offset = -1
        self._leader_epoch = -1
        self._timestamp_ms = -1
        self._records: list[bytes] = []
        self._size_bytes = 0

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def base_offset(self) -> int:
        """-1 while no batch is open."""
        return self._base_offset

    @property
    def next_offset(self) -> int:
        """Offset the next value would get; -1 while no batch is open."""
        return self._base_offset + len(self._records)

    @property
    def record_count(self) -> int:
        return len(self._records)

    @property
    def size_bytes(self) -> int:
        """Bytes `seal` would return now; 0 while no batch is open."""
        return self._size_bytes

    def open(self, base_offset: int, leader_epoch: int, timestamp_ms: int) -> None:
        if self._is_open:
            raise UsageError("a batch is open already", "seal or discard it first")
        if (
            not 0 <= base_offset < INT64_MAX
            or not 0 <= leader_epoch <= INT32_MAX
            or not -INT64_MAX - 1 <= timestamp_ms <= INT64_MAX
        ):
            raise UsageError(f"no batch has offset {base_offset}, epoch {leader_epoch}, timestamp {timestamp_ms}")
        self._is_open = True
        self._base_offset = base_offset
        self._leader_epoch = leader_epoch
        self._timestamp_ms = timestamp_ms
        self._size_bytes = BATCH_HEADER_BYTES

    def append(self, value: Buffer) -> int:
        return self.append_many((value,))

    def append_many(self, values: Sequence[Buffer]) -> int:
        if not self._is_open:
            raise UsageError("no batch is open", "open one first")
        views = [value if isinstance(value, bytes) else as_view(value) for value in values]
        if not views:
            raise UsageError("there is no value to append")
        alone = BATCH_HEADER_BYTES + sum(value_size(delta, len(view)) for delta, view in enumerate(views))
        if alone > self._batch_bytes_max:
            raise RecordTooLarge(size_bytes=alone, limit_bytes=self._batch_bytes_max)
        first = len(self._records)
        if self.next_offset > INT64_MAX - len(views):
            raise UsageError(f"base_offset {self._base_offset} leaves no room for {first + len(views)} offsets")
        grown = self._size_bytes + sum(value_size(delta, len(view)) for delta, view in enumerate(views, first))
        if grown > self._batch_bytes_max:
            return -1
        self._records += [encode_value(delta, view) for delta, view in enumerate(views, first)]
        self._size_bytes = grown
        return self._base_offset + first

    def seal(self) -> bytes:
        if not self._records:
            raise UsageError("there is nothing to seal", "append a value first")
        batch = seal(
            self._records,
            base_offset=self._base_offset,
            last_offset_delta=len(self._records) - 1,
            records_count=len(self._records),
            leader_epoch=self._leader_epoch,
            base_timestamp_ms=self._timestamp_ms,
            max_timestamp_ms=self._timestamp_ms,
        )
        self.discard()
        return batch

    def discard(self) -> None:
        self._is_open = False
        self._base_offset = self._leader_epoch = self._timestamp_ms = -1
        self._records = []
        self._size_bytes = 0
