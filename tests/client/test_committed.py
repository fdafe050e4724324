"""The image of a running quorum, while its leader takes snapshots."""

from typing import BinaryIO

import pytest

from fastquorum.client.committed import LiveImage
from fastquorum.client.committed_log import Extent
from fastquorum.errors import OffsetOutOfRange
from fastquorum.kernels import load
from fastquorum.storage.identity import LogKind
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name
from fastquorum.types import OffsetAndEpoch
from tests.wire.golden import CLUSTER

SNAPSHOT = OffsetAndEpoch(3829, 3)
END_BEFORE = 3800
"""All that was committed when the reader asked."""


class Compacting:
    """A log that has become a snapshot, with what was committed meanwhile, since the reader asked how far it goes."""

    def extent(self) -> Extent:
        return Extent("c", LogKind.METADATA, 0, END_BEFORE, None)

    def fetch(self, *_: object) -> OffsetAndEpoch:
        return SNAPSHOT

    def copy_snapshot(self, file: BinaryIO) -> OffsetAndEpoch:
        file.write((CLUSTER / "c1" / LOG_DIRECTORY / checkpoint_name(SNAPSHOT)).read_bytes())
        file.flush()
        return SNAPSHOT


@pytest.fixture
def image() -> LiveImage:
    live = LiveImage(None, load("pure"), 1.0)  # type: ignore[arg-type]
    live._log = Compacting()  # type: ignore[assignment]
    return live


def test_a_snapshot_that_is_taken_meanwhile_is_what_is_committed_now(image: LiveImage) -> None:
    fold = image.at()
    assert fold.next_offset == SNAPSHOT.offset
    assert fold.image.topics.sorted()


def test_an_offset_that_is_inside_a_snapshot_has_no_image(image: LiveImage) -> None:
    with pytest.raises(OffsetOutOfRange, match="no image at 3800"):
        image.at(END_BEFORE)
