"""`encode` and `decode`: a message to bytes and back, by a function generated from its declaration at first use.

Source: the Kafka protocol guide; KIP-482.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.wire.decoder import DecoderSource
from fastquorum.wire.encoder import EncoderSource
from fastquorum.wire.message import Message

M = TypeVar("M", bound=Message)
Buffer = bytes | bytearray | memoryview

_encoders: Final[dict[tuple[type[Message], int], Callable[[Any], bytes]]] = {}
_decoders: Final[dict[tuple[type[Message], int], Callable[[Any, int], tuple[Any, int]]]] = {}
_view_decoders: Final[dict[tuple[type[Message], int], Callable[[Any, int], tuple[Any, int]]]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message` in `version`.

    Raises:
        WireError: a value does not fit its field, or the version lacks a field that is not at its default, and not
            ignorable.
        UnsupportedVersion: the message has no such version.
    """
    encoder = _encoders.get((message.__class__, version))
    if encoder is None:
        encoder = _make_encoder(message.__class__, version)
    return encoder(message)


def decode(cls: type[M], version: int, buffer: Buffer) -> M:
    """Read one message that fills `buffer`.

    Raises:
        WireError: the bytes are malformed, end early, or do not end with the message.
        UnsupportedVersion: the message has no such version.
    """
    if buffer.__class__ is not bytes:
        buffer = memoryview(buffer).cast("B")
    message, position = decode_prefix(cls, version, buffer)
    if position != len(buffer):
        raise trailing_bytes(cls, version, position, len(buffer))
    return message


def decode_prefix(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Read one message at `position`; the message and the position after it. Raises as `decode`."""
    if buffer.__class__ is bytes:
        decoder = _decoders.get((cls, version)) or _make_decoder(cls, version, of_bytes=True)
    else:
        buffer = memoryview(buffer).cast("B")
        decoder = _view_decoders.get((cls, version)) or _make_decoder(cls, version, of_bytes=False)
    decoded: tuple[M, int] = decoder(buffer, position)
    return decoded


def trailing_bytes(cls: type[Message], version: int, position: int, size: int) -> WireError:
    """The error for bytes behind a message."""
    detail = f"{size - position} bytes follow the end of the message"
    return WireError(detail, cls.__qualname__, version, position=position)


def check_version(cls: type[Message], version: int) -> None:
    """Raise UnsupportedVersion unless `cls` is a message with that version."""
    versions = cls.__wire__.versions
    if not versions.has(version):
        api_key = cls.__wire__.api_key
        raise UnsupportedVersion(f"only versions {versions} exist", cls.__qualname__, version, api_key=api_key)


def is_flexible(cls: type[Message], version: int) -> bool:
    """Does this version have compact types and tag sections?"""
    return cls.__wire__.flexible.has(version)


def _make_encoder(cls: type[Message], version: int) -> Callable[[Any], bytes]:
    check_version(cls, version)
    encoder: Callable[[Any], bytes] = EncoderSource(cls, version, is_flexible(cls, version)).build()
    return _encoders.setdefault((cls, version), encoder)


def _make_decoder(cls: type[Message], version: int, of_bytes: bool) -> Callable[[Any, int], tuple[Any, int]]:
    check_version(cls, version)
    decoder = DecoderSource(cls, version, is_flexible(cls, version), of_bytes).build()
    return (_decoders if of_bytes else _view_decoders).setdefault((cls, version), decoder)
