"""The four compressions of a batch's records section, written as Kafka writes them and read under a hard cap.

Both kernel sets use it: decompression is library work either way, and one implementation means one answer. A section is
hostile until it is decompressed, so nothing here allocates by a size the input merely claims: gzip is inflated
incrementally, lz4 and zstd are walked block by block first, which bounds what they can grow to, and snappy's claim is
held against the most that snappy can expand. Exactly one gzip member, lz4 frame or zstd frame makes a section; bytes
after it are corruption. Sources: KIP-98 (what is compressed), KIP-57 (lz4 frames), KIP-110 and RFC 8878 (zstd).
"""

import struct
import zlib
from collections.abc import Callable
from typing import Final

import cramjam

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError
from fastquorum.kernels import BatchFault, Compression

_GZIP_WBITS: Final = 31
"""zlib's way of saying: a gzip header and trailer, 32 KiB window."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""snappy-java's stream header: magic, version, oldest compatible version. Blocks (int32 length, raw snappy) follow."""
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_RATIO_MAX: Final = 24
"""A 3-byte copy makes at most 64 bytes; a claim beyond this ratio cannot be true, so it is refused unallocated."""

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_HEADER: Final = _LZ4_MAGIC + b"\x60\x40\x82"
"""Kafka's header: version 1, independent blocks (its reader refuses linked ones) of 64 KiB, no checksums."""
_LZ4_RATIO_MAX: Final = 256
_LZ4_BLOCK_BYTES: Final = {4: 64 * 1024, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}
"""Largest block by the frame descriptor's block size id."""

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL: Final = 3
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_ZSTD_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_ZSTD_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_ZSTD_RLE: Final = 1
_ZSTD_COMPRESSED: Final = 2

_OUTPUT_FULL: Final = "failed to write whole buffer"
"""How cramjam says that the output buffer was too small, as opposed to bad input."""


def compress(kind: int, data: bytes | bytearray | memoryview) -> bytes:
    """Compress a records section as Kafka's producer does. UsageError if `kind` is no compression."""
    match kind:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            stream = zlib.compressobj(wbits=_GZIP_WBITS)
            return stream.compress(data) + stream.flush()
        case Compression.SNAPPY:
            return _xerial_compress(memoryview(data))
        case Compression.LZ4:
            return _lz4_compress(memoryview(data))
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
        case _:
            raise UsageError(f"{kind} is not a compression", "use one of kernels.Compression")


def decompress(kind: int, data: bytes | bytearray | memoryview, bytes_max: int) -> bytes:
    """Decompress a records section of at most `bytes_max` bytes.

    Raises:
        CorruptionError: reason BatchFault.COMPRESSION, if the bytes are not exactly one good stream of that kind.
        DecompressedTooLarge: they are, or claim to be, larger than `bytes_max` when decompressed.
    """
    match kind:
        case Compression.NONE:
            if len(data) > bytes_max:
                raise DecompressedTooLarge(limit_bytes=bytes_max)
            return bytes(data)
        case Compression.GZIP:
            return _gunzip(data, bytes_max)
        case Compression.SNAPPY:
            return _unsnappy(memoryview(data), bytes_max)
        case Compression.LZ4:
            frame = bytes(data)
            return _decompress_bounded(cramjam.lz4.decompress_into, frame, _lz4_bound(frame, bytes_max), bytes_max)
        case Compression.ZSTD:
            frame = bytes(data)
            return _decompress_bounded(cramjam.zstd.decompress_into, frame, _zstd_bound(frame, bytes_max), bytes_max)
        case _:
            raise UsageError(f"{kind} is not a compression", "use one of kernels.Compression")


def _corrupt() -> CorruptionError:
    return CorruptionError(reason=BatchFault.COMPRESSION)


# --- gzip -------------------------------------------------------------------------------------------------------------


def _gunzip(data: bytes | bytearray | memoryview, bytes_max: int) -> bytes:
    stream = zlib.decompressobj(wbits=_GZIP_WBITS)
    try:
        section = stream.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise _corrupt() from error
    if len(section) > bytes_max:
        raise DecompressedTooLarge(limit_bytes=bytes_max)
    if not stream.eof or stream.unused_data:
        raise _corrupt()
    return section


# --- snappy -----------------------------------------------------------------------------------------------------------


