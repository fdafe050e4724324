"""Batches of a metadata log into the image they come to, and what the active controller has folded already.

A controller knows what its records come to before it writes them (`controller.state`). When the log says that these
very bytes followed on that very image, that is what they come to, and nobody folds them again. Nothing else is asked:
not who leads, nor in which epoch, nor at what offset, since an image follows from the one before it and the records.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fastquorum.controller.image import Image, batches
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.image import ImageEditor
from fastquorum.kernels import BatchInfo, Kernels
from fastquorum.node.metadata.gc_pause import CollectorAtRest
from fastquorum.types import Offset


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


class MetadataFolder(batches.BatchFolder):
    """The same, which takes over what was foreseen."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__(kernels)
        self.foreseen: Final = Foreseen()

    def take(self, data: bytes, fold: Fold) -> None:
        """Take in a batch's records like `batches.BatchFolder`."""
        with CollectorAtRest():
            super().take(data, fold)

    def _taken(self, values: list[Any], offsets: Sequence[Offset], at: int, info: BatchInfo, fold: Fold) -> int:
        step = self.foreseen.take(offsets[at], values, at, fold) if self.foreseen.steps else None
        if step is None:
            return super()._taken(values, offsets, at, info, fold)
        at += len(step.values)
        fold.take_over(step.editor, step.after, offsets[at - 1] + 1, info.leader_epoch, info.max_timestamp_ms)
        return at
