"""CPU time that a hypervisor gave to other machines while this one wanted to run.

It makes the figures of virtual machines differ from run to run, and is not the fault of the measured program.
"""

import contextlib
from typing import Final

_WORTH_TELLING: Final = 0.02
"""Less hardly shows in a percentile."""

_IDLE: Final = (3, 4)
_STEAL: Final = 7
"""Columns of the first line of /proc/stat (proc(5)): idle and iowait; steal."""
_COLUMNS: Final = 8
"""The further ones are in user and nice already."""


class Stolen:
    """From here on."""

    def __init__(self) -> None:
        self._before = _ticks()

    def share(self) -> float | None:
        """Return the stolen part of the CPU time that was wanted here: 0 to 1. None if the kernel has no figures."""
        before, now = self._before, _ticks()
        if before is None or now is None:
            return None
        used = [after - began for began, after in zip(before, now, strict=True)]
        wanted = sum(used) - sum(used[column] for column in _IDLE)
        return max(used[_STEAL], 0) / wanted if wanted > 0 else 0.0


def in_words(share: float | None) -> str:
    """Empty where it is not worth a word."""
    if share is None or share < _WORTH_TELLING:
        return ""
    return f"the hypervisor gave {share:.0%} of the CPU time wanted to other machines"


def _ticks() -> list[int] | None:
    with contextlib.suppress(OSError, ValueError), open("/proc/stat", encoding="ascii") as lines:
        found = [int(field) for field in lines.readline().split()[1 : _COLUMNS + 1]]
        return found if len(found) == _COLUMNS else None
    return None
