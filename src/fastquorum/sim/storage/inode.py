"""One file's bytes, durable and volatile apart, and what a crash may leave of them.

The rule is that of a real file system: what was written before a successful sync began is there afterwards; of
anything later any 512-byte sector may be there in any of its states, in any combination, and the length may be any
that the file had meanwhile.
"""

from typing import Final, NamedTuple

from fastquorum.sim.prng import Prng

SECTOR: Final = 512


class Write(NamedTuple):
    """A change that no sync covers yet: a write, or, with `size` >= 0, a truncation to that size."""

    position: int
    data: bytes
    size: int


class Inode:
    """One file: `data` is the page cache that readers see, `durable` the content of the platter."""

    __slots__ = ("data", "durable", "is_suspect", "pending", "settled")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[Write] = []
        self.settled = 0
        """The number of settled changes; with `pending` it numbers all changes of the file's life."""
        self.is_suspect = False
        """Whether a sync failed: the page cache counts as clean, though the platter may differ."""

    def write(self, position: int, data: bytes) -> None:
        end = position + len(data)
        unchanged = not self.pending and self.durable[position:end] == data
        _apply(self.data, Write(position, data, -1))
        if not unchanged:
            self.pending.append(Write(position, data, -1))

    def truncate(self, size: int) -> None:
        change = Write(size, b"", size)
        _apply(self.data, change)
        self.pending.append(change)

    @property
    def changes(self) -> int:
        """The number of the latest change, up to which a sync that begins now covers."""
        return self.settled + len(self.pending)

    def sync(self, changes: int) -> None:
        """Note that a sync that began after this number of changes has succeeded."""
        count = max(changes - self.settled, 0)
        for change in self.pending[:count]:
            _apply(self.durable, change)
        self._settle(count)

    def fail_sync(self, prng: Prng) -> None:
        """Fail a sync: the kernel marks the pages clean, and it is unknown what reached the platter."""
        self.durable = self._survivor(prng)
        self._settle(len(self.pending))
        self.is_suspect = True

    def crash(self, prng: Prng) -> None:
        """Lose power."""
        self.durable = self._survivor(prng)
        self.data = bytearray(self.durable)
        self._settle(len(self.pending))
        self.is_suspect = False

    def _settle(self, count: int) -> None:
        del self.pending[:count]
        self.settled += count

    @property
    def durable_prefix(self) -> int:
        """Return how many bytes from the start no crash can take away, as readers see them now."""
        end = len(self.durable)
        for change in self.pending:
            end = min(end, change.position)
        if self.is_suspect:
            end = _common_prefix(self.durable, self.data, end)
            self.is_suspect = bool(self.pending) or end < max(len(self.data), len(self.durable))
        return end

    def _survivor(self, prng: Prng) -> bytearray:
        changes = self.pending
        mode = prng.randrange(5)
        if not changes or mode == 0:
            return bytearray(self.durable)
        result = bytearray(self.durable)
        if mode == 1:
            for change in changes:
                _apply(result, change)
            return result
        if mode == 2:
            for change in changes[: prng.randrange(len(changes) + 1)]:
                _apply(result, change)
            return result
        return self._torn(prng, keep_most=mode == 3)

    def _torn(self, prng: Prng, *, keep_most: bool) -> bytearray:
        """Return the content with each sector in one of its possible states."""
        changes = self.pending
        versions = [bytearray(self.durable)]
        for change in changes:
            versions.append(bytearray(versions[-1]))
            _apply(versions[-1], change)
        last = len(changes)
        size = len(versions[last if keep_most and prng.randrange(4) else prng.randrange(last + 1)])
        result = bytearray(size)
        for start in range(0, size, SECTOR):
            at = last if keep_most and prng.randrange(4) else prng.randrange(last + 1)
            piece = versions[at][start : min(start + SECTOR, size)]
            result[start : start + len(piece)] = piece
        return result


def _apply(content: bytearray, change: Write) -> None:
    if change.size >= 0:
        if change.size < len(content):
            del content[change.size :]
        else:
            content.extend(bytes(change.size - len(content)))
        return
    end = change.position + len(change.data)
    if len(content) < change.position:
        content.extend(bytes(change.position - len(content)))
    content[change.position : end] = change.data


def _common_prefix(a: bytearray, b: bytearray, end: int) -> int:
    low, high = 0, min(end, len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
