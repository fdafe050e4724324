"""Offsets that callers name: checked before anything is read."""

from fastquorum.errors import UsageError
from fastquorum.types import OFFSET_MAX, Offset


def check_offset(offset: object, name: str) -> None:
    """Raise UsageError if no log has such an offset: it is no int, or does not fit in 64 bits. One below 0 does."""
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise UsageError(f"{name} {offset!r} is not an offset", "give a whole number, 0 or above")
    if not -OFFSET_MAX <= offset <= OFFSET_MAX:
        raise UsageError(f"{name} {offset} is not an offset", "an offset has 63 bits")


def check_position(offset: Offset, name: str) -> None:
    """Raise UsageError unless a log may have this offset."""
    check_offset(offset, name)
    if offset < 0:
        raise UsageError(f"{name} {offset} is not an offset", "give a whole number, 0 or above")
