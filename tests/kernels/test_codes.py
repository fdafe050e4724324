"""The numbers that native code and Python share stand in one place; `ext/core/codes.h` follows it."""

from pathlib import Path

from fastquorum.kernels.codes import AppendVerdict, EventKind
from tests.quality.codes import generate

HEADER = Path(__file__).parents[2] / "ext" / "core" / "codes.h"


def test_the_checked_in_header_is_what_the_declaration_gives() -> None:
    assert HEADER.read_text() == generate(), "run: python -m tests.quality.codes > ext/core/codes.h"


def test_no_verdict_can_be_taken_for_an_offset_nor_for_another_verdict() -> None:
    numbers = [int(verdict) for verdict in AppendVerdict]
    assert len(numbers) == len(set(numbers)) == len(AppendVerdict.__members__)
    assert max(numbers) < 0


def test_each_kind_of_event_has_a_number_of_its_own() -> None:
    assert [int(kind) for kind in EventKind] == list(range(len(EventKind.__members__)))
