"""The committed log of a running quorum, as the bytes of its batches: fetched from whoever leads.

It reads as a client does: no replica, so that no leader counts it or waits for it; our nodes and Kafka's controllers
answer alike. Kafka's answer with what is not committed yet, too, so that nothing is taken that the same answer does not
call committed: what a leader that was deposed, and does not know it, has beyond that may never be. Where the log no
longer holds its beginning, the leader's snapshot stands in for it. One thread at a time. Source: KIP-595 (Fetch),
KIP-630 (FetchSnapshot).
"""

import time
from collections.abc import Callable
from typing import BinaryIO, Final, NamedTuple, TypeVar

from fastquorum.client.connection import Deadline, NoAnswer, NotSent
from fastquorum.client.quorum import FETCH_BYTES, LOOK_AGAIN_S, QuorumClient
from fastquorum.errors import CorruptionError, NotReady, OffsetOutOfRange, PeerProtocolError, UsageError
from fastquorum.kernels import BatchFault, Kernels
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.scanning import bytes_needed
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Endpoint, Epoch, Offset, OffsetAndEpoch
from fastquorum.wire import ErrorCode
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse

T = TypeVar("T")
_BY_ID_VERSION: Final = 13
"""The first by topic id, which is how Kafka's controllers know their log."""
_BY_NAME_VERSION: Final = 12
_FETCH_SNAPSHOT_VERSION: Final = 0
_OFFSET_BYTES: Final = 8
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


class Extent(NamedTuple):
    """The committed part of a log that is still there."""

    cluster_id: str
    kind: LogKind
    start_offset: Offset
    """The first offset that is served; 1 for a Kafka log that begins at 0 and has a snapshot."""
    end_offset: Offset
    """The high watermark."""
    snapshot: OffsetAndEpoch | None
    """What stands in for the records below `start_offset`, if there were any."""


class _Source(NamedTuple):
    """The leader that is read from."""

    endpoint: Endpoint
    cluster_id: str
    epoch: Epoch
    high_watermark: Offset


class _Moved(Exception):
    """Raised when the node that was read from does not serve the log any more."""


