"""An observer of the metadata log: when a broker's partitions have other leaders, and that is committed.

It fetches as a broker does, but as nobody (replica -1), so that no leader counts it. A leader also serves what is not
committed yet: what counts is the high watermark that comes with it or later. Source: KIP-595, KIP-1166.
"""

import asyncio
import time
from typing import Final

from bench.compare.workload import BadAnswer
from bench.controllers.wire import Connection, unless_lost
from fastquorum.kernels import load
from fastquorum.types import METADATA_TOPIC_ID, Epoch, Offset, Uuid
from fastquorum.wire.codec.codec import codec_of
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.records.metadata import decode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord

VERSION: Final = 18
"""The first with which a change of the high watermark alone is answered."""
FETCH_BYTES: Final = 8 << 20
WAIT_MS: Final = 500
LEADER_UNCHANGED: Final = -2

Key = tuple[Uuid, int]
"""A topic's id and a partition's number."""


class Watch:
    """Reads one leader's log, from `offset` on, in `epoch`."""

    def __init__(self, connection: Connection, offset: Offset, epoch: Epoch) -> None:
        self._connection = connection
        self._offset, self._epoch = offset, epoch
        self._high_watermark: Offset = offset
        self._kernels = load("native")
        self._codec = codec_of(self._kernels)
        self._awaited: set[Key] = set()
        self._end: Offset = -1
        """Behind the last new leader seen."""
        self._seen: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._fetch()

    def expect(self, keys: set[Key]) -> None:
        """From now on new leaders of these are waited for."""
        self._awaited, self._end = set(keys), -1
        self._seen = asyncio.get_running_loop().create_future()

    async def committed(self, timeout_s: float) -> float:
        """When all of them were known to be committed, by time.monotonic."""
        return await unless_lost(self._seen, self._connection, timeout_s=timeout_s)

    def _fetch(self) -> None:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=0,
            current_leader_epoch=self._epoch,
            fetch_offset=self._offset,
            last_fetched_epoch=self._epoch,
            partition_max_bytes=FETCH_BYTES,
            high_watermark=self._high_watermark,
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )
        self._connection.request(request, VERSION, self._on_response)

    def _on_response(self, answer: FetchResponse) -> None:
        now = time.monotonic()
        (partition,) = answer.responses[0].partitions if answer.responses else ((),)
        if answer.error_code or not partition or partition.error_code or partition.snapshot_id.end_offset >= 0:
            code = answer.error_code or (partition.error_code if partition else 0)
            raise BadAnswer(f"the metadata log is not served at offset {self._offset}: {error_name(code)}")
        began, data = self._offset, partition.records or b""
        headers = self._kernels.batch_headers(data, verify_crc=False)
        if headers:
            self._offset = headers[-1].last_offset + 1
        self._high_watermark = max(partition.high_watermark, self._high_watermark)
        self._fetch()  # before what came is looked at: the next is on its way meanwhile
        if self._awaited:
            for info in headers:
                if not info.is_control:
                    self._look(data, info.position, began)
        if self._end >= 0 and not self._awaited and self._high_watermark >= self._end and not self._seen.done():
            self._seen.set_result(now)

    def _look(self, data: bytes, position: int, began: Offset) -> None:
        for record in self._kernels.decode_records(data, position, verify_crc=False):
            if record.offset < began:
                continue
            message, _ = decode_metadata_record(record.value or b"", self._codec)
            if isinstance(message, PartitionChangeRecord) and message.leader != LEADER_UNCHANGED:
                self._awaited.discard((message.topic_id, message.partition_id))
                self._end = record.offset + 1