def _xerial_compress(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _unsnappy(data: memoryview, bytes_max: int) -> bytes:
    """Read xerial's framing, or one raw block as librdkafka and others write it."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return bytes(_unsnappy_block(data, bytes_max, bytes_max))
    if len(data) < len(_XERIAL_HEADER):
        raise _corrupt()
    # The two version numbers are not looked at: some producers write them little-endian, and only version 1 exists.
    section = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < 4:
            raise _corrupt()
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or size > len(data) - position:
            raise _corrupt()
        section += _unsnappy_block(data[position : position + size], bytes_max - len(section), bytes_max)
        position += size
    return bytes(section)


def _unsnappy_block(block: memoryview, room_bytes: int, bytes_max: int) -> bytearray:
    claimed = _snappy_length(block)
    if claimed > len(block) * _SNAPPY_RATIO_MAX:
        raise _corrupt()
    if claimed > room_bytes:
        raise DecompressedTooLarge(limit_bytes=bytes_max)
    output = bytearray(claimed)
    try:
        written = cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise _corrupt() from error
    if written != claimed:
        raise _corrupt()
    return output


def _snappy_length(block: memoryview) -> int:
    """The decompressed length that a raw block claims: an unsigned varint of at most 32 bits."""
    length = 0
    for i, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return length
    raise _corrupt()


# --- lz4 and zstd -----------------------------------------------------------------------------------------------------


def _decompress_bounded(
    decompress_into: Callable[[bytes, bytearray], int], frame: bytes, bound: int, bytes_max: int
) -> bytes:
    """Decompress one walked frame into a buffer of its bound, or of the cap if that is smaller."""
    output = bytearray(min(bound, bytes_max))
    try:
        written = decompress_into(frame, output)
    except cramjam.DecompressionError as error:
        if bound > bytes_max and _OUTPUT_FULL in str(error):
            raise DecompressedTooLarge(limit_bytes=bytes_max) from error
        raise _corrupt() from error
    del output[written:]
    return bytes(output)


def _lz4_compress(data: memoryview) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES[4]):
        plain = data[start : start + _LZ4_BLOCK_BYTES[4]]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        stored = len(block) >= len(plain)
        parts += (struct.pack("<I", len(plain) | 1 << 31 if stored else len(block)), bytes(plain) if stored else block)
    parts.append(bytes(4))
    return b"".join(parts)


def _lz4_bound(frame: bytes, bytes_max: int) -> int:
    """Upper bound of what an lz4 frame decompresses to, from its block sizes; it must end where `frame` does."""
    if len(frame) < 7 or frame[:4] != _LZ4_MAGIC:
        raise _corrupt()
    flags = frame[4]
    block_bytes_max = _LZ4_BLOCK_BYTES.get(frame[5] >> 4 & 7)
    if flags >> 6 != 1 or flags & 1 or block_bytes_max is None:
        # Another format version, a dictionary we do not have, or a reserved block size.
        raise _corrupt()
    position = 6
    if flags & 0x08:
        if int.from_bytes(frame[6:14], "little") > bytes_max:
            raise DecompressedTooLarge(limit_bytes=bytes_max)
        position += 8
    position += 1
    block_trailer_bytes = 4 if flags & 0x10 else 0
    frame_trailer_bytes = 4 if flags & 0x04 else 0
    bound = 0
    while True:
        if len(frame) - position < 4:
            raise _corrupt()
        word = int.from_bytes(frame[position : position + 4], "little")
        position += 4
        if word == 0:
            break
        size = word & 0x7FFF_FFFF
        if size > block_bytes_max:
            raise _corrupt()
        bound += size if word >> 31 else min(size * _LZ4_RATIO_MAX, block_bytes_max)
        position += size + block_trailer_bytes
    if position + frame_trailer_bytes != len(frame):
        raise _corrupt()
    return bound


def _zstd_bound(frame: bytes, bytes_max: int) -> int:
    """Upper bound of what a zstd frame decompresses to, from its block headers; it must end where `frame` does."""
    if len(frame) < 6 or frame[:4] != _ZSTD_MAGIC:
        raise _corrupt()
    descriptor = frame[4]
    single_segment = descriptor >> 5 & 1
    position = 5 if single_segment else 6
    dictionary_bytes = _ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
    if int.from_bytes(frame[position : position + dictionary_bytes], "little"):
        raise _corrupt()
    position += dictionary_bytes
    size_bytes = _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    claimed = int.from_bytes(frame[position : position + size_bytes], "little") + (256 if size_bytes == 2 else 0)
    if claimed > bytes_max:
        raise DecompressedTooLarge(limit_bytes=bytes_max)
    position += size_bytes
    bound = 0
    last = 0
    while not last:
        if len(frame) - position < 3:
            raise _corrupt()
        header = int.from_bytes(frame[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind > _ZSTD_COMPRESSED or size > _ZSTD_BLOCK_BYTES:
            raise _corrupt()
        position += 3 + (1 if kind == _ZSTD_RLE else size)
        bound += _ZSTD_BLOCK_BYTES if kind == _ZSTD_COMPRESSED else size
    if position + (4 if descriptor & 4 else 0) != len(frame):
        raise _corrupt()
    return bound
