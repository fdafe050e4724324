"""Compression under a hard cap: round trips, foreign streams, lies and bombs."""

import gzip
import struct
import subprocess
import sys

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError
from fastquorum.kernels import BatchFault, Compression
from fastquorum.kernels.compression import compress, decompress

from .strategies import outcome

REAL = [kind for kind in Compression if kind is not Compression.NONE]
TEXT = b"".join(b"%d bottles of beer; " % i for i in range(20_000))

ZSTD_FRAME = b"\x28\xb5\x2f\xfd"
ZSTD_RLE_128K = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"a"
ZSTD_RLE_LAST = struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3] + b"a"


@pytest.mark.parametrize("kind", Compression)
@pytest.mark.parametrize("data", [b"a", bytes(100_000), TEXT, TEXT[: 64 * 1024], TEXT[: 32 * 1024]], ids=len)
def test_round_trips_up_to_the_cap_exactly(kind: Compression, data: bytes) -> None:
    packed = compress(kind, data)
    assert decompress(kind, packed, len(data)) == data
    assert decompress(kind, memoryview(bytearray(packed)), len(data) + 1) == data
    with pytest.raises(DecompressedTooLarge) as caught:
        decompress(kind, packed, len(data) - 1)
    assert caught.value == DecompressedTooLarge(limit_bytes=len(data) - 1)


@settings(max_examples=40)
@given(kind=st.sampled_from(Compression), data=st.binary(max_size=5000))
def test_any_bytes_round_trip(kind: Compression, data: bytes) -> None:
    assert decompress(kind, compress(kind, data), 5000) == data


@pytest.mark.parametrize("kind", REAL)
def test_every_truncation_and_every_tail_is_corrupt(kind: Compression) -> None:
    packed = compress(kind, TEXT[:400])
    # A xerial stream is a list of blocks without an end mark: its header alone is an empty one, as Kafka reads it too.
    empty = {16} if kind is Compression.SNAPPY else set()
    for size in set(range(len(packed))) - empty:
        with pytest.raises(CorruptionError) as caught:
            decompress(kind, packed[:size], 10_000)
        assert caught.value == CorruptionError(BatchFault.COMPRESSION)
    for tail in (b"\x00", packed):
        if kind is Compression.SNAPPY and tail == packed:
            tail = packed[:15]
        with pytest.raises(CorruptionError) as caught:
            decompress(kind, packed + tail, 10_000)
        assert caught.value == CorruptionError(BatchFault.COMPRESSION)


@settings(max_examples=150)
@given(kind=st.sampled_from(REAL), position=st.integers(0, 400), byte=st.integers(0, 255), noise=st.binary(max_size=30))
def test_damage_is_an_error_or_other_bytes_but_never_more_than_the_cap(
    kind: Compression, position: int, byte: int, noise: bytes
) -> None:
    packed = bytearray(compress(kind, TEXT[:1000]))
    packed[position % len(packed)] = byte
    for data in (bytes(packed), noise, bytes(packed[:20]) + noise):
        what, answer = outcome(decompress, kind, data, 1000)
        if what == "value":
            assert len(answer) <= 1000
        else:
            assert what in (CorruptionError, DecompressedTooLarge)
            assert answer["reason"] in (BatchFault.COMPRESSION, "decompressed_size")


def test_snappy_is_read_framed_and_raw() -> None:
    framed = compress(Compression.SNAPPY, TEXT)
    assert framed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    (first,) = struct.unpack_from(">i", framed, 16)
    assert bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + first])) == TEXT[: 32 * 1024]
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT
    with pytest.raises(CorruptionError):
        decompress(Compression.SNAPPY, framed[:16] + struct.pack(">i", -1), 100)


def test_lz4_is_written_as_kafkas_reader_wants_it() -> None:
    packed = compress(Compression.LZ4, TEXT)
    flags = packed[4]
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert flags >> 6 == 1
    assert flags & 0x20, "blocks must be independent"
    assert not flags & 0x11, "no block checksums, no dictionary"