class CommittedLog:
    """Read from one leader or several: what is committed is the same with each.

    Every method gives up when nothing was heard for `timeout_s`: NotReady.
    """

    def __init__(self, client: QuorumClient, kernels: Kernels, timeout_s: float, cluster_id: str | None = None) -> None:
        """`cluster_id`: the cluster that is meant, if one is; another one's log is refused with a UsageError."""
        self._client = client
        self._kernels = kernels
        self._timeout_s = timeout_s
        self._cluster_id = cluster_id
        self._source: _Source | None = None
        self._user_topic: str | None = None
        """None: a metadata log, as far as is known."""
        self._deadline = Deadline(timeout_s)

    def close(self) -> None:
        """The client's connections; it may be used again."""
        self._client.close()
        self._source = None

    def __enter__(self) -> "CommittedLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def extent(self, at_least: Offset = 0) -> Extent:
        """What there is now, asked anew.

        Args:
            at_least: known to be committed: who knows of less is no leader any more, or none yet.
        Raises:
            NotReady: nobody leads, or no leader answers.
            OffsetOutOfRange: whoever leads says for `timeout_s` that less than `at_least` is committed.
        """
        return self._tried(lambda: self._look(at_least))

    def _look(self, at_least: Offset) -> Extent:
        source = self._source = self._find()
        if source.high_watermark < at_least:
            if self._deadline.left_s > LOOK_AGAIN_S:
                raise _Moved
            raise OffsetOutOfRange(
                f"up to offset {at_least} was read, and only {source.high_watermark} is committed now: it is another "
                "log, or it was set back",
                offset=at_least,
                end_offset=source.high_watermark,
            )
        answer = self._first(source)
        kind = LogKind.METADATA if self._user_topic is None else LogKind.USER
        start_offset, snapshot = max(answer.log_start_offset, 0), _snapshot(answer)
        if snapshot is not None and start_offset == 0 and self._beginning(source, 1) is None:
            start_offset = 1
        return Extent(
            source.cluster_id, kind, start_offset, source.high_watermark, snapshot if start_offset > 0 else None
        )

    def _beginning(self, source: _Source, size_bytes: int) -> Partition | None:
        """Kafka shows whoever asks for offset 0 to its snapshot, if there is one, though its log may begin there: the
        first batch is served if it holds more than that record. None: it is not."""
        answer = self._fetch(source, 1, source.epoch, size_bytes)
        served = (answer.records or b"")[:_OFFSET_BYTES]
        return answer if served and int.from_bytes(served, "big") == 0 else None

    def _first(self, source: _Source) -> Partition:
        """Return the answer to a Fetch of the very first offset, which may be long gone."""
        answer = self._fetch(source, 0, 0, 1)
        is_gone = answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start_offset > 0
        if answer.error_code in _ELSEWHERE and not is_gone:
            raise _Moved(_refusal(source.endpoint, answer.error_code))
        if answer.error_code and not is_gone:
            raise PeerProtocolError(f"Fetch at offset 0: {error_name(answer.error_code)}")
        return answer

    def end_of(self, data: bytes) -> Offset:
        """Behind the last of some batches."""
        return self._kernels.scan(data, verify_crc=False).next_offset

    def position_of(self, data: bytes, offset: Offset) -> int:
        """Where in some batches the first one is that begins at `offset` or behind it."""
        return first_from(self._kernels, memoryview(data), offset)

    def fetch(self, offset: Offset, end: Offset, last_epoch: Epoch | None = None) -> bytes | OffsetAndEpoch:
        """Some batches, at least the one that holds `offset`, and none that begins at `end` or behind it; or the
        snapshot that stands in for them. `end` must be committed.

        Args:
            last_epoch: of the record before `offset`, where that is known.
        Raises:
            NotReady: nobody leads, or no leader serves it.
            CorruptionError: the checksum of a batch that arrived is wrong.
            PeerProtocolError: an answer that makes no sense.
        """
        return self._tried(lambda: self._step(offset, end, last_epoch))

    def _tried(self, attempt: Callable[[], T]) -> T:
        """Again and again, at whoever leads then."""
        self._deadline = Deadline(self._timeout_s)
        while True:
            try:
                return attempt()
            except (_Moved, NotSent, NoAnswer) as error:
                self._source = None
                self._give_up_or_wait(str(error))

    def _step(self, offset: Offset, end: Offset, last_epoch: Epoch | None) -> bytes | OffsetAndEpoch:
        source = self._source or self._find()
        self._source = source
        answer = self._fetch(source, offset, source.epoch if last_epoch is None else last_epoch, FETCH_BYTES)
        snapshot = _snapshot(answer)
        if snapshot is not None and offset == answer.log_start_offset == 0:
            return self._served(self._beginning(source, FETCH_BYTES), offset, end) or snapshot
        if snapshot is not None and offset == answer.log_start_offset and last_epoch is None:
            # Kafka serves a log's first record to those that know the epoch of what was before it.
            for epoch in range(snapshot.epoch, -1, -1):
                answer = self._fetch(source, offset, epoch, FETCH_BYTES)
                if _snapshot(answer) is None:
                    snapshot = None
                    break
        if snapshot is not None:
            return snapshot
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < answer.log_start_offset:
            return OffsetAndEpoch(answer.log_start_offset, 0)  # nothing stands in for it
        if answer.error_code in _ELSEWHERE:
            raise _Moved(_refusal(source.endpoint, answer.error_code))
        if answer.error_code:
            raise PeerProtocolError(f"Fetch at offset {offset}: {error_name(answer.error_code)}")
        found = self._served(answer, offset, end)
        if not found:
            raise _Moved(f"offset {offset} is committed, but was not served")
        return found

    def _served(self, answer: Partition | None, offset: Offset, end: Offset) -> bytes:
        """What an answer brings of what is wanted; nothing if there is none."""
        if answer is None:
            return b""
        return committed_part(self._kernels, answer.records or b"", answer.high_watermark, offset, end)

    def voters(self) -> DescribeQuorumResponse:
        """Return the voters, as the leader knows them. NotReady."""
        self._deadline = Deadline(self._timeout_s)
        return self._client.describe(self._deadline)

    # --- one request --------------------------------------------------------------------------------------------------

    def _find(self) -> _Source:
        """Find the leader, once it knows what is committed."""
        while True:
            partition = self._client.describe(self._deadline).topics[0].partitions[0]
            if partition.high_watermark >= 0:
                endpoint, cluster_id = self._client.controller(self._deadline)
                if self._cluster_id not in (None, cluster_id):
                    raise UsageError(
                        f"{endpoint.address} is of cluster {cluster_id}, and cluster {self._cluster_id} "
                        "was read before",
                        "name nodes of that cluster",
                    )
                return _Source(endpoint, cluster_id, partition.leader_epoch, partition.high_watermark)
            self._give_up_or_wait(f"node {partition.leader_id} does not know yet what is committed")

    def _give_up_or_wait(self, reason: str) -> None:
        self._client.forget_leader()
        if self._deadline.left_s <= LOOK_AGAIN_S:
            raise NotReady(reason)
        time.sleep(LOOK_AGAIN_S)

    def _fetch(self, source: _Source, offset: Offset, last_epoch: Epoch, size_bytes: int) -> Partition:
        if self._user_topic is None:
            answer = self._ask(source, offset, last_epoch, size_bytes)
            if answer.error_code not in _NO_METADATA:
                return answer
            self._user_topic = self._client.leader(self._deadline).topic
        return self._ask(source, offset, last_epoch, size_bytes)

    def _ask(self, source: _Source, offset: Offset, last_epoch: Epoch, size_bytes: int) -> Partition:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=0,
            current_leader_epoch=source.epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=size_bytes,
        )
        if self._user_topic is None:
            version, requested = _BY_ID_VERSION, topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        else:
            version, requested = _BY_NAME_VERSION, topic(topic=self._user_topic, partitions=[partition])
        request = FetchRequest(max_bytes=size_bytes, topics=[requested])
        response = self._client.ask(source.endpoint, request, version, FetchResponse, self._deadline)
        if response.error_code or len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
            raise PeerProtocolError(f"Fetch: {error_name(response.error_code)}")
        return response.responses[0].partitions[0]

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def copy_snapshot(self, file: BinaryIO) -> OffsetAndEpoch:
        """The leader's latest snapshot, whole, into an empty file; which it is. NotReady, also if there is none."""
        return self._tried(lambda: self._copy(file))

    def _copy(self, file: BinaryIO) -> OffsetAndEpoch:
        source = self._source = self._source or self._find()
        snapshot = _snapshot(self._first(source))
        if snapshot is None:
            raise _Moved("there is no snapshot")
        file.seek(0)
        file.truncate()
        position, size = 0, 1
        while position < size:
            piece = self._fetch_piece(source, snapshot, position)
            if piece.error_code in _ELSEWHERE:
                raise _Moved(_refusal(source.endpoint, piece.error_code))
            if piece.error_code or piece.position != position or not piece.unaligned_records:
                raise PeerProtocolError(f"FetchSnapshot at byte {position}: {error_name(piece.error_code)}")
            file.write(piece.unaligned_records)
            position, size = position + len(piece.unaligned_records), piece.size
            self._deadline = Deadline(self._timeout_s)
        file.flush()
        return snapshot

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


