"""Pieces of logs to rows, and what is damaged in them: fail, set aside, or leave out, but never unnoticed.

Must not know which columns a table has, nor who asked.
"""

import enum
import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, UsageError
from fastquorum.kernels import BatchFault, Buffer, Kernels, RowReader
from fastquorum.kernels.rows import Rows
from fastquorum.spark.stored.splits import Piece
from fastquorum.spark.stored.stores import Store, store_of
from fastquorum.storage.log.scanning import bytes_needed

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
WINDOW_BYTES: Final = 2 << 20
"""Read at once, and made rows of: larger ones cost more, as their columns are too large for what malloc keeps."""
REMOTE_WINDOW_BYTES: Final = 8 << 20
"""The same where each read is a request."""
_SCHEME: Final = "://"
_LENGTH_END: Final = 12
_MAGIC_AT: Final = 16
_MAGIC: Final = b"\x02"


class Mode(enum.StrEnum):
    """How damaged input is treated."""

    FAIL = "fail"
    """An error that names file, position and offset."""
    QUARANTINE = "quarantine"
    """A row with the error in its column `error`, and the bytes in `value` where the table has that."""
    DROP = "drop"
    """Left out, with a warning."""


class Damage(NamedTuple):
    """Bytes that are not a good batch, up to the next one or the piece's end."""

    piece: Piece
    position: int
    """Position in the file."""
    offset: int
    """Offset that the bytes claim; -1 if it is not known."""
    data: bytes
    error: str


class Collector(Protocol[T_co]):
    """Takes in batches, as `kernels.RowReader` does: the same words mean the same."""

    next_offset: int

    def __len__(self) -> int: ...
    def read(self, buffer: bytes, position: int = 0) -> int: ...
    def take(self) -> T_co: ...


def rows_of(piece: Piece, kernels: Kernels, reader: RowReader, mode: Mode) -> Iterator[Rows | Damage]:
    """Read all rows of a piece, some at a time, and its damage. CorruptionError and DirectoryError in mode FAIL."""
    return collected(PieceWalk(piece, kernels), reader, mode)


def collected(walk: "PieceWalk", reader: Collector[T], mode: Mode) -> Iterator[T | Damage]:
    """Yield what the reader makes of a piece, some at a time, and its damage. Errors as of `rows_of`."""
    try:
        yield from _walked(walk, reader, mode)
    except (CorruptionError, DirectoryError) as error:  # it was removed or cut off meanwhile; or the mode is to fail
        if mode is not Mode.FAIL:
            yield from _taken(reader)
        yield from handle_damage(Damage(walk.piece, walk.position, -1, b"", str(error)), error, mode)


def _walked(walk: "PieceWalk", reader: Collector[T], mode: Mode) -> Iterator[T | Damage]:
    piece = walk.piece
    walk.begin()
    reader.next_offset = piece.base_offset if piece.start == 0 and piece.is_segment else -1
    while True:
        try:
            at = reader.read(walk.window, walk.at)
        except CorruptionError as error:
            if walk.refill(error):
                continue
            yield from _taken(reader)
            if walk.is_blank_from_here(reader.next_offset):
                return
            if walk.has_changed():
                continue
            damage = walk.damaged(error)
            yield from handle_damage(damage, error, mode)
            reader.next_offset = -1
            continue
        is_over = walk.move_to(at)
        yield from _taken(reader)
        if is_over:
            yield from _missing(piece, reader.next_offset, mode)
            return


def _missing(piece: Piece, next_offset: int, mode: Mode) -> Iterator[Damage]:
    """Check that the next segment, or piece, goes on where this one ends. DirectoryError."""
    if piece.end_offset < 0 or next_offset in (-1, piece.end_offset):
        return
    if piece.is_cut:
        text = f"goes on with offset {piece.end_offset} behind offset {next_offset - 1}, at byte {piece.end}"
    elif piece.end_offset < next_offset:
        text = f"ends at offset {next_offset}, and the next segment begins at {piece.end_offset} already: they overlap"
    else:
        text = f"ends at offset {next_offset}, and the next segment begins at {piece.end_offset}: one is missing"
    error = DirectoryError(text, path=piece.path)
    yield from handle_damage(Damage(piece, piece.end, next_offset, b"", str(error)), error, mode)


def _taken(reader: Collector[T]) -> Iterator[T]:
    if len(reader) > 0:
        yield reader.take()


