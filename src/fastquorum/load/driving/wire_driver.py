"""Drives a quorum through its client APIs with our own wire client: Produce requests, pipelined over one connection
to the leader. See `generating.Driver`.

An append is a request of its own as long as few are unanswered; those that wait for their turn go together in one, as
Kafka's clients have it. A connection that ends leaves the fate of what was in flight unknown: it is counted so and not
sent again. Until the next leader is found, arrivals wait here; their latency goes on.
"""

import contextlib
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from fastquorum.client.connection import Deadline, NotSent, connect
from fastquorum.errors import NotReady, PeerProtocolError, UsageError
from fastquorum.kernels import Kernels, Record
from fastquorum.load.driving.leader_search import CLIENT_ID, LoadTarget, find_leader
from fastquorum.load.driving.payloads import Payload
from fastquorum.load.driving.tally import LoadTally
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode, decode_response, encode_request, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse

PRODUCE_VERSION: Final = 12
_LENGTH: Final = struct.Struct(">i")
REQUESTS_MAX: Final = 16
"""Unanswered on the connection."""
REQUEST_BYTES: Final = 1 << 20
"""About as much goes together."""
CONNECT_S: Final = 2.0
_RECEIVE_BYTES: Final = 1 << 18
_LOOK_AGAIN_NS: Final = 20_000_000
_GRACE_NS: Final = 1_000_000_000
"""The leader itself answers what it cannot commit in time; so much later no response comes any more."""
_KINDS: Final = {
    ErrorCode.NOT_ENOUGH_REPLICAS: "overloaded",
    ErrorCode.REQUEST_TIMED_OUT: "outcome_unknown",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "outcome_unknown",
    ErrorCode.KAFKA_STORAGE_ERROR: "outcome_unknown",
}
"""What a refused Produce is counted as; the others by the code's own name. A leader that is none any more may have
had the batch in its log already.
"""
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

OnLeader = Callable[[LoadTarget], None]


