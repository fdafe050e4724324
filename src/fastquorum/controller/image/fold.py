"""Folds a log into an image, record by record. The records of a transaction count once it has ended, or never.

Source: KIP-868; Kafka `MetadataBatchLoader`, `OffsetControlManager`.
"""

from typing import Final, NamedTuple

from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.controller.image.image import EMPTY, Image, ImageEditor
from fastquorum.controller.image.vector import Make
from fastquorum.errors import ImageFailed
from fastquorum.kernels.partitions import PartitionRun
from fastquorum.types import Epoch, Offset
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from fastquorum.wire.records.metadata import record_type_name


class Place(NamedTuple):
    """The position of an image in the log."""

    end_offset: Offset = 0
    """The end, exclusive, of the records that the image holds."""
    epoch: Epoch = 0
    """The epoch of the last of them."""
    timestamp_ms: int = 0
    """The timestamp of the last of them; 0 if there is none."""


START: Final = Place()
_TRANSACTION_RECORDS: Final = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class Fold:
    """Takes a log's records in order; `image` is their result at any time. Unusable once a record did not fit."""

    def __init__(
        self,
        image: Image = EMPTY,
        place: Place = START,
        counts: PartitionCounts | None = None,
        make: Make = tuple,
    ) -> None:
        """Take `counts`, the image's partition counts, which are updated with it; `make` as in `Vector.updated`."""
        self._image = image
        self._counts = counts
        self._make = make
        self._editor: ImageEditor | None = None
        """The records applied since the image was last read; None if there are none."""
        self._last: tuple[Offset, Epoch, int] = place
        """The arguments of `Place`, which is made when it is read."""
        self._next_offset = place.end_offset
        self._pending: list[tuple[Offset, Message | PartitionRun]] | None = None
        """The records of the open transaction; None if none is open."""

    @property
    def image(self) -> Image:
        """The image at `place`; while a transaction is open, the one before it."""
        if self._editor is not None:
            if self._counts is not None:
                self._counts.take(self._editor)
            self._image, self._editor = self._editor.finish(), None
        return self._image

    @property
    def place(self) -> Place:
        return Place(*self._last)

    @property
    def is_in_transaction(self) -> bool:
        return self._pending is not None

    @property
    def next_offset(self) -> Offset:
        """The offset behind the last record taken."""
        return self._next_offset

    def add(self, offset: Offset, record: Message, epoch: Epoch, timestamp_ms: int) -> None:
        """Add one record. ImageFailed names record and offset if it does not fit."""
        self._next_offset = offset + 1
        kind = record.__class__
        if kind not in _TRANSACTION_RECORDS:
            if self._pending is not None:
                self._pending.append((offset, record))
                return
            if self._editor is None:
                self._editor = ImageEditor(self._image, self._make)
            self._editor.apply(record, offset)
        elif kind is BeginTransactionRecord:
            if self._pending is not None:
                raise _misplaced(kind, offset, "a transaction is open already")
            self._pending = []
            return
        else:
            pending, self._pending = self._pending, None
            if pending is None:
                raise _misplaced(kind, offset, "no transaction is open")
            if kind is EndTransactionRecord:
                for held_offset, held in pending:
                    self._apply(held_offset, held)
        self._last = offset + 1, epoch, timestamp_ms

    def add_run(self, offset: Offset, run: PartitionRun, end_offset: Offset, epoch: Epoch, timestamp_ms: int) -> None:
        """Add partitions that were read at once, as `add` would add their records from `offset` on. ImageFailed as
        there."""
        self._next_offset = end_offset
        if self._pending is not None:
            self._pending.append((offset, run))
            return
        self._apply(offset, run)
        self._last = end_offset, epoch, timestamp_ms

    def take_over(self, editor: ImageEditor, image: Image, end_offset: Offset, epoch: Epoch, timestamp_ms: int) -> None:
        """Take over `image`, which an editor has made from this fold's image and the next records, up to end_offset. No
        transaction is open."""
        assert self._editor is None, "it is another image that the editor began with"
        assert self._pending is None, "a transaction is open"
        if self._counts is not None:
            self._counts.take(editor)
        self._image, self._next_offset = image, end_offset
        self._last = end_offset, epoch, timestamp_ms

    def skip(self, end_offset: Offset, epoch: Epoch, timestamp_ms: int) -> None:
        """Skip the quorum's own records, up to end_offset: they do not concern the metadata."""
        self._next_offset = end_offset
        if self._pending is None:
            self._last = end_offset, epoch, timestamp_ms

    def _apply(self, offset: Offset, record: Message | PartitionRun) -> None:
        if self._editor is None:
            self._editor = ImageEditor(self._image, self._make)
        if isinstance(record, PartitionRun):
            self._editor.create_partitions(record, offset)
        else:
            self._editor.apply(record, offset)


def _misplaced(kind: type[Message], offset: Offset, why: str) -> ImageFailed:
    return ImageFailed(why, record_type_name(kind), offset)