def committed_part(kernels: Kernels, data: bytes, high_watermark: Offset, offset: Offset, end: Offset) -> bytes:
    """Return the wanted batches of an answer, whose last one may be cut: from the batch that holds `offset` to the last
    one that begins before `end`, as far as whole batches lie below the answer's high watermark. CorruptionError if the
    first wanted batch is damaged."""
    scan = kernels.scan(data)
    if scan.fault is not None and scan.fault.reason != BatchFault.TRUNCATED and scan.next_offset <= offset:
        raise CorruptionError(*scan.fault)
    good = memoryview(data)[: scan.valid_bytes]
    start = kernels.slice_batches(good, offset, 1)[0]
    behind = min(first_from(kernels, good, end), kernels.slice_batches(good, max(high_watermark, 0), 1)[0])
    return data[start:behind]


def first_from(kernels: Kernels, batches: memoryview, offset: Offset) -> int:
    """Where the first batch is that begins at `offset` or behind it; their length if none does."""
    at = kernels.slice_batches(batches, offset, 1)[0]
    if at < len(batches) and int.from_bytes(batches[at : at + _OFFSET_BYTES], "big") < offset:
        at += bytes_needed(batches[at:])
    return at


def _snapshot(answer: Partition) -> OffsetAndEpoch | None:
    """Return the snapshot that an answer names in place of records; None if it names none."""
    found = answer.snapshot_id
    return OffsetAndEpoch(found.end_offset, found.epoch) if found.end_offset > 0 else None


def _refusal(endpoint: Endpoint, code: int) -> str:
    return f"{endpoint.address} answered {error_name(code)}"
