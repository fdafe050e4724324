"""A message's codec in Python: functions generated from its declaration, at first use."""

from collections.abc import Callable
from typing import Any

from fastquorum.errors import WireError
from fastquorum.kernels import Buffer
from fastquorum.kernels.messages import ANY_NUMBER
from fastquorum.wire.codec.decoder import DecoderSource
from fastquorum.wire.codec.encoder import EncoderSource
from fastquorum.wire.message import Message

_Decoder = Callable[[Any, int, int], tuple[Any, int]]


def trailing_bytes(cls: type[Message], version: int, position: int, size: int) -> WireError:
    """The error for bytes behind a message."""
    detail = f"{size - position} bytes follow the end of the message"
    return WireError(detail, cls.__qualname__, version, position=position)


class GeneratedCodec:
    """A `MessageCodec`: the native kernel's twin, and what explains its refusals."""

    __slots__ = ("_cls", "_decode_bytes", "_decode_view", "_encode", "_flexible", "_version")

    def __init__(self, cls: type[Message], version: int, flexible: bool) -> None:
        self._cls = cls
        self._version = version
        self._flexible = flexible
        self._encode: Callable[[Any], bytes] | None = None
        self._decode_bytes: _Decoder | None = None
        self._decode_view: _Decoder | None = None

    def encode(self, message: Any) -> bytes:
        encode = self._encode
        if encode is None:
            encode = self._encode = EncoderSource(self._cls, self._version, self._flexible).build()
        return encode(message)

    def decode(self, buffer: Buffer) -> Any:
        message, position = self.decode_prefix(buffer)
        size = len(buffer) if buffer.__class__ is bytes else memoryview(buffer).nbytes
        if position != size:
            raise trailing_bytes(self._cls, self._version, position, size)
        return message

    def decode_prefix(self, buffer: Buffer, position: int = 0, elements_max: int = ANY_NUMBER) -> tuple[Any, int]:
        if buffer.__class__ is bytes:
            decode = self._decode_bytes
            if decode is None:
                decode = self._decode_bytes = self._decoder(of_bytes=True)
            return decode(buffer, position, elements_max)
        decode = self._decode_view
        if decode is None:
            decode = self._decode_view = self._decoder(of_bytes=False)
        return decode(memoryview(buffer).cast("B"), position, elements_max)

    def _decoder(self, of_bytes: bool) -> _Decoder:
        decoder: _Decoder = DecoderSource(self._cls, self._version, self._flexible, of_bytes).build()
        return decoder
