"""The batch that appends are gathered in. Source: KIP-98 (record batch v2)."""

from collections.abc import Sequence
from typing import Protocol

from fastquorum.kernels.batches import BATCH_BYTES_MAX, Buffer


class Accumulator(Protocol):
    """An open batch that values are encoded straight into, and sealed (header, CRC-32C) once. Not thread-safe.

    Records have a null key, no headers and timestamp delta 0, as KRaft writes them.
    """

    def __init__(self, batch_bytes_max: int = BATCH_BYTES_MAX) -> None: ...

    @property
    def is_open(self) -> bool: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def next_offset(self) -> int:
        """Offset the next value would get; the base offset while the batch is empty."""

    @property
    def record_count(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Bytes `seal` would return now."""

    def open(self, base_offset: int, leader_epoch: int, timestamp_ms: int) -> None:
        """Begin an empty batch. UsageError if one is open."""

    def append(self, value: Buffer) -> int:
        """Encode one value; its offset. -1, and nothing changed, if it does not fit any more.

        RecordTooLarge, and nothing changed, if it would not even fit into an empty batch. UsageError if none is open.
        """

    def append_many(self, values: Sequence[Buffer]) -> int:
        """Encode all or none; the first one's offset. Otherwise as `append`. UsageError if `values` is empty."""

    def seal(self) -> bytes:
        """Finish the batch and return its bytes; the accumulator is closed then. UsageError if empty or not open."""

    def discard(self) -> None:
        """Forget the open batch, if any."""
