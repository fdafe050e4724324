"""Windows over a file: every byte once and in order, whatever of each is used."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.kernels import Kernels
from fastquorum.storage.log.windows import Windows

PAGE = 4096


@settings(max_examples=60)
@given(
    size=st.integers(0, 40_000),
    start=st.integers(0, 9_000),
    steps=st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 20_000)), max_size=30),
)
def test_a_window_has_what_lies_there_and_more_each_time_as_long_as_there_is_more(
    kernels: Kernels, tmp_path_factory: pytest.TempPathFactory, size: int, start: int, steps: list[tuple[int, int]]
) -> None:
    data = bytes(number * 31 % 251 for number in range(size))
    path = tmp_path_factory.mktemp("windows") / "file"
    path.write_bytes(data)
    file = kernels.SegmentFile(str(path), "read")
    try:
        windows = Windows(file, start, size, block_bytes=PAGE)
        position, rest = start, 0
        for used, needed in steps:
            window = windows.at(position, needed)
            assert bytes(window) == data[position : position + len(window)]
            assert len(window) > rest or position + len(window) >= size
            assert len(window) >= min(needed, max(size - position, 0))
            position += min(used, len(window))
            rest = len(window) - min(used, len(window))
    finally:
        file.close()


def test_a_file_that_is_shorter_than_was_thought_ends(kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5_000)
    file = kernels.SegmentFile(str(tmp_path / "file"), "read")
    try:
        windows = Windows(file, 0, 50_000, block_bytes=PAGE)
        assert [len(windows.at(0)) for _ in range(4)] == [4_096, 5_000, 5_000, 5_000]
        assert len(windows.at(0, needed=30_000)) == 5_000
        assert len(windows.at(5_000)) == 0
    finally:
        file.close()
