"""Produce: a client's batch becomes part of the log, and is answered when a majority's disks have it.

acks=all and acks=1 are both answered at the high watermark (1 asks for less than it gets); acks=0 is appended and never
answered. A batch that an idempotent producer sends again is answered with the offset it has. Transactions are refused,
and so are control batches, but for those by which a named producer takes its next epoch.
Source: the Kafka protocol guide; KIP-98.
"""

import heapq
from collections import Counter
from typing import Final, NamedTuple

from fastquorum.config import MS
from fastquorum.errors import (
    CorruptionError,
    FastQuorumError,
    NotLeader,
    OutOfOrderSequence,
    Overloaded,
    ProducerFenced,
    RecordTooLarge,
    UnknownProducer,
    WireError,
)
from fastquorum.kernels import Attribute, BatchFault, BatchInfo, Compression
from fastquorum.kernels.producers import NO_SEQUENCE, Stamp
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.lane.fences import MARKER_BATCH_BYTES_MAX, is_marker
from fastquorum.node.lane.producer_states import NAMED
from fastquorum.node.network.requests import Request
from fastquorum.storage.identity import LogKind
from fastquorum.types import Micros, Offset
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from fastquorum.wire.records.metadata import decode_metadata_record

Topic = ProduceResponse.TopicProduceResponse
Partition = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
CONTENT_BYTES_MAX: Final = 8 * 1024 * 1024
"""What a compressed batch may hold, or as much as one that is not compressed may, if that is more. The quorum waits
while it is looked through, and a few hundred bytes can hold millions of records or headers."""
METADATA_RECORDS_MAX: Final = 10_000
"""In one batch of a metadata log, whose records are decoded one by one: as many as a controller writes at once."""
SWEEP_MIN: Final = 256
"""Deadlines kept before anybody looks which of them still matter."""
ZSTD_VERSION_MIN: Final = 7
"""The first Produce that may carry it (KIP-110)."""
_MAGIC: Final = 16
_ATTRIBUTES: Final = 22
"""Where a batch's header has them; of the attributes the byte that names the compression."""
_COMPRESSION: Final = 0x07
_ACKS: Final = (-1, 0, 1)
LEADER_VERSION_MIN: Final = 10
"""The first Produce whose answer can name the leader (KIP-951)."""


class _Refused(Exception):
    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def _stamp_of(info: BatchInfo) -> Stamp | None:
    """None if no producer vouches for the batch. Raises _Refused."""
    if info.producer_id < 0:
        return None
    if info.producer_epoch < 0 or (info.base_sequence < 0 and not info.is_control):
        raise _Refused(
            ErrorCode.INVALID_RECORD,
            f"producer {info.producer_id} with epoch {info.producer_epoch} and sequence {info.base_sequence}: neither "
            "may be negative",
        )
    return Stamp(info.producer_id, info.producer_epoch, info.base_sequence, info.records_count, info.crc)


def _check_readable(records: bytes, version: int) -> None:
    """Is it a batch of a kind that is read here? Raises _Refused."""
    if len(records) <= _ATTRIBUTES:
        return  # as incomplete as its kind is unknown
    magic, codec = records[_MAGIC], records[_ATTRIBUTES] & _COMPRESSION
    if magic != 2:
        code = ErrorCode.CORRUPT_MESSAGE if magic > 2 else ErrorCode.INVALID_RECORD
        raise _Refused(code, f"magic {magic}: only batches of magic 2 are taken")
    if codec > Compression.ZSTD:
        raise _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"compression {codec} is none that is known")
    if codec == Compression.ZSTD and version < ZSTD_VERSION_MIN:
        raise _Refused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd is taken from Produce {ZSTD_VERSION_MIN} on, this is version {version}",
        )


def _code_of(error: CorruptionError) -> ErrorCode:
    """What a Kafka says of such a batch: only a wrong checksum is worth another try for a client, and only what is too
    large may be split by it."""
    match error.reason:
        case BatchFault.CRC:
            return ErrorCode.CORRUPT_MESSAGE
        case "decompressed_size":
            return ErrorCode.MESSAGE_TOO_LARGE
        case "compression":
            return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.INVALID_RECORD


