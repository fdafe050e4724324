"""`encode` and `decode`: a message to bytes and back, by what its declaration says.

Each message in each version has a codec of its own, made at first use: generated Python functions (`GeneratedCodec`)
or, by a kernel set that has one, native code that walks the same declaration. Both give the same bytes, values and
errors. The functions of this module are the generated ones; where speed counts, `codec_of` takes a kernel set. Source:
the Kafka protocol guide; KIP-482.
"""

import functools
from typing import Final, TypeVar, cast

from fastquorum.errors import UnsupportedVersion
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.messages import MessageCodec
from fastquorum.wire.codec.generated import GeneratedCodec
from fastquorum.wire.codec.kernel_layout import struct_layout
from fastquorum.wire.message import Message

M = TypeVar("M", bound=Message)


class Codec:
    """The codecs of all messages, by one kernel set; by generated Python functions if there is none."""

    def __init__(self, kernels: Kernels | None = None) -> None:
        self._kernels = kernels
        self._made: dict[tuple[type[Message], int], MessageCodec] = {}

    def of(self, cls: type[Message], version: int) -> MessageCodec:
        """The codec of one message in one version. UnsupportedVersion if there is no such version."""
        return self._made.get((cls, version)) or self._make(cls, version)

    def encode(self, message: Message, version: int) -> bytes:
        """The bytes of `message` in `version`.

        Raises:
            WireError: a value does not fit its field, or the version lacks a field that is not at its default, and not
                ignorable.
            UnsupportedVersion: the message has no such version.
        """
        cls = message.__class__
        return (self._made.get((cls, version)) or self._make(cls, version)).encode(message)

    def decode(self, cls: type[M], version: int, buffer: Buffer) -> M:
        """Read one message that fills `buffer`.

        Raises:
            WireError: the bytes are malformed, end early, or do not end with the message.
            UnsupportedVersion: the message has no such version.
        """
        return cast(M, (self._made.get((cls, version)) or self._make(cls, version)).decode(buffer))

    def decode_prefix(self, cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
        """Read one message at `position`; the message and the position after it. Raises as `decode`."""
        return (self._made.get((cls, version)) or self._make(cls, version)).decode_prefix(buffer, position)

    def _make(self, cls: type[Message], version: int) -> MessageCodec:
        check_version(cls, version)
        codec: MessageCodec = _generated(cls, version)
        if self._kernels is not None:
            codec = self._kernels.message_codec(struct_layout(cls, version, is_flexible(cls, version)), codec)
        return self._made.setdefault((cls, version), codec)


def codec_of(kernels: Kernels) -> Codec:
    """The one Codec of a kernel set: what one node has made, the next one finds."""
    return _CODECS.get(kernels.NAME) or _CODECS.setdefault(kernels.NAME, Codec(kernels))


@functools.cache
def _generated(cls: type[Message], version: int) -> GeneratedCodec:
    return GeneratedCodec(cls, version, is_flexible(cls, version))


def check_version(cls: type[Message], version: int) -> None:
    """Raise UnsupportedVersion unless `cls` is a message with that version."""
    versions = cls.__wire__.versions
    if not versions.has(version):
        api_key = cls.__wire__.api_key
        raise UnsupportedVersion(f"only versions {versions} exist", cls.__qualname__, version, api_key=api_key)


def is_flexible(cls: type[Message], version: int) -> bool:
    """Does this version have compact types and tag sections?"""
    return cls.__wire__.flexible.has(version)


_CODECS: Final[dict[str, Codec]] = {}
GENERATED: Final = Codec()
"""The Python functions, without any kernel set."""
encode: Final = GENERATED.encode
decode: Final = GENERATED.decode
decode_prefix: Final = GENERATED.decode_prefix
