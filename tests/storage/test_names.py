"""What a file's name says it is: Kafka's numbers, and nothing that could not be one."""

import pytest

from fastquorum.storage.names import parse_checkpoint, parse_index, parse_segment
from fastquorum.types import OffsetAndEpoch


def test_names_are_of_offsets_and_epochs() -> None:
    assert parse_segment("00000000000000003829.log") == 3829
    assert parse_index("00000000000000003829.timeindex") == 3829
    assert parse_checkpoint("00000000000000003829-0000000003.checkpoint") == OffsetAndEpoch(3829, 3)
    assert parse_segment(f"{2**63 - 1:020d}.log") == 2**63 - 1
    assert parse_checkpoint(f"{2**63 - 1:020d}-{2**31 - 1:010d}.checkpoint") == OffsetAndEpoch(2**63 - 1, 2**31 - 1)


@pytest.mark.parametrize("digits", [f"{2**63:020d}", "9" * 20, "３" * 20, "1" * 19, "-" + "1" * 19])
def test_what_is_no_offset_is_no_file_of_ours(digits: str) -> None:
    assert parse_segment(f"{digits}.log") is None
    assert parse_index(f"{digits}.index") is None
    assert parse_checkpoint(f"{digits}-0000000001.checkpoint") is None


def test_what_is_no_epoch_is_no_snapshot() -> None:
    assert parse_checkpoint(f"{7:020d}-{2**31:010d}.checkpoint") is None