class WireDriver:
    """Finds the leader when it is made. NotReady: not within the timeout."""

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        topic: str,
        kernels: Kernels,
        tally: LoadTally,
        timeout_ns: int,
        on_leader: OnLeader,
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._kernels = kernels
        self._tally = tally
        self._timeout_ns = timeout_ns
        self._on_leader = on_leader
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._out = bytearray()
        self._correlation_id = 0
        self._waiting: dict[int, list[int]] = {}
        """The intended times of each request's appends, by correlation id, oldest first."""
        self._waiting_appends = 0
        self._unsent: deque[tuple[Payload, int]] = deque()
        """Arrivals whose turn has not come."""
        self._look_at_ns = 0
        self._epoch = -1
        found = find_leader(bootstrap, topic, timeout_ns / 1e9)
        with contextlib.suppress(OSError):  # it is looked for again
            self._connect(found)

    @property
    def in_flight(self) -> int:
        return self._waiting_appends + len(self._unsent)

    def retarget(self, tally: LoadTally) -> None:
        """Tell this tally from now on. Nothing may be in flight."""
        assert not self.in_flight
        self._tally = tally

    def offer(self, appends: list[Payload], intended_ns: int) -> None:
        self._unsent.extend((each, intended_ns) for each in appends)
        self._tally.sent += len(appends)
        if self._socket is None:
            self._look_for_leader()
        if self._socket is not None:
            self._exchange(0.0)

    def collect(self, until_ns: int) -> None:
        now = time.monotonic_ns()
        self._give_up(now)
        if self._socket is None:
            self._look_for_leader()
            if self._socket is None:
                time.sleep(max(min(until_ns, self._look_at_ns) - time.monotonic_ns(), 0) / 1e9)
                return
        self._exchange(max(until_ns - now, 0) / 1e9)

    def abandon(self, kind: str) -> None:
        if self.in_flight:
            self._tally.errors[kind] += self.in_flight
            self._waiting_appends = 0
            self._unsent.clear()
            self._disconnect()  # or answers would come for what is given up

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # --- sending and receiving ----------------------------------------------------------------------------------------

    def _put(self) -> None:
        """Requests for what waits, as many as may be unanswered."""
        unsent, waiting = self._unsent, self._waiting
        while unsent and len(waiting) < REQUESTS_MAX:
            group: list[Payload] = []
            intended: list[int] = []
            size = 0
            # Few wait: one by one. Many: together.
            share = max(len(unsent) // (REQUESTS_MAX - len(waiting)), 1)
            while unsent and len(group) < share and size < REQUEST_BYTES:
                each, intended_ns = unsent.popleft()
                group.append(each)
                intended.append(intended_ns)
                size += sum(map(len, each.values))
            self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
            frame = self._encode(group)
            self._out += _LENGTH.pack(len(frame)) + frame
            waiting[self._correlation_id] = intended
            self._waiting_appends += len(intended)

    def _encode(self, group: list[Payload]) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        if group[0].keys:
            pairs = [pair for each in group for pair in zip(each.bare_values, each.keys, strict=True)]
            records = [Record(value, key) for value, key in pairs]
            batch = self._kernels.encode_records(records, base_offset=0, leader_epoch=0, timestamp_ms=now_ms)
        else:
            values = [value for each in group for value in each.values]
            batch = self._kernels.encode_values(values, base_offset=0, leader_epoch=0, timestamp_ms=now_ms)
        data = ProduceRequest.TopicProduceData
        body = ProduceRequest(
            acks=-1,
            timeout_ms=self._timeout_ns // 1_000_000,
            topic_data=[data(name=self._topic, partition_data=[data.PartitionProduceData(index=0, records=batch)])],
        )
        return encode_request(request_header(body, PRODUCE_VERSION, self._correlation_id, CLIENT_ID), body)

    def _exchange(self, wait_s: float) -> None:
        """Send what can be sent, receive what is there; wait for the first of it."""
        connection = self._socket
        assert connection is not None
        try:
            self._put()
            if self._out:
                self._flush(connection)
            # Not poll, which counts in milliseconds.
            readable, writable, _ = select.select([connection], [connection] if self._out else [], [], wait_s)
            if writable:
                self._flush(connection)
            if readable:
                self._receive(connection)
                if self._socket is connection:  # else it no longer leads, and unsent appends wait for the new leader
                    self._put()
                    self._flush(connection)
        except OSError:
            self._disconnect()

    def _flush(self, connection: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._out:
                with memoryview(self._out) as view:
                    sent = connection.send(view)
                del self._out[:sent]

    def _receive(self, connection: socket.socket) -> None:
        part = connection.recv(_RECEIVE_BYTES)
        if not part:
            raise ConnectionResetError("the leader closed the connection")
        received = self._received
        received += part
        now, position = time.monotonic_ns(), 0
        while len(received) - position >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(received, position)
            end = position + _LENGTH.size + length
            if end > len(received):
                break
            self._answered(bytes(received[position + _LENGTH.size : end]), now)
            position = end
            if self._socket is None:
                return
        del received[:position]

    def _answered(self, frame: bytes, now_ns: int) -> None:
        number, response = decode_response(frame, ProduceRequest.__wire__.api_key, PRODUCE_VERSION)
        assert isinstance(response, ProduceResponse)
        intended = self._waiting.pop(number, None)
        if intended is None:
            raise PeerProtocolError(f"there is no request {number} to answer")
        self._waiting_appends -= len(intended)
        code = response.responses[0].partition_responses[0].error_code
        if code == ErrorCode.NONE:
            self._tally.latencies += [now_ns - each for each in intended]
            return
        self._tally.errors[_KINDS.get(ErrorCode(code), ErrorCode(code).name.lower())] += len(intended)
        if code in _MOVED:
            self._disconnect()

    # --- leaders, and the lack of one ---------------------------------------------------------------------------------

    def _connect(self, found: LoadTarget) -> None:
        connection = connect(found.endpoint, Deadline(CONNECT_S))
        connection.setblocking(False)
        self._socket = connection
        if found.epoch != self._epoch:
            self._epoch = found.epoch
            self._on_leader(found)

    def _disconnect(self) -> None:
        """What was sent has no known fate; what was not waits for the next leader."""
        self.close()
        self._tally.errors["outcome_unknown"] += self._waiting_appends
        self._waiting_appends = 0
        self._waiting.clear()
        self._out.clear()
        self._received.clear()
        self._look_at_ns = 0

    def _look_for_leader(self) -> None:
        now = time.monotonic_ns()
        if now < self._look_at_ns:
            return
        self._look_at_ns = now + _LOOK_AGAIN_NS
        with contextlib.suppress(
            NotReady, NotSent, OSError, UsageError
        ):  # a node that has just started may know no topic yet
            self._connect(find_leader(self._bootstrap, self._topic, 0.0))

    def _give_up(self, now_ns: int) -> None:
        """What has waited for too long, oldest first."""
        horizon_ns = now_ns - self._timeout_ns - _GRACE_NS
        while self._unsent and self._unsent[0][1] < horizon_ns:
            self._unsent.popleft()
            self._tally.errors["timeout"] += 1
        if self._waiting and next(iter(self._waiting.values()))[0] < horizon_ns:
            # Without a response for one there is none for those behind it: responses come in order.
            self._disconnect()
