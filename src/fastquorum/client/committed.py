"""The image of a running quorum: the committed metadata log, fetched from whoever leads, and folded.

Where the log no longer holds its beginning, the leader's snapshot stands in for it. Source: KIP-595 (Fetch), KIP-630
(FetchSnapshot).
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from fastquorum.client.committed_log import CommittedLog
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image.batches import BatchFolder
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import OffsetOutOfRange, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.storage.images import fold_snapshot
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import Epoch, Offset, OffsetAndEpoch

_DRAFT: Final = "snapshot"

Watch = Callable[[Offset], AbstractContextManager[Callable[[int], None]]]


def committed_fold(
    client: QuorumClient,
    kernels: Kernels,
    timeout_s: float,
    end_offset: Offset | None = None,
    watch: Watch = lambda _: nullcontext(_unseen),
) -> Fold:
    """What the committed records below end_offset (None: all that are committed now) come to.

    Args:
        timeout_s: give up when nothing was heard for this long.
        watch: told the offset that will be reached; gives what is to be called with how many more are read.
    Raises:
        NotReady: nobody leads, or no leader answers.
        OffsetOutOfRange: so much is not committed, or what precedes it is gone.
        UsageError: the quorum keeps no metadata.
        ImageFailed, CorruptionError: as `fold_log`.
    """
    return LiveImage(client, kernels, timeout_s).at(end_offset, watch)


class LiveImage:
    """The image of a running quorum, looked at again and again: what was committed since is fetched, and no more."""

    def __init__(self, client: QuorumClient, kernels: Kernels, timeout_s: float) -> None:
        """`timeout_s`: as of `committed_fold`."""
        self._log = CommittedLog(client, kernels, timeout_s)
        self._kernels = kernels
        self._folder = BatchFolder(kernels)
        self._begin()

    def _begin(self) -> None:
        self._fold = Fold()
        self._last_epoch: Epoch | None = None

    def at(self, end_offset: Offset | None = None, watch: Watch = lambda _: nullcontext(_unseen)) -> Fold:
        """All that is committed now, or below end_offset. Arguments and errors as of `committed_fold`. Where end_offset
        is inside a batch, the fold's `next_offset` is where that begins: it counts as a whole or not at all."""
        try:
            return self._read(end_offset, watch)
        except BaseException:
            self._begin()  # whoever was interrupted may have taken in half a batch
            raise

    def _read(self, end_offset: Offset | None, watch: Watch) -> Fold:
        extent = self._log.extent()
        if extent.kind is LogKind.USER:
            raise UsageError("this quorum keeps a user log", "only a metadata log has an image")
        end = extent.end_offset if end_offset is None else end_offset
        if end > extent.end_offset:
            raise OffsetOutOfRange(offset=end, start_offset=0, end_offset=extent.end_offset)
        with watch(end) as advance:
            while (began := self._fold.next_offset) < end:
                found = self._log.fetch(began, end, self._last_epoch)
                if isinstance(found, OffsetAndEpoch):
                    self._fold, self._last_epoch = _snapshot_fold(self._log, self._kernels, end_offset)
                elif not self._add(found, end):
                    break
                advance(self._fold.next_offset - began)
        return self._fold

    def _add(self, data: bytes, end: Offset) -> bool:
        """False: `end` is inside the last one, which is left out."""
        for info in self._kernels.batch_headers(data, verify_crc=False):
            if info.last_offset >= end:
                return False
            self._folder.take(data[info.position : info.position + info.size_bytes], self._fold)
            self._last_epoch = info.leader_epoch
        return True


def _snapshot_fold(log: CommittedLog, kernels: Kernels, end: Offset | None) -> tuple[Fold, Epoch]:
    """Fetch the latest snapshot into a file, as large as it may be, and read it from there like any other.

    Without `end` it may have been taken while this reads: all that it holds is committed.
    """
    with tempfile.TemporaryDirectory(prefix="fastquorum-") as root:
        directory = os.path.join(root, names.LOG_DIRECTORY)
        os.mkdir(directory)
        draft = os.path.join(directory, _DRAFT)
        with open(draft, "w+b") as file:
            snapshot = log.copy_snapshot(file)
        if end is not None and snapshot.offset > end:
            raise OffsetOutOfRange(
                f"what precedes offset {snapshot.offset} is in a snapshot as a whole: there is no image at {end}",
                offset=end,
                start_offset=snapshot.offset,
                end_offset=end,
            )
        os.rename(draft, os.path.join(directory, names.checkpoint_name(snapshot)))
        stored = OfflineLog(RealDisk.open_directory(root, kernels, writable=False), kernels)
        return fold_snapshot(stored, kernels, snapshot), snapshot.epoch


def _unseen(_: int) -> None:
    pass
