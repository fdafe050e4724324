"""CRC-32C: RFC 3720's vectors, and that it can be continued."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.kernels import Kernels

READ_COMMAND = bytes.fromhex(
    "01c00000000000000000000000000000140000000000040000000014000000182800000000000000020000000000 0000".replace(" ", "")
)


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (READ_COMMAND, 0xD9963A56),
    ],
)
def test_known_vectors(kernels: Kernels, data: bytes, crc: int) -> None:
    assert kernels.crc32c(data) == crc
    assert kernels.crc32c(bytearray(data)) == crc
    assert kernels.crc32c(memoryview(b"x" + data)[1:]) == crc


def bitwise_crc32c(data: bytes) -> int:
    """The definition: one bit at a time, reflected polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 255, 256, 257, 1023, 1025, 4099])
def test_every_width_of_the_fast_paths(kernels: Kernels, size: int) -> None:
    data = bytes(i * 37 + (i >> 8) & 0xFF for i in range(size + 7))
    for start in (0, 1, 7):
        assert kernels.crc32c(memoryview(data)[start : start + size]) == bitwise_crc32c(data[start : start + size])


@given(data=st.binary(max_size=600), cuts=st.lists(st.integers(0, 600), max_size=4))
def test_a_checksum_can_be_continued(kernels: Kernels, data: bytes, cuts: list[int]) -> None:
    crc, previous = 0, 0
    for cut in [*sorted(cuts), len(data)]:
        crc = kernels.crc32c(data[previous:cut], crc)
        previous = max(previous, min(cut, len(data)))
    assert crc == kernels.crc32c(data) == bitwise_crc32c(data)


def test_it_says_which_code_runs(kernels: Kernels) -> None:
    path = kernels.cpu_path()
    if kernels.NAME == "pure":
        assert path.startswith("crc32c ")
    else:
        assert path in {"avx512-vpclmul", "sse42-pclmul", "sse42", "armv8-crc", "portable"}
