"""The image of a running quorum: the committed metadata log, fetched from whoever leads, and folded.

Where the log no longer holds its beginning, the leader's snapshot stands in for it. It reads as a client does: no
replica, so that no leader counts it or waits for it; our nodes and Kafka's controllers answer alike. One thread at a
time. Source: KIP-595 (Fetch), KIP-630 (FetchSnapshot).
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Final, NamedTuple

from fastquorum.cli.arguments import load_kernels, parse_bootstrap
from fastquorum.cli.client import FETCH_BYTES, LOOK_AGAIN_S, QuorumClient
from fastquorum.cli.connection import Deadline, NoAnswer, NotSent
from fastquorum.cli.output import progress, tell
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import CorruptionError, NotReady, OffsetOutOfRange, PeerProtocolError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage import names
from fastquorum.storage.images import fold_batch, fold_snapshot
from fastquorum.storage.io_disk import RealDisk
from fastquorum.storage.offline import OfflineLog, StoredBatch
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Endpoint, Epoch, Offset, OffsetAndEpoch
from fastquorum.wire import ErrorCode
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.fetch import FetchRequest, FetchResponse
from fastquorum.wire.snapshot import FetchSnapshotRequest, FetchSnapshotResponse

_FETCH_VERSION: Final = 13
"""The first by topic id, which is how Kafka's controllers know their log."""
_FETCH_SNAPSHOT_VERSION: Final = 0
_ELSEWHERE: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.OFFSET_OUT_OF_RANGE,  # of a new leader that does not know yet how much is committed
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
    )
)
"""Another node leads by now, or there is another snapshot: look again."""
_NO_METADATA: Final = frozenset((ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

Partition = FetchResponse.FetchableTopicResponse.PartitionData
Piece = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot


class _Source(NamedTuple):
    """Who is read from."""

    endpoint: Endpoint
    epoch: Epoch
    high_watermark: Offset


class _Moved(Exception):
    """Who was read from does not serve it any more."""


def committed_image(arguments: argparse.Namespace) -> Image:
    """Of the quorum that a command was told of: see `arguments.add_bootstrap` and `add_kernels`. Raises as
    `committed_fold`."""
    kernels = load_kernels(arguments.kernels)
    with QuorumClient(parse_bootstrap(arguments.bootstrap), kernels, tell) as client:
        return committed_fold(client, kernels, arguments.timeout).image


def committed_fold(
    client: QuorumClient,
    kernels: Kernels,
    timeout_s: float,
    end_offset: Offset | None = None,
    *,
    shows_progress: bool = True,
) -> Fold:
    """What the committed records below end_offset (None: all that are committed now) come to.

    Args:
        timeout_s: give up when nothing was heard for this long.
    Raises:
        NotReady: nobody leads, or no leader answers.
        OffsetOutOfRange: so much is not committed, or what precedes it is gone.
        UsageError: the quorum keeps no metadata.
        ImageFailed, CorruptionError: as `fold_log`.
    """
    reader = _Reader(client, kernels, timeout_s, end_offset)
    return reader.read("reading the metadata log" if shows_progress else None)


class LiveImage:
    """The image of a running quorum, looked at again and again: what was committed since is fetched, and no more."""

    def __init__(self, client: QuorumClient, kernels: Kernels, timeout_s: float) -> None:
        """`timeout_s`: as of `committed_fold`."""
        self._told = client, kernels, timeout_s
        self._reader = _Reader(*self._told, None)

    def now(self, description: str | None = None) -> Fold:
        """All that is committed now; with a description, progress is shown. Raises as `committed_fold`."""
        try:
            return self._reader.read(description)
        except BaseException:
            self._reader = _Reader(*self._told, None)  # whoever was interrupted may have taken in half a batch
            raise


class _Reader:
    """Reads from one leader or several: what is committed is the same with each."""

    def __init__(self, client: QuorumClient, kernels: Kernels, timeout_s: float, end_offset: Offset | None) -> None:
        self._client = client
        self._kernels = kernels
        self._timeout_s = timeout_s
        self._wanted = end_offset
        self._deadline = Deadline(timeout_s)
        self._fold = Fold()
        self._last_epoch: Epoch = 0
        """Of the record before the fold's next."""

    def read(self, description: str | None) -> Fold:
        """What was committed since it last read, if it has; with a description, progress is shown where somebody
        watches."""
        self._deadline = Deadline(self._timeout_s)
        source = self._find()
        end = self._end(source)
        with progress(description, end) if description is not None else nullcontext(_unseen) as advance:
            done = self._fold.next_offset
            while self._fold.next_offset < end:
                try:
                    end = self._step(source, end)
                    self._deadline = Deadline(self._timeout_s)
                except (_Moved, NotSent, NoAnswer) as error:
                    self._give_up_or_wait(str(error))
                    source = self._find()
                advance(self._fold.next_offset - done)
                done = self._fold.next_offset
        return self._fold

    def _find(self) -> _Source:
        """Whoever leads, once it knows what is committed."""
        while True:
            partition = self._client.describe(self._deadline).topics[0].partitions[0]
            if partition.high_watermark >= 0:
                endpoint = self._client.controller(self._deadline).endpoint
                return _Source(endpoint, partition.leader_epoch, partition.high_watermark)
            self._give_up_or_wait(f"node {partition.leader_id} does not know yet what is committed")

    def _give_up_or_wait(self, reason: str) -> None:
        self._client.forget_leader()
        if self._deadline.left_s <= LOOK_AGAIN_S:
            raise NotReady(reason)
        time.sleep(LOOK_AGAIN_S)

    def _end(self, source: _Source) -> Offset:
        if self._wanted is None:
            return source.high_watermark
        if self._wanted > source.high_watermark:
            raise OffsetOutOfRange(offset=self._wanted, start_offset=0, end_offset=source.high_watermark)
        return self._wanted

    def _step(self, source: _Source, end: Offset) -> Offset:
        """Some more batches, or the snapshot before them. Where it ends, in front of a batch that end is inside of."""
        answer = self._fetch(source)
        snapshot = OffsetAndEpoch(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        if snapshot.offset > self._fold.next_offset:
            if snapshot.offset > end:
                raise OffsetOutOfRange(
                    f"what precedes offset {snapshot.offset} is in a snapshot as a whole: there is no image at {end}",
                    offset=end,
                    start_offset=snapshot.offset,
                    end_offset=source.high_watermark,
                )
            self._fold, self._last_epoch = self._fetch_snapshot(source, snapshot), snapshot.epoch
            return end
        match answer.error_code:
            case ErrorCode.NONE:
                return self._add(answer.records or b"", end)
            case code if code in _NO_METADATA:
                raise UsageError("this quorum keeps a user log", "only a metadata log has an image")
            case code if code in _ELSEWHERE:
                raise _Moved(_refusal(source.endpoint, code))
            case code:
                raise PeerProtocolError(f"Fetch at offset {self._fold.next_offset}: {error_name(code)}")

    def _fetch(self, source: _Source) -> Partition:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=0,
            current_leader_epoch=source.epoch,
            fetch_offset=self._fold.next_offset,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_bytes=FETCH_BYTES, topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])]
        )
        response = self._client.ask(source.endpoint, request, _FETCH_VERSION, FetchResponse, self._deadline)
        if response.error_code or len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
            raise PeerProtocolError(f"Fetch: {error_name(response.error_code)}")
        return response.responses[0].partitions[0]

    def _add(self, data: bytes, end: Offset) -> Offset:
        began = self._fold.next_offset
        for info in self._kernels.batch_headers(data):
            if not info.crc_valid:
                raise CorruptionError("crc", info.position, info.base_offset)
            if info.last_offset >= end:
                return min(end, info.base_offset)
            batch = StoredBatch(0, info, data[info.position : info.position + info.size_bytes])
            fold_batch(self._fold, self._kernels, batch)
            self._last_epoch = info.leader_epoch
        if self._fold.next_offset == began:
            raise _Moved(f"offset {began} is committed, but was not served")
        return end

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _fetch_snapshot(self, source: _Source, snapshot: OffsetAndEpoch) -> Fold:
        """In a file, as large as it may be, and from there as any other snapshot is read."""
        with tempfile.TemporaryDirectory(prefix="fastquorum-") as root:
            directory = os.path.join(root, names.LOG_DIRECTORY)
            os.mkdir(directory)
            with open(os.path.join(directory, names.checkpoint_name(snapshot)), "wb") as file:
                self._copy(source, snapshot, file.write)
            log = OfflineLog(RealDisk.open_directory(root, self._kernels, writable=False), self._kernels)
            return fold_snapshot(log, self._kernels, snapshot)

    def _copy(self, source: _Source, snapshot: OffsetAndEpoch, write: Callable[[bytes], object]) -> None:
        position, size = 0, 1
        while position < size:
            piece = self._fetch_piece(source, snapshot, position)
            if piece.error_code in _ELSEWHERE:
                raise _Moved(_refusal(source.endpoint, piece.error_code))
            if piece.error_code or piece.position != position or not piece.unaligned_records:
                raise PeerProtocolError(f"FetchSnapshot at byte {position}: {error_name(piece.error_code)}")
            write(piece.unaligned_records)
            position, size = position + len(piece.unaligned_records), piece.size
            self._deadline = Deadline(self._timeout_s)

    def _fetch_piece(self, source: _Source, snapshot: OffsetAndEpoch, position: int) -> Piece:
        topic = FetchSnapshotRequest.TopicSnapshot
        partition = topic.PartitionSnapshot(
            partition=0,
            current_leader_epoch=source.epoch,
            snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
            position=position,
        )
        request = FetchSnapshotRequest(max_bytes=FETCH_BYTES, topics=[topic(name=TOPIC_NAME, partitions=[partition])])
        response = self._client.ask(
            source.endpoint, request, _FETCH_SNAPSHOT_VERSION, FetchSnapshotResponse, self._deadline
        )
        if response.error_code or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
            raise PeerProtocolError(f"FetchSnapshot: {error_name(response.error_code)}")
        return response.topics[0].partitions[0]


def _unseen(_: int) -> None:
    pass


def _refusal(endpoint: Endpoint, code: int) -> str:
    return f"{endpoint.host}:{endpoint.port} answered {error_name(code)}"
