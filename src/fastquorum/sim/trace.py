"""The events of a run as lines: hashed for the comparison of runs, the last ones kept for the report of a failure."""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final
from zlib import crc32

from fastquorum.types import Micros

KEPT_LINES: Final = 60


class SimTrace:
    """An append-only trace. `echo`, if given, gets every line at once (replay)."""

    def __init__(self, echo: Callable[[str], None] | None = None) -> None:
        self._hash = blake2b(digest_size=16)
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._echo = echo

    def add(self, now_us: Micros, node: int, text: str) -> None:
        line = f"{now_us} n{node} {text}"
        self._hash.update(line.encode())
        self._last.append(line)
        if self._echo is not None:
            self._echo(line)

    def add_frame(self, now_us: Micros, node: int, connection: int, frame: bytes) -> None:
        self.add(now_us, node, f"sends {len(frame)} on {connection} {crc32(frame):08x}")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    @property
    def last_lines(self) -> tuple[str, ...]:
        return tuple(self._last)