def test_lz4_of_other_writers_is_read() -> None:
    linked = bytes(cramjam.lz4.compress(TEXT))
    assert not linked[4] & 0x20
    assert decompress(Compression.LZ4, linked, len(TEXT)) == TEXT
    for options in (
        {"store_size": True},
        {"store_size": False, "block_checksum": True, "content_checksum": True},
        {"block_size": lz4.frame.BLOCKSIZE_MAX4MB, "block_linked": False},
        {"compression_level": 12},
    ):
        packed = lz4.frame.compress(TEXT, **options)
        assert decompress(Compression.LZ4, packed, len(TEXT)) == TEXT
        with pytest.raises(DecompressedTooLarge):
            decompress(Compression.LZ4, packed, len(TEXT) - 1)


def test_zstd_of_other_writers_is_read() -> None:
    for options in ({}, {"write_checksum": True}, {"write_content_size": False}, {"level": 19}, {"level": 1}):
        for data in (b"", TEXT[:200], TEXT[:300], TEXT[:70_000], TEXT):
            packed = zstandard.ZstdCompressor(**options).compress(data)
            assert decompress(Compression.ZSTD, packed, len(data)) == data
    stream = zstandard.ZstdCompressor().compressobj()
    packed = stream.compress(TEXT) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()
    assert decompress(Compression.ZSTD, packed, len(TEXT)) == TEXT


def test_gzip_of_other_writers_is_read() -> None:
    assert decompress(Compression.GZIP, gzip.compress(TEXT, 9), len(TEXT)) == TEXT
    with pytest.raises(CorruptionError):
        decompress(Compression.GZIP, gzip.compress(b"one") + gzip.compress(b"two"), 100)


def test_lying_sizes() -> None:
    zstd_claims = ZSTD_FRAME + b"\xe0" + struct.pack("<Q", 1 << 60) + ZSTD_RLE_LAST
    with pytest.raises(DecompressedTooLarge):
        decompress(Compression.ZSTD, zstd_claims, 1 << 20)
    zstd_understates = ZSTD_FRAME + b"\xe0" + struct.pack("<Q", 10) + ZSTD_RLE_128K + ZSTD_RLE_LAST
    snappy_overstates = b"\xff\xff\xff\xff\x0f" + bytes(1000)
    snappy_endless = b"\xff" * 10
    for kind, packed in (
        (Compression.ZSTD, zstd_understates),
        (Compression.SNAPPY, snappy_overstates),
        (Compression.SNAPPY, snappy_endless),
    ):
        with pytest.raises(CorruptionError) as caught:
            decompress(kind, packed, 1 << 20)
        assert caught.value == CorruptionError(BatchFault.COMPRESSION)


def test_an_unknown_kind_is_the_callers_mistake() -> None:
    for kind in (-1, 5, 7):
        with pytest.raises(UsageError):
            compress(kind, b"")
        with pytest.raises(UsageError):
            decompress(kind, b"", 1)


BOMBS = """
import resource, struct, sys
from fastquorum.errors import CorruptionError
from fastquorum.kernels import Compression
from fastquorum.kernels.compression import compress, decompress

CAP = 4 << 20
RLE = struct.pack("<I", 128 * 1024 << 3 | 2)[:3] + b"a"
END = struct.pack("<I", 1 << 3 | 3)[:3] + b"a"
bombs = [(kind, compress(kind, bytes(64 << 20))) for kind in list(Compression)[1:]]
for window in (10, 17, 21):
    bombs += [(Compression.ZSTD, b"\\x28\\xb5\\x2f\\xfd\\x00" + bytes([window << 3]) + RLE * 8000 + END)]
bombs += [(Compression.LZ4, compress(Compression.LZ4, bytes(4 << 20)) * 500)]
bombs += [(Compression.SNAPPY, b"\\xff\\xff\\xff\\xff\\x0f" + bytes(1 << 20))]

def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

for kind, bomb in bombs:
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = peak_kib()
    try:
        decompress(kind, bomb, CAP)
        sys.exit(f"{kind} passed")
    except CorruptionError:
        pass
    grown = peak_kib() - before
    if grown > 4 * CAP // 1024:
        sys.exit(f"{kind!r} of {len(bomb)} bytes grew by {grown} KiB")
"""


def test_bombs_are_refused_without_the_memory_they_ask_for() -> None:
    subprocess.run([sys.executable, "-c", BOMBS], check=True, timeout=60)