def handle_damage(damage: Damage, error: FastQuorumError, mode: Mode) -> Iterator[Damage]:
    """Handle damage as the mode says: raise the error, yield the damage, or warn and leave it out."""
    if mode is Mode.FAIL:
        raise error
    if mode is Mode.QUARANTINE:
        yield damage
    else:
        text = f"{damage.error}: {len(damage.data)} bytes are left out"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class PieceWalk:
    """The reader's position in a piece, with a window on its bytes."""

    def __init__(self, piece: Piece, kernels: Kernels) -> None:
        self.piece = piece
        self._kernels = kernels
        self._store: Store = store_of(piece.path)
        self._window_bytes = REMOTE_WINDOW_BYTES if _SCHEME in piece.path else WINDOW_BYTES
        self._base = piece.start
        """The window's place in the file."""
        self.window: bytes = b""
        self.at = 0

    def begin(self) -> None:
        """Read the first window. CorruptionError, DirectoryError, as later reads."""
        self._read(self._window_bytes)

    @property
    def position(self) -> int:
        """Position in the file."""
        return self._base + self.at

    def move_to(self, at: int) -> bool:
        """Move to `at` in the window; return whether the piece is read to its end."""
        self.at = at
        if at == len(self.window) and self.position < self.piece.end:
            self._read(self._window_bytes)
        return self.position >= self.piece.end

    def refill(self, error: CorruptionError) -> bool:
        """Read a larger window where the window ended inside a batch; return whether there was more."""
        if error.reason != BatchFault.TRUNCATED or self._base + len(self.window) >= self.piece.end:
            return False
        needed = bytes_needed(self.window[self.at : self.at + _LENGTH_END])
        before = len(self.window) - self.at
        if self.at == 0 and before >= min(needed, self.piece.end - self._base):
            return False
        self._read(max(needed, self._window_bytes))
        return len(self.window) > before

    def is_blank_from_here(self, next_offset: int) -> bool:
        """Return whether only zeros follow, laid ahead of use, at the end of the log or of a complete segment."""
        is_whole = 0 <= next_offset == self.piece.end_offset and not self.piece.is_cut
        if not self.piece.is_tail and not is_whole:
            return False
        position, end = self.position, self.piece.end
        while position < end:
            part = self._store.read(self.piece.path, position, min(self._window_bytes, end - position))
            if not part:
                return True  # it was trimmed meanwhile
            if part.strip(b"\0"):
                return False
            position += len(part)
        return True

    def has_changed(self) -> bool:
        """Return whether the bytes changed meanwhile: a node may be writing at its log's end."""
        if not self.piece.is_tail:
            return False
        seen = self.window[self.at :]
        now = self._store.read(self.piece.path, self.position, len(seen))
        if now == seen:
            return False
        self._base, self.at, self.window = self.position, 0, now
        return True

    def damaged(self, error: CorruptionError) -> Damage:
        """Return the damage, and go on behind it. The error gets its position in the file."""
        error.path, error.position = self.piece.path, self.position
        rest = self._store.read(self.piece.path, self.position, self.piece.end - self.position)
        found = next_batch(self._kernels, rest)
        damage = Damage(self.piece, self.position, error.offset, rest[:found], str(error))
        # If nothing good follows, that was all, though the file may have become shorter meanwhile.
        self._base = self.position + found if found < len(rest) else self.piece.end
        self.window, self.at = rest[found:], 0
        return damage

    def _read(self, size_bytes: int) -> None:
        self._base, self.at = self.position, 0
        self.window = self._store.read(self.piece.path, self._base, min(size_bytes, self.piece.end - self._base))
        if not self.window and self._base < self.piece.end:
            if self.piece.is_tail:
                # Its node has gone on: zeros laid ahead of use are cut off at a roll, and what was never committed too.
                self.piece = self.piece._replace(end=self._base)
                return
            raise CorruptionError(BatchFault.TRUNCATED, self._base, path=self.piece.path)


def next_batch(kernels: Kernels, data: Buffer) -> int:
    """Return where the next good batch begins behind the first byte of `data`; its length if there is none."""
    view = memoryview(data)
    whole = bytes(data)
    at = whole.find(_MAGIC, _MAGIC_AT + 1)
    while at >= 0:
        candidate = at - _MAGIC_AT
        if kernels.scan(view[candidate : candidate + bytes_needed(view[candidate:])]).batch_count:
            return candidate
        at = whole.find(_MAGIC, at + 1)
    return len(whole)


def mode_of(text: str) -> Mode:
    """Return the mode of a name. UsageError if there is no such mode."""
    try:
        return Mode(text.lower())
    except ValueError as error:
        raise UsageError(f"mode is {text!r}", f"it is one of {', '.join(Mode)}") from error
