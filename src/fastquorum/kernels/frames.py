"""Frames in a stream of bytes. Source: the Kafka protocol guide."""

from typing import Protocol

from fastquorum.kernels.batches import Buffer


class FrameSplitter(Protocol):
    """Cuts a byte stream into frames: int32 big-endian length, then that many bytes. Not thread-safe."""

    def __init__(self, frame_bytes_max: int) -> None: ...

    def feed(self, data: Buffer) -> list[bytes]:
        """The frames completed by `data`, without their lengths.

        FrameError as soon as a length is negative or above the maximum, decided from its 4 bytes, nothing allocated;
        the splitter is unusable then (every later feed raises the same error).
        """

    @property
    def pending_bytes(self) -> int:
        """Bytes held back of an incomplete frame, its length included."""
