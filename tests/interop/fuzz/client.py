"""The well-behaved client: appends and reads on a connection of its own, and remembers what it was promised."""

import struct
import time
from collections.abc import Iterator
from typing import Final

from fastquorum.kernels import BatchInfo
from fastquorum.wire import ApiKey, Message, decode_response, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.produce import ProduceResponse
from tests.interop.faults import KERNELS, batch
from tests.process.processes import WAIT_S

from .live import CLIENT_ID, Live, consumer_fetch, produce, value
from .records import fingerprint
from .report import Finding
from .target import Target

VERSION: Final = 12
READ_EVERY: Final = 8
FETCH_BYTES: Final = 4 * 1024 * 1024


class Client:
    """A client of the leader."""

    def __init__(self, live: Live, target: Target, first_offset: int) -> None:
        """`target` is the leader."""
        self._live = live
        self._target = target
        self._line = target.connect(keep=True)
        self._first_offset = first_offset
        self._correlation_id = 0
        self._under_way = b""
        self.promised: dict[int, bytes] = {}
        """What was acknowledged, by offset."""

    # --- appends ------------------------------------------------------------------------------------------------------

    def begin_append(self) -> None:
        self._under_way = value(self._live, f"the client's record {len(self.promised)}")
        self._ask(produce(self._live, VERSION, batch(self._under_way)))

    def finish_append(self) -> None:
        """Finding unless it is acknowledged."""
        response = self._answer(ApiKey.PRODUCE)
        assert isinstance(response, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            raise Finding("append refused", f"error {answer.error_code} ({answer.error_message}) for a good append")
        if answer.base_offset in self.promised:
            raise Finding("offset given twice", f"two appends were acknowledged at {answer.base_offset}")
        self.promised[answer.base_offset] = self._under_way
        if len(self.promised) % READ_EVERY == 0:
            self._read_back(answer.base_offset)

    def _read_back(self, offset: int) -> None:
        for info, data in self.batches(offset):
            if info.base_offset == offset:
                self._compare(offset, data)
                return
        raise Finding("record not read", f"the record acknowledged at {offset} is not read from there")

    def _compare(self, offset: int, data: bytes) -> None:
        values = KERNELS.decode_values(data, 0)
        if values != [self.promised[offset]]:
            raise Finding("wrong record", f"{offset} holds {values!r}, not {self.promised[offset]!r}")

    # --- the log ------------------------------------------------------------------------------------------------------

    def batches(self, offset: int) -> Iterator[tuple[BatchInfo, bytes]]:
        """What one answer holds of the committed log, from there on."""
        self._ask(consumer_fetch(self._live, offset, bytes_max=FETCH_BYTES))
        response = self._answer(ApiKey.FETCH)
        assert isinstance(response, FetchResponse)
        answer = response.responses[0].partitions[0]
        if answer.error_code:
            raise Finding("read refused", f"error {answer.error_code} for a good read at {offset}")
        data = answer.records or b""
        for info in KERNELS.batch_headers(data):
            if not info.crc_valid:
                raise Finding("corrupt log", f"the batch at {info.base_offset} has a wrong checksum")
            yield info, data[info.position : info.position + info.size_bytes]

    def check_log(self, end_offset: int, sent: set[bytes]) -> int:
        """Everything promised is there, and nothing that nobody sent; how many batches mutants appended."""
        missing, offset, foreign = dict(self.promised), self._first_offset, 0
        while offset < end_offset:
            began_at = offset
            for info, data in self.batches(offset):
                if info.base_offset in missing:
                    self._compare(info.base_offset, data)
                    del missing[info.base_offset]
                elif not info.is_control:
                    foreign += 1
                    if fingerprint(data) not in sent:
                        raise Finding("record from nowhere", f"nobody sent the batch at {info.base_offset}")
                offset = info.last_offset + 1
            if offset == began_at:
                raise Finding("log ends early", f"nothing is read at {offset}, below the high watermark {end_offset}")
        if missing:
            raise Finding("record lost", f"acknowledged, but not in the log: {sorted(missing)[:20]}")
        return foreign

    # --- requests -----------------------------------------------------------------------------------------------------

    def _ask(self, message: Message) -> None:
        self._correlation_id += 1
        raw = encode_request(request_header(message, VERSION, self._correlation_id, CLIENT_ID), message)
        self._line.send(struct.pack(">i", len(raw)) + raw)

    def _answer(self, api_key: ApiKey) -> Message:
        """Slow is whoever the commit waits for, perhaps: the leader must still answer others, and this in the end."""
        line, patience_s = self._line, time.monotonic() + WAIT_S

        def on_idle() -> None:
            self._target.check_alive()
            if time.monotonic() > patience_s:
                self._target.probe()
                raise Finding("no answer", f"a good request has no answer after {WAIT_S:.0f} s")

        line.wait(lambda: bool(line.answers), on_idle, lambda: None)
        if not line.answers:
            self._target.check_alive()
            raise Finding("hung up", "the leader closed the connection of a client that did nothing wrong")
        correlation_id, response = decode_response(line.answers.pop(0), api_key, VERSION)
        if correlation_id != self._correlation_id:
            raise Finding("wrong answer", f"to request {correlation_id}, when {self._correlation_id} was asked")
        return response
