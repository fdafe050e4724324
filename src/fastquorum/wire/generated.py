"""A message's codec in Python: functions generated from its declaration, at first use."""

from collections.abc import Callable
from typing import Any

from fastquorum.errors import WireError
from fastquorum.kernels import Buffer
from fastquorum.wire.decoder import DecoderSource
from fastquorum.wire.encoder import EncoderSource
from fastquorum.wire.message import Message


def trailing_bytes(cls: type[Message], version: int, position: int, size: int) -> WireError:
    """The error for bytes behind a message."""
    detail = f"{size - position} bytes follow the end of the message"
    return WireError(detail, cls.__qualname__, version, position=position)


class GeneratedCodec:
    """One message in one version. The native kernel's twin, and what explains its refusals."""

    __slots__ = ("_cls", "_decode_bytes", "_decode_view", "_flexible", "_version", "encode")

    encode: Callable[[Any], bytes]

    def __init__(self, cls: type[Message], version: int, flexible: bool) -> None:
        self._cls = cls
        self._version = version
        self._flexible = flexible
        self._decode_bytes: Callable[[Any, int], tuple[Any, int]] = self._first_decode_bytes
        self._decode_view: Callable[[Any, int], tuple[Any, int]] = self._first_decode_view
        self.encode = self._first_encode

    def decode(self, buffer: Buffer) -> Any:
        """See `MessageCodec`."""
        if buffer.__class__ is bytes:
            message, position = self._decode_bytes(buffer, 0)
        else:
            buffer = memoryview(buffer).cast("B")
            message, position = self._decode_view(buffer, 0)
        if position != len(buffer):
            raise trailing_bytes(self._cls, self._version, position, len(buffer))
        return message

    def decode_prefix(self, buffer: Buffer, position: int = 0) -> tuple[Any, int]:
        """See `MessageCodec`."""
        if buffer.__class__ is bytes:
            return self._decode_bytes(buffer, position)
        return self._decode_view(memoryview(buffer).cast("B"), position)

    def _first_encode(self, message: Any) -> bytes:
        self.encode = EncoderSource(self._cls, self._version, self._flexible).build()
        return self.encode(message)

    def _first_decode_bytes(self, buffer: bytes, position: int) -> tuple[Any, int]:
        self._decode_bytes = DecoderSource(self._cls, self._version, self._flexible, of_bytes=True).build()
        return self._decode_bytes(buffer, position)

    def _first_decode_view(self, buffer: memoryview, position: int) -> tuple[Any, int]:
        self._decode_view = DecoderSource(self._cls, self._version, self._flexible, of_bytes=False).build()
        return self._decode_view(buffer, position)
