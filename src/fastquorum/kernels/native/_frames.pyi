from typing import Self, final

from fastquorum.kernels import Buffer

@final
class FrameSplitter:
    def __new__(cls, frame_bytes_max: int) -> Self: ...
    def feed(self, data: Buffer) -> list[bytes]: ...
    @property
    def pending_bytes(self) -> int: ...
