"""Every CRC-32C path that this CPU has gives what the portable one gives, and can be chosen."""

import random
from collections.abc import Iterator

import pytest
from crc32c import crc32c as independent

from fastquorum.errors import UsageError
from fastquorum.kernels import native

# Around every threshold of the paths: steps of 8 and 16 bytes, three streams, folds of 64 to 512 bytes, and tails.
SIZES = sorted(
    {
        *range(300),
        511,
        512,
        513,
        575,
        767,
        768,
        769,
        1023,
        1024,
        1025,
        1536,
        2047,
        4096,
        6143,
        6144,
        6145,
        12288,
        65_537,
    }
)
DATA = random.Random(4).randbytes(max(SIZES) + 64)


@pytest.fixture(params=native.cpu_paths())
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    native.force_cpu_path(request.param)
    yield request.param
    native.force_cpu_path("")


def test_the_path_is_the_one_asked_for(path: str) -> None:
    assert native.cpu_path() == path


def test_it_agrees_at_every_size_alignment_and_start(path: str) -> None:
    for size in SIZES:
        shift = size % 64
        data = DATA[shift : shift + size]
        for start in (0, 0xFFFFFFFF, 0x12345678):
            assert native.crc32c(data, start) == independent(data, start), (size, shift, start)


def test_it_agrees_on_constant_bytes(path: str) -> None:
    for byte in (b"\x00", b"\xff"):
        for size in (1, 64, 1000, 100_000):
            assert native.crc32c(byte * size) == independent(byte * size)


def test_it_can_be_continued_at_every_byte(path: str) -> None:
    data = DATA[:1500]
    whole = native.crc32c(data)
    assert all(native.crc32c(data[cut:], native.crc32c(data[:cut])) == whole for cut in range(len(data)))


def test_batches_made_on_one_path_are_good_on_all_others(path: str) -> None:
    batch = native.encode_values([DATA[:700], DATA[:9000]], base_offset=7, leader_epoch=2, timestamp_ms=1)
    for other in native.cpu_paths():
        native.force_cpu_path(other)
        assert native.batch_headers(batch)[0].crc_valid is True


def test_a_path_that_this_cpu_lacks_is_refused() -> None:
    before = native.cpu_path()
    with pytest.raises(UsageError, match="'z80' does not run on this machine") as caught:
        native.force_cpu_path("z80")
    assert native.cpu_paths()[-1] in caught.value.hint
    assert native.cpu_path() == before


def test_the_best_path_is_the_default() -> None:
    assert native.cpu_path() == native.cpu_paths()[0]
