"""Clients that append through the client APIs as fast as they are answered, and write it all down."""

import itertools
import threading
import time
from collections.abc import Callable

from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.errors import PeerProtocolError
from fastquorum.kernels import Kernels, load
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.process.history import Append, History

TOPIC = "quorum"
PRODUCE_VERSION = 12
FETCH_VERSION = 12
ANSWER_S = 10.0
"""How long a client waits for an answer; a produce is told to give up much sooner."""
GIVE_UP_S = 2.0
"""How long a writer waits before it turns to another node: a stopped one takes requests and answers nothing."""
PAUSE_S = 0.02
"""Between two tries when nobody can be reached: pacing."""
_REFUSALS = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors before anything was appended. NOT_LEADER_OR_FOLLOWER is not among them: it also stands for what was in the log
when leadership was lost."""
Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


def produce_request(batch: bytes, *, timeout_ms: int = 1_000, acks: int = -1) -> ProduceRequest:
    topic = ProduceRequest.TopicProduceData
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[topic(name=TOPIC, partition_data=[topic.PartitionProduceData(index=0, records=batch)])],
    )


def produce(
    connection: Connection, batch: bytes, *, timeout_ms: int = 1_000, answer_s: float = ANSWER_S
) -> tuple[Answer, ProduceResponse]:
    response = connection.request(produce_request(batch, timeout_ms=timeout_ms), PRODUCE_VERSION, Deadline(answer_s))
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0], response


def batch_of(kernels: Kernels, values: list[bytes]) -> bytes:
    return kernels.encode_values(values, base_offset=0, leader_epoch=0, timestamp_ms=int(time.time() * 1000))


def fetch_committed(kernels: Kernels, endpoint: Endpoint, from_offset: int) -> list[tuple[int, bytes]]:
    """All committed records from an offset on, read from the leader as a Kafka consumer reads them."""
    connection = Connection(endpoint, Deadline(ANSWER_S))
    topic = FetchRequest.FetchTopic
    found: list[tuple[int, bytes]] = []
    position = from_offset
    try:
        while True:
            wanted = topic.FetchPartition(partition=0, fetch_offset=position, partition_max_bytes=1 << 20)
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                session_epoch=-1,
                topics=[topic(topic=TOPIC, partitions=[wanted])],
            )
            response = connection.request(request, FETCH_VERSION, Deadline(ANSWER_S))
            assert isinstance(response, FetchResponse)
            answer = response.responses[0].partitions[0]
            assert answer.error_code == 0, ErrorCode(answer.error_code)
            data = bytes(answer.records or b"")
            if not data:
                assert position == answer.high_watermark
                return found
            for info in kernels.batch_headers(data, verify_crc=True):
                position = info.last_offset + 1
                if info.is_control:
                    continue
                batch = data[info.position : info.position + info.size_bytes]
                found += [
                    (record.offset, record.value or b"")
                    for record in kernels.decode_records(batch)
                    if record.offset >= from_offset
                ]
    finally:
        connection.close()


class Load:
    """Writers in threads. `with Load(...) as load:`; `pause` and `resume` in between."""

    def __init__(
        self,
        endpoints: dict[int, Endpoint],
        history: History,
        *,
        writers: int = 2,
        value_bytes: int = 64,
        timeout_ms: int = 1_000,
        pace_s: float = 0,
        enter: Callable[[], None] = lambda: None,
    ) -> None:
        """`pace_s`: what each writer waits between appends, where a long run should not make a huge log. `enter`: what
        each writer's thread does first."""
        self.history = history
        self._endpoints = endpoints
        self._kernels = load("native")
        self._value_bytes = value_bytes
        self._timeout_ms = timeout_ms
        self._pace_s = pace_s
        self._enter = enter
        self._running = threading.Event()
        self._over = threading.Event()
        self._state = threading.Condition()
        self._busy = 0
        self._numbers = itertools.count()
        self.failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._write, args=(number,), name=f"writer-{number}", daemon=True)
            for number in range(writers)
        ]

    def __enter__(self) -> "Load":
        self._running.set()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._running.set()
        for thread in self._threads:
            thread.join(2 * ANSWER_S)
        assert not self.failures, self.failures

    def pause(self) -> None:
        """Return when nothing is under way any more."""
        self._running.clear()
        with self._state:
            assert self._state.wait_for(lambda: self._busy == 0, 3 * ANSWER_S)

    def resume(self) -> None:
        self._running.set()

    def _write(self, writer: int) -> None:
        try:
            self._enter()
            self._write_on(writer)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _write_on(self, writer: int) -> None:
        connection: Connection | None = None
        targets = itertools.cycle(self._endpoints.values())
        target = next(targets)
        while True:
            self._running.wait()
            with self._state:
                self._busy += 1
            try:
                if self._over.is_set():
                    if connection is not None:
                        connection.close()
                    return
                try:
                    connection = connection or Connection(target, Deadline(ANSWER_S))
                except NotSent:
                    target = next(targets)
                    self._over.wait(PAUSE_S)
                    continue
                hint = self._append(writer, connection)
                if hint is None:
                    if self._pace_s:
                        self._over.wait(self._pace_s)
                    continue
                connection.close()
                connection = None
                target = self._endpoints.get(hint) or next(targets)
                if hint < 0:
                    self._over.wait(PAUSE_S)
            finally:
                with self._state:
                    self._busy -= 1
                    self._state.notify_all()

    def _append(self, writer: int, connection: Connection) -> int | None:
        """One append of one value or three. None: go on here; else who to ask next, -1 anybody."""
        count = next(self._numbers)
        appends = [
            self.history.begin(b"%d/%d/%d " % (writer, count, part) + b"." * self._value_bytes)
            for part in range(3 if count % 5 == 0 else 1)
        ]
        batch = batch_of(self._kernels, [each.value for each in appends])
        try:
            answer, _ = produce(connection, batch, timeout_ms=self._timeout_ms, answer_s=GIVE_UP_S)
        except NotSent as error:
            self._settle(appends, "refused", str(error))
            return -1
        except (NoAnswer, PeerProtocolError) as error:
            self._settle(appends, "unknown", str(error))
            return -1
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            for part, each in enumerate(appends):
                self.history.settle(each, "acked", offset=answer.base_offset + part)
            return None
        fate = "refused" if code in _REFUSALS else "unknown"
        self._settle(appends, fate, f"{code.name} {answer.error_message or ''}")
        return answer.current_leader.leader_id

    def _settle(self, appends: list[Append], fate: str, reason: str) -> None:
        for each in appends:
            self.history.settle(each, "refused" if fate == "refused" else "unknown", reason=reason)