class Produce:
    """One Produce request; the ticket of its appends. Several partitions are answered together."""

    __slots__ = ("_context", "_request", "_response", "_unanswered", "_wants_answer")

    def __init__(self, context: ClientContext, request: Request, message: ProduceRequest) -> None:
        self._context = context
        self._request = request
        self._wants_answer = message.acks != 0
        self._response = ProduceResponse()
        self._unanswered = 0

    @property
    def is_open(self) -> bool:
        return self._request.is_waiting

    def begin(self, message: ProduceRequest, now_us: Micros) -> None:
        """A partition that is named twice is refused, with nothing appended: thousands of good batches would keep
        the quorum waiting."""
        by_id = self._request.header.request_api_version >= 13
        topics = message.topic_data
        named = Counter((topic.name, topic.topic_id, each.index) for topic in topics for each in topic.partition_data)
        self._unanswered = 1
        for requested in topics:
            topic = Topic(name=requested.name, topic_id=requested.topic_id)
            self._response.responses.append(topic)
            for data in requested.partition_data:
                answer = Partition(index=data.index, base_offset=-1)
                topic.partition_responses.append(answer)
                self._unanswered += 1
                error = self._context.partition_error(requested.name, requested.topic_id, data.index, by_id)
                if message.acks not in _ACKS:
                    error = ErrorCode.INVALID_REQUIRED_ACKS
                elif named[requested.name, requested.topic_id, data.index] > 1:
                    error = ErrorCode.INVALID_REQUEST
                if error is not ErrorCode.NONE:
                    self._refuse(answer, error)
                    continue
                self._append(answer, data.records, now_us)
        self._one_answered()

    def _append(self, answer: Partition, records: bytes | None, now_us: Micros) -> None:
        try:
            batch, count, stamp = self._checked(records)
            self._context.replica.shell.append_encoded(batch, count, PartitionTicket(self, answer), now_us, stamp)
        except _Refused as refused:
            self._refuse(answer, refused.code, refused.detail)
        except FastQuorumError as error:
            self.failed(answer, error)

    def _checked(self, records: bytes | None) -> tuple[bytearray, int, Stamp | None]:
        """The batch, if it is one good batch that this log takes, and its producer's stamp. Raises _Refused."""
        context = self._context
        if not records:
            raise _Refused(
                ErrorCode.INVALID_RECORD, "a Produce request carries one record batch, this one carries none"
            )
        if len(records) > context.config.batch_bytes_max:
            raise _Refused(
                ErrorCode.MESSAGE_TOO_LARGE, f"{len(records)} bytes, at most {context.config.batch_bytes_max}"
            )
        _check_readable(records, self._request.header.request_api_version)
        batch = bytearray(records)
        try:
            # A producer knows neither its offset nor the epoch, and may say so with -1: no flaw of the batch.
            context.kernels.stamp_batch(batch, 0, 0)
            most_bytes = max(context.config.batch_bytes_max, CONTENT_BYTES_MAX)
            info = context.kernels.check_records(batch, decompressed_bytes_max=most_bytes)
        except CorruptionError as error:
            raise _Refused(_code_of(error), str(error)) from error
        if (info.is_control or info.is_transactional) and not self._is_fence(batch, info):
            raise _Refused(ErrorCode.INVALID_RECORD, "control and transactional batches are not taken")
        if info.last_offset - info.base_offset + 1 != info.records_count:
            raise _Refused(ErrorCode.INVALID_RECORD, "offsets inside the batch have gaps")
        if context.kind is LogKind.METADATA:
            self._check_metadata(batch, info)
        return batch, info.records_count, _stamp_of(info)

    def _is_fence(self, batch: bytearray, info: BatchInfo) -> bool:
        if self._context.kind is LogKind.METADATA or info.attributes != Attribute.CONTROL | Attribute.TRANSACTIONAL:
            return False
        if len(batch) > MARKER_BATCH_BYTES_MAX:
            return False
        if not info.producer_id & NAMED or info.base_sequence != NO_SEQUENCE or info.records_count != 1:
            return False
        return is_marker(self._context.kernels.decode_records(batch, verify_crc=False)[0])

    def _check_metadata(self, batch: bytearray, info: BatchInfo) -> None:
        """A metadata log holds metadata records and nothing else: Kafka's readers stop at anything else. Raises
        _Refused."""
        if info.records_count > METADATA_RECORDS_MAX:
            raise _Refused(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{info.records_count} records, at most {METADATA_RECORDS_MAX} in one batch",
            )
        kernels = self._context.kernels
        columns = kernels.decode_batch(batch, verify_crc=False)
        have_headers = columns.header_starts[1:] > columns.header_starts[:-1]
        odd = (columns.key_lengths >= 0) | (columns.value_lengths < 0) | have_headers
        if odd.any():
            raise _Refused(
                ErrorCode.INVALID_RECORD,
                f"record {int(odd.argmax())}: a metadata record has a value, no key, no headers",
            )
        for number, value in enumerate(kernels.decode_values(batch, verify_crc=False)):
            assert value is not None
            try:
                decode_metadata_record(value)
            except WireError as error:
                raise _Refused(ErrorCode.INVALID_RECORD, f"record {number}: {error}") from error

    def committed(self, answer: Partition, base_offset: Offset) -> None:
        answer.base_offset = base_offset
        answer.log_start_offset = self._context.log.start_offset
        self._one_answered()

    def failed(self, answer: Partition, error: FastQuorumError) -> None:
        match error:
            case NotLeader():
                if self._request.header.request_api_version >= LEADER_VERSION_MIN:
                    self._name_leader(answer)
                self._refuse(answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            case UnknownProducer():
                self._refuse(answer, ErrorCode.UNKNOWN_PRODUCER_ID, str(error))
            case OutOfOrderSequence():
                self._refuse(answer, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, str(error))
            case ProducerFenced():
                self._refuse(answer, ErrorCode.INVALID_PRODUCER_EPOCH, str(error))
            case RecordTooLarge():
                self._refuse(answer, ErrorCode.MESSAGE_TOO_LARGE, str(error))
            case Overloaded():
                # Retriable for every Kafka client, with its own backoff.
                self._refuse(answer, ErrorCode.NOT_ENOUGH_REPLICAS, str(error))
            case _:
                self._refuse(answer, ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _name_leader(self, answer: Partition) -> None:
        leader = self._context.leader()
        answer.current_leader = Partition.LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        if leader.endpoint is not None and not self._response.node_endpoints:
            self._response.node_endpoints.append(
                ProduceResponse.NodeEndpoint(node_id=leader.id, host=leader.endpoint.host, port=leader.endpoint.port)
            )

    def timed_out(self) -> None:
        """Whatever is not committed yet may still be."""
        for topic in self._response.responses:
            for answer in topic.partition_responses:
                if answer.base_offset < 0 and answer.error_code == 0:
                    answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._answer()

    def _refuse(self, answer: Partition, code: ErrorCode, detail: str = "") -> None:
        answer.error_code = code
        answer.error_message = detail or None
        self._one_answered()

    def _one_answered(self) -> None:
        self._unanswered -= 1
        if self._unanswered == 0:
            self._answer()

    def _answer(self) -> None:
        self._request.reply(self._response if self._wants_answer else None)


class PartitionTicket(NamedTuple):
    """Tells a Produce of one partition's fate."""

    produce: Produce
    answer: Partition

    def committed(self, base_offset: Offset) -> None:
        self.produce.committed(self.answer, base_offset)

    def failed(self, error: FastQuorumError) -> None:
        self.produce.failed(self.answer, error)


class Produces:
    """All Produce requests under way, by their deadlines."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._deadlines: list[tuple[Micros, int, Produce]] = []
        self._sweep_at = SWEEP_MIN

    @property
    def deadline_us(self) -> Micros:
        while self._deadlines and not self._deadlines[0][2].is_open:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else -1

    def on_request(self, request: Request, message: ProduceRequest, now_us: Micros) -> None:
        produce = Produce(self._context, request, message)
        produce.begin(message, now_us)
        if produce.is_open:
            wait_us = max(message.timeout_ms, 0) * MS
            heapq.heappush(self._deadlines, (now_us + wait_us, request.token, produce))
            self._sweep()

    def _sweep(self) -> None:
        """Let go of answered requests whose far deadline keeps them from ever coming to the top."""
        if len(self._deadlines) > self._sweep_at:
            self._deadlines = [each for each in self._deadlines if each[2].is_open]
            heapq.heapify(self._deadlines)
            self._sweep_at = max(2 * len(self._deadlines), SWEEP_MIN)

    def on_tick(self, now_us: Micros) -> None:
        while self._deadlines and self._deadlines[0][0] <= now_us:
            produce = heapq.heappop(self._deadlines)[2]
            if produce.is_open:
                produce.timed_out()
