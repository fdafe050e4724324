"""Clients that do wrong to three live nodes: each gets the error that Kafka would give, and disturbs nobody.

Beside every one of them a writer goes on committing; the same leader leads the same epoch afterwards.
"""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NoAnswer
from fastquorum.types import Endpoint
from fastquorum.wire import API, ApiKey, ErrorCode, Message, encode_request, request_header
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.producers import InitProducerIdRequest
from tests.process.cluster import fixed_ports
from tests.process.processes import WAIT_S

from .faults import ANSWER_S, STEPS, TOPIC, Fault, answer_of, batch, faults, fetch, list_offsets, produce, taken_steps
from .kafka import Kafka
from .mixed import Member
from .nodes import CLUSTER_ID, Nodes, running

CROWD = 1_000
"""Connections at once."""
MEANWHILE = 5
"""Commits to be seen beside each fault."""
UNREAD_BYTES = 256 * 1024 * 1024
"""Asked for by a client that never reads."""


class Writer:
    """Commits one record after the other, on a connection of its own, until it is stopped."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.offsets: list[int] = []
        self._failures: list[str] = []
        self._reported = threading.Condition()
        self._over = False
        self._connection = Connection(endpoint, Deadline(ANSWER_S))
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._over:
            try:
                answer = answer_of(self._connection, produce(batch(b"meanwhile")), 12)
                failure = "" if answer.error_code == 0 else ErrorCode(answer.error_code).name
            except Exception as error:  # told to the test
                failure = repr(error)
            with self._reported:
                if failure:
                    self._failures.append(failure)
                    self._over = True
                else:
                    self.offsets.append(answer.base_offset)
                self._reported.notify_all()

    def wait_commits(self, count: int = MEANWHILE) -> None:
        """Return after so many more."""
        with self._reported:
            wanted = len(self.offsets) + count
            assert self._reported.wait_for(lambda: len(self.offsets) >= wanted or self._over, WAIT_S), (
                "nothing is committed"
            )
        assert not self._failures, self._failures

    def stop(self) -> None:
        self._over = True
        self._thread.join(WAIT_S)
        self._connection.close()
        assert not self._failures, self._failures


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("faults")) as started:
        yield started


@pytest.fixture
def leader(nodes: Nodes) -> Iterator[Endpoint]:
    """Whoever leads, and who goes on leading undisturbed."""
    before = nodes.describe()
    endpoint = nodes.endpoint(before.leader_id)
    writer = Writer(endpoint)
    try:
        writer.wait_commits()
        yield endpoint
        writer.wait_commits()
    finally:
        writer.stop()
    after = nodes.describe()
    assert (after.leader_id, after.epoch) == (before.leader_id, before.epoch)
    assert writer.offsets == sorted(set(writer.offsets))


@pytest.fixture
def client(leader: Endpoint) -> Iterator[Connection]:
    connection = Connection(leader, Deadline(ANSWER_S))
    yield connection
    connection.close()


def is_closed(connection: Connection, frame: bytes) -> bool:
    """Whether that frame is answered by the end of the connection, and by nothing else."""
    connection.send(frame, Deadline(ANSWER_S))
    try:
        connection.receive(Deadline(ANSWER_S))
    except NoAnswer as error:
        return error.is_sealed
    return False


def new_producer(connection: Connection) -> int:
    """Asked for until there is one: a Kafka that has just begun has none yet."""
    deadline = Deadline(WAIT_S)
    while not deadline.is_over:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        answer = connection.request(request, 4, Deadline(ANSWER_S))
        if answer.error_code == 0:  # type: ignore[attr-defined]
            return answer.producer_id  # type: ignore[attr-defined,no-any-return]
    raise AssertionError("no producer id")


# --- one wrong request ------------------------------------------------------------------------------------------------


def test_each_wrong_request_gets_kafkas_error_and_appends_nothing(nodes: Nodes) -> None:
    before = nodes.wait_caught_up()
    connection = Connection(nodes.endpoint(before.leader_id), Deadline(ANSWER_S))
    wrong = faults()
    found = [ErrorCode(answer_of(connection, fault.message, fault.version).error_code) for fault in wrong]
    connection.close()
    assert dict(zip((fault.name for fault in wrong), found, strict=True)) == {
        fault.name: fault.error for fault in wrong
    }
    after = nodes.describe()
    assert (after.leader_id, after.epoch, after.end_offsets) == (before.leader_id, before.epoch, before.end_offsets)


def test_wrong_requests_disturb_nobody(client: Connection) -> None:
    for fault in faults():
        assert answer_of(client, fault.message, fault.version).error_code == fault.error, fault.name


def test_a_producers_mistakes_are_told_apart_and_a_batch_sent_again_has_its_first_offset(nodes: Nodes) -> None:
    before = nodes.wait_caught_up()
    connection = Connection(nodes.endpoint(before.leader_id), Deadline(ANSWER_S))
    assert taken_steps(connection, new_producer(connection)) == list(STEPS)
    connection.close()
    after = nodes.wait_caught_up()
    appended = max(step.offset for step in STEPS if step.offset is not None) + 1
    assert after.partition.high_watermark == before.partition.high_watermark + appended
    assert (after.leader_id, after.epoch) == (before.leader_id, before.epoch)


@pytest.mark.parametrize(("key", "version"), [(999, 0), (ApiKey.PRODUCE, 99), (ApiKey.JOIN_GROUP, 5), (-7, 3)])
def test_an_api_or_a_version_that_is_not_served_closes_the_connection(
    client: Connection, key: int, version: int
) -> None:
    assert is_closed(client, struct.pack(">hhih", key, version, 1, -1) + bytes(20))


def test_a_handshake_of_the_future_is_told_the_versions_there_are(client: Connection) -> None:
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 5, -1)
    client.send(header + bytes(20), Deadline(ANSWER_S))
    known = API[ApiKey.API_VERSIONS].advertised
    expected = struct.pack(">ihihhh", 5, ErrorCode.UNSUPPORTED_VERSION, 1, ApiKey.API_VERSIONS, known.first, known.last)
    assert client.receive(Deadline(ANSWER_S)) == expected
    again = client.request(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4, Deadline(9))
    assert again.error_code == 0  # type: ignore[attr-defined]


def test_a_consumer_at_the_end_is_answered_by_the_next_commit_or_by_nothing(nodes: Nodes) -> None:
    end = nodes.wait_caught_up()
    connection = Connection(nodes.endpoint(end.leader_id), Deadline(ANSWER_S))
    offset = end.partition.high_watermark
    nothing = answer_of(connection, fetch(offset, wait_ms=50), 12)
    assert (nothing.error_code, nothing.records, nothing.high_watermark) == (0, b"", offset)
    connection.send(framed(fetch(offset, wait_ms=60_000), 12), Deadline(ANSWER_S))
    assert nodes.append(b"what it waits for") == offset
    assert b"what it waits for" in connection.receive(Deadline(ANSWER_S))
    connection.close()


# --- connections that misbehave ---------------------------------------------------------------------------------------


def framed(message: Message, version: int) -> bytes:
    return encode_request(request_header(message, version, 1, "a client"), message)


def whole(message: Message, version: int) -> bytes:
    frame = framed(message, version)
    return struct.pack(">i", len(frame)) + frame


METADATA = whole(MetadataRequest(topics=None), 12)


def connect(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), ANSWER_S)


def read_frame(sock: socket.socket) -> bytes:
    with sock.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(size)


@pytest.fixture
def held() -> Iterator[list[socket.socket]]:
    """Closed in the end."""
    sockets: list[socket.socket] = []
    yield sockets
    for sock in sockets:
        sock.close()


def test_a_thousand_connections_are_served_while_most_of_them_idle(leader: Endpoint, held: list[socket.socket]) -> None:
    for _ in range(CROWD):
        held.append(connect(leader))
    for sock in held[::100]:
        sock.sendall(METADATA)
    for sock in held[::100]:
        assert TOPIC.encode() in read_frame(sock)
    for sock in held:  # and all of them at once
        sock.sendall(METADATA)
    for sock in held:
        assert TOPIC.encode() in read_frame(sock)


def test_half_open_clients_and_halves_of_requests_disturb_nobody(leader: Endpoint, held: list[socket.socket]) -> None:
    for number in range(200):
        sock = connect(leader)
        held.append(sock)
        with contextlib.suppress(OSError):
            match number % 5:
                case 0:
                    sock.sendall(METADATA)
                    sock.shutdown(socket.SHUT_WR)  # it can still be answered
                    assert TOPIC.encode() in read_frame(sock)
                case 1:
                    sock.sendall(METADATA[: len(METADATA) // 2])  # the rest never comes
                case 2:
                    sock.sendall(METADATA[:2])
                case 3:
                    sock.sendall(whole(fetch(0, wait_ms=60_000), 12))  # gone while it waits
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.close()
                case _:
                    sock.sendall(whole(produce(batch(b"of one who left")), 12))  # gone before it is answered
                    sock.close()


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_client_that_never_reads_is_not_collected_for_without_end(
    nodes: Nodes, leader: Endpoint, held: list[socket.socket]
) -> None:
    large = batch(b"v" * 1_000_000)
    connection = Connection(leader, Deadline(ANSWER_S))
    offset = answer_of(connection, produce(large), 12).base_offset
    connection.close()
    pid = nodes.pid(nodes.describe().leader_id)
    before = resident_bytes(pid)
    asking = whole(fetch(offset, bytes_max=len(large)), 12)
    for _ in range(4):
        sock = connect(leader)
        held.append(sock)
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # it does not listen to this one any more, or has hung up on it
            for _ in range(UNREAD_BYTES // len(large)):
                sock.send(asking)
    another = Connection(leader, Deadline(ANSWER_S))
    for number in range(20):  # everybody else is served, and what was asked above is dealt with by now
        assert answer_of(another, produce(batch(b"%d" % number)), 12).error_code == 0
        assert answer_of(another, list_offsets(-1), 7).error_code == 0
    another.close()
    assert resident_bytes(pid) - before < UNREAD_BYTES


# --- Kafka itself -----------------------------------------------------------------------------------------------------


@pytest.fixture
def broker(kafka: Kafka, tmp_path: Path) -> Iterator[Endpoint]:
    """One process of Kafka's that is broker and controller, with the topic."""
    port, controller_port = fixed_ports(2)
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\nlog.dirs={tmp_path / 'data'}\n"
        f"auto.create.topics.enable=false\nmessage.max.bytes={8 * 1024 * 1024}\n"
    )
    kafka.storage("format", "-t", CLUSTER_ID, "-c", config, "--standalone")
    java = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", kafka.class_path())
    process = Member(1, port, tmp_path / "data", [*java, "kafka.Kafka", str(config)], config, is_ours=False)
    process.start()
    try:
        create = ("--bootstrap-server", f"127.0.0.1:{port}", "--create", "--topic", TOPIC, "--partitions", "1")
        kafka.run("org.apache.kafka.tools.TopicCommand", *create)
        yield Endpoint("PLAINTEXT", "127.0.0.1", port)
    finally:
        process.kill()


@pytest.mark.interop
@pytest.mark.timeout(900)
def test_kafka_itself_gives_these_errors(broker: Endpoint) -> None:
    connection = Connection(broker, Deadline(ANSWER_S))
    producer_id = new_producer(connection)
    differ: list[tuple[Fault, ErrorCode]] = []
    for fault in faults():
        found = ErrorCode(answer_of(connection, fault.message, fault.version).error_code)
        if found is not fault.error:
            differ.append((fault, found))
    assert not differ
    assert taken_steps(connection, producer_id) == list(STEPS)
    connection.close()
