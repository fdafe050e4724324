"""Batches of a metadata log into the image they come to, and what the active controller has folded already.

A controller knows what its records come to before it writes them (`controller.state`). When the log says that these
very bytes followed on that very image, that is what they come to, and nobody folds them again. Nothing else is asked:
not who leads, nor in which epoch, nor at what offset, since an image follows from the one before it and the records.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.partition import Partition
from fastquorum.errors import ImageFailed, WireError
from fastquorum.kernels import Kernels
from fastquorum.node.collector import CollectorAtRest
from fastquorum.types import Offset
from fastquorum.wire.codec import codec_of
from fastquorum.wire.metadata_records import decode_metadata_record


class Step(NamedTuple):
    """One append of the controller's: records, as they are in the log, and what they make of an image."""

    base_offset: Offset
    before: Image
    values: Sequence[bytes]
    editor: ImageEditor
    """It began with `before`, and has taken in the values."""
    after: Image


class Foreseen:
    """What was appended and is not known to be committed, in the order of the log. Of one lead."""

    def __init__(self) -> None:
        self.steps: Final[deque[Step]] = deque()
        """The next one first."""

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: Step) -> None:
        self.steps.append(step)

    def clear(self) -> None:
        """The lead is over: what is committed of it, if anything is, is read from the log."""
        self.steps.clear()

    def take(self, offset: Offset, values: Sequence[bytes | None], at: int, fold: Fold) -> Step | None:
        """The step of the committed records that begin at `values[at]` and `offset`; None if nobody has foreseen them,
        or they do not follow on the fold's image."""
        steps = self.steps
        while steps and steps[0].base_offset < offset:
            steps.popleft()
        if not steps or steps[0].base_offset != offset:
            return None
        step = steps.popleft()
        if fold.is_in_transaction or fold.image is not step.before:
            return None
        return step if values[at : at + len(step.values)] == step.values else None


class BatchFolder:
    """Takes batches into folds; whoever has one shares its ids among all their images. One thread's at a time."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels: Final = kernels
        self._codec: Final = codec_of(kernels)
        self._partitions: Final = kernels.PartitionRows(Partition)
        self.foreseen: Final = Foreseen()

    def take(self, data: bytes, fold: Fold) -> None:
        """What whole, checked batches hold from where the fold stands. ImageFailed, naming the record that does not
        fit."""
        with CollectorAtRest():
            self._take(data, fold)

    def _take(self, data: bytes, fold: Fold) -> None:
        kernels, partitions, foreseen = self._kernels, self._partitions, self.foreseen
        codec, steps = self._codec, foreseen.steps
        for info in kernels.batch_headers(data, verify_crc=False):
            if info.is_control:
                fold.skip(info.last_offset + 1, info.leader_epoch, info.max_timestamp_ms)
                continue
            values = kernels.decode_values(data, info.position, verify_crc=False)
            offsets: Sequence[Offset] = range(info.base_offset, info.last_offset + 1)
            if len(values) != len(offsets):  # as no controller writes them
                offsets = [each.offset for each in kernels.decode_records(data, info.position, verify_crc=False)]
            at, count = bisect_left(offsets, fold.next_offset), len(values)
            while at < count:
                step = foreseen.take(offsets[at], values, at, fold) if steps else None
                if step is not None:
                    at += len(step.values)
                    place = offsets[at - 1] + 1, info.leader_epoch, info.max_timestamp_ms
                    fold.take_over(step.editor, step.after, *place)
                    continue
                run = partitions.read(values, at)
                if run is not None:
                    fold.add_run(offsets[at], run, offsets[run.end - 1] + 1, info.leader_epoch, info.max_timestamp_ms)
                    at = run.end
                    continue
                try:
                    message, _ = decode_metadata_record(values[at] or b"", codec)
                except WireError as error:
                    raise ImageFailed(f"it is no metadata record: {error}", "record", offsets[at]) from error
                fold.add(offsets[at], message, info.leader_epoch, info.max_timestamp_ms)
                at += 1
