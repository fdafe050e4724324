"""The lane of a follower, voter or observer: one Fetch at a time, sent only when all that was fetched is on this disk.

So a Fetch at offset f says: everything before f is durable here (it IS the acknowledgement).
Source: KIP-595 "Fetch"; KIP-853, KIP-1166.
"""

from typing import Final

from fastquorum.kernels import BatchFault, Scan
from fastquorum.kernels.lane import NO_CONNECTION, Advanced, Connection, FollowerSession, Output, Send
from fastquorum.kernels.pure.lane.context import CORRELATION_FIRST, LaneContext, correlation_of
from fastquorum.kernels.pure.lane.fetch_requests import REQUEST_ENCODERS, RequestEncoder
from fastquorum.kernels.pure.lane.fetch_responses import RESPONSE_PARSERS, ResponseParser
from fastquorum.types import Micros, Offset

NONE_IN_FLIGHT: Final = -1
US_PER_MS: Final = 1_000


class FollowerLane:
    """The lane of a follower's session. The facade keeps it from being called while frozen or failed."""

    def __init__(self, context: LaneContext, session: FollowerSession) -> None:
        self._context = context
        self._log = context.log
        self.session = session
        self.epoch = session.epoch
        self.high_watermark = session.high_watermark
        self.leader_contact_us: Micros = -1
        self.fetch_sent_us: Micros = -1
        self._connection = NO_CONNECTION
        self._api_version = 0
        self._encode: RequestEncoder
        self._parse: ResponseParser
        self._correlation_id = NONE_IN_FLIGHT
        self._fetch_offset: Offset = -1
        context.flush_rest()

    def renew(self, session: FollowerSession) -> None:
        """The same leader and epoch, newly ordered: a new attempt forgets the Fetch in flight."""
        if session.attempt != self.session.attempt:
            self._forget()
        self.session = session
        self.high_watermark = max(self.high_watermark, session.high_watermark)
        if self._connection != NO_CONNECTION:
            self._prepare()
        self._context.flush_rest()

    def attach(self, connection: Connection, api_version: int) -> None:
        """The leader is reached on this connection from now on; a Fetch on another one is forgotten."""
        self._forget()
        self._connection = connection
        self._api_version = api_version
        self._prepare()

    def detach(self, connection: Connection) -> None:
        if connection == self._connection:
            self._connection = NO_CONNECTION
            self._forget()

    def _prepare(self) -> None:
        """Make the codecs of this leader, connection and version."""
        context, session = self._context, self.session
        key = context.identity.key
        self._parse = RESPONSE_PARSERS[self._api_version]
        self._encode = REQUEST_ENCODERS[self._api_version](
            self._api_version,
            context.client_id,
            context.cluster_id,
            key.id,
            session.fetch_wait_us_max // US_PER_MS,
            session.fetch_bytes_max,
            context.topic_id,
            bytes(key.directory_id),
        )

    def _forget(self) -> None:
        self._correlation_id = NONE_IN_FLIGHT
        self.fetch_sent_us = -1

    @property
    def fetch_in_flight(self) -> int:
        return self._correlation_id

    # --- the exchange -----------------------------------------------------------------------------------------------

    def fetch(self, now_us: Micros, out: list[Output]) -> None:
        """Send the next Fetch, if none is in flight and the whole log is flushed."""
        log = self._log
        end_offset = log.end_offset
        if self._connection == NO_CONNECTION or self._correlation_id >= 0 or log.flushed_end != end_offset:
            return
        self._correlation_id = correlation_id = self._context.next_correlation_id()
        self._fetch_offset = end_offset
        self.fetch_sent_us = now_us
        frame = self._encode(correlation_id, self.epoch, end_offset, log.last_epoch, self.high_watermark)
        out.append(Send(self._connection, frame))

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros, out: list[Output]) -> bool:
        """False, and the log untouched: not the steady state. A late answer is dropped."""
        correlation_id = correlation_of(frame)
        if correlation_id < CORRELATION_FIRST:
            return False
        if correlation_id != self._correlation_id or connection != self._connection:
            return True
        self._forget()
        fields = self._parse(frame)
        if fields is None:
            return False
        _, topic_id, high_watermark, _, leader_id, leader_epoch, start, end = fields
        if (
            leader_epoch != self.epoch
            or leader_id != self.session.leader_id
            or self._fetch_offset != self._log.end_offset
            or (topic_id is not None and topic_id != self._context.topic_id)
        ):
            return False
        if end > start and not self._store(memoryview(frame)[start:end]):
            return False
        self.leader_contact_us = now_us
        reached = min(high_watermark, self._log.end_offset)
        if reached > self.high_watermark:
            self.high_watermark = reached
            out.append(Advanced(reached))
        self.fetch(now_us, out)
        return True

    def _store(self, records: memoryview) -> bool:
        """Check and write the records, but an incomplete last batch. False, nothing written: raft/ must see them."""
        log = self._log
        last_epoch = log.last_epoch
        scan: Scan = self._context.kernels.scan(
            records, expected_offset=log.end_offset, epoch_min=last_epoch, epoch_max=min(last_epoch, self.epoch)
        )
        if (
            not scan.valid_bytes
            or scan.control_count
            or (scan.fault is not None and scan.fault.reason is not BatchFault.TRUNCATED)
        ):
            return False
        if not log.fits(scan.valid_bytes, scan.next_offset - scan.first_offset):
            return False
        self._context.write(
            records[: scan.valid_bytes], scan.first_offset, scan.next_offset, scan.last_epoch, scan.max_timestamp_ms
        )
        return True
