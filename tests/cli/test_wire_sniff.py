"""`wire sniff` between real clients and real nodes, and between those that misbehave."""

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastquorum.wire import encode_request, request_header
from fastquorum.wire.messages.metadata import MetadataRequest
from tests.cli.conftest import Ran, RunningCommand, free_port, in_process, wait_until
from tests.cli.sniffing import (
    LOCAL,
    FakeServer,
    Sniffer,
    echo_ids,
    framed,
    read_lines,
    receive_all,
    receive_frame,
)

Run = Callable[..., Ran]
Start = Callable[..., RunningCommand]
Sniff = Callable[..., Sniffer]
Serve = Callable[[Callable[[socket.socket], None]], FakeServer]

METADATA = encode_request(request_header(MetadataRequest(), 12, 7, "test"), MetadataRequest(topics=None))
PRODUCE_UNANSWERED = """
import sys, kafka
producer = kafka.KafkaProducer(bootstrap_servers=sys.argv[1], acks=0, enable_idempotence=False)
producer.send("quorum", b"unanswered")
producer.close()
"""  # a process of its own: its import warns
JSON_NAMES = ("request_header", "request_json", "response_header", "response_json")


@pytest.fixture
def sniff() -> Iterator[Sniff]:
    """Starts sniffers; whatever still runs in the end is killed."""
    started: list[Sniffer] = []

    def start(*words: object, **options: Any) -> Sniffer:
        started.append(Sniffer(*words, **options))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[FakeServer] = []

    def start(how: Callable[[socket.socket], None]) -> FakeServer:
        started.append(FakeServer(how))
        return started[-1]

    yield start
    for each in started:
        each.close()


# --- a real node ------------------------------------------------------------------------------------------------------


def test_a_quorum_is_recorded_whole_and_comes_back_from_its_json(
    fastquorum: Run, running: Start, sniff: Sniff, tmp_path: Path
) -> None:
    data, out = tmp_path / "n1", tmp_path / "frames.jsonl"
    real, seen = free_port(), free_port()
    assert fastquorum("format", "--data", data, "--node-id", 1, "--voters", f"1@{LOCAL}:{seen}").code == 0
    running(data, "--listen", f"{LOCAL}:{real}")
    sniffer = sniff("--listen", f"{LOCAL}:{seen}", "--to", f"{LOCAL}:{real}", "--out", out, "--format", "table")
    at = ("--bootstrap", f"{LOCAL}:{seen}")
    assert fastquorum("append", *at, "--value", "hello").out == "offset 1\n"
    subprocess.run([sys.executable, "-c", PRODUCE_UNANSWERED, f"{LOCAL}:{seen}"], check=True, timeout=60)
    wait_until(lambda: fastquorum("read", *at).out == "1\thello\n2\tunanswered\n")
    assert fastquorum("quorum", "describe", *at, "--status").code == 0
    ended = sniffer.end()
    assert ended.code == 130
    assert ended.err.endswith(" connections\n")

    lines = read_lines(out)
    assert {"Metadata", "Produce", "Fetch", "DescribeQuorum", "ApiVersions"} <= {line["api"] for line in lines}
    for line in lines:
        assert line["server"] == f"{LOCAL}:{real}"
        assert line["client"].startswith(f"{LOCAL}:")
        assert line["timestamp"].endswith("Z")
        assert "request_json" in line
        assert ("response_json" in line) is (line["latency_us"] is not None)
    acks0 = next(line for line in lines if line["api"] == "Produce" and line["request_json"]["acks"] == 0)
    assert acks0["unanswered"] == "acks=0: it is not answered"
    assert len({line["connection"] for line in lines}) > 3
    table = ended.out.splitlines()
    assert table[0].split() == ["TIME", "CONN", "CLIENT", "API", "LATENCY_MS", "SAID"]
    assert len(table) == 1 + len(lines)
    assert any(" DescribeQuorum v2 " in row for row in table)

    decoded = in_process("wire", "decode", stdin=out.read_text())
    assert (decoded.code, decoded.err) == (0, "")
    assert [json.loads(line) for line in decoded.out.splitlines()] == lines
    alone = [{name: line[name] for name in JSON_NAMES if name in line} for line in lines]
    encoded = in_process("wire", "encode", stdin="".join(json.dumps(line) + "\n" for line in alone))
    assert encoded.code == 0
    for text, line in zip(encoded.out.splitlines(), lines, strict=True):
        made = json.loads(text)
        assert (made["request"], made.get("response")) == (line["request"], line.get("response"))


def test_what_a_node_refuses_is_recorded_with_the_reason(
    fastquorum: Run, running: Start, sniff: Sniff, data: Path
) -> None:
    node = running(data)
    port = int(node.line.split(f"{LOCAL}:")[1].split(",")[0])
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", f"{LOCAL}:{port}", "--format", "json")
    with sniffer.connect() as newer:
        newer.sendall(framed(struct.pack(">hhihB", 18, 99, 5, -1, 0) + b"\x01\x01\x00"))
        assert receive_frame(newer)[:6] == struct.pack(">ih", 5, 35)
    with sniffer.connect() as stranger:
        stranger.sendall(framed(struct.pack(">hhih", 999, 0, 6, -1)))
        assert receive_all(stranger) == b""
    ended = sniffer.end(signal.SIGTERM)
    assert ended.code == 0
    exchange, unknown = (json.loads(line) for line in ended.out.splitlines())
    assert (exchange["api"], exchange["api_version"], exchange["response_version"]) == ("ApiVersions", 99, 0)
    assert "only versions" in exchange["request_error"]
    assert exchange["response_json"]["errorCode"] == 35
    assert (unknown["api"], unknown["request"][:4]) == ("API 999", "03e7")
    assert "this node does not support the API with key 999" in unknown["request_error"]
    assert unknown["unanswered"] == "the server closed the connection"
    decoded = in_process("wire", "decode", stdin=ended.out)
    assert (decoded.code, len(decoded.err.splitlines())) == (2, 2)


# --- every byte -------------------------------------------------------------------------------------------------------


def test_no_byte_is_changed_and_a_closed_half_stays_half_open(sniff: Sniff, serve: Serve, tmp_path: Path) -> None:
    chance = random.Random(5)
    sent = b"".join(framed(chance.randbytes(chance.choice((0, 1, 7, 8, 100, 70_000)))) for _ in range(200))
    sent += chance.randbytes(3)  # ends inside a length

    def digest(connection: socket.socket) -> None:
        received = receive_all(connection)  # until the client closes its half
        connection.sendall(hashlib.sha256(received).digest() + received)

    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(digest).address, "--out", tmp_path / "out")
    with sniffer.connect() as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert receive_all(client) == hashlib.sha256(sent).digest() + sent
    wait_until(lambda: sent[-3:].hex() in (tmp_path / "out").read_text())
    assert sniffer.end().code == 130
    recorded = [line["request"] for line in read_lines(tmp_path / "out") if "request" in line]
    assert b"".join(framed(bytes.fromhex(request)) for request in recorded) == sent[:-3]


def test_a_frame_that_is_cut_is_recorded_as_far_as_it_came(sniff: Sniff, serve: Serve) -> None:
    got: list[bytes] = []

    def answer_half(connection: socket.socket) -> None:
        got.append(receive_frame(connection))
        connection.sendall(framed(struct.pack(">i", 7) + bytes(60))[:20])
        got.append(connection.recv(100))

    server = serve(answer_half)
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", server.address)
    with sniffer.connect() as client:
        client.sendall(framed(METADATA) + framed(METADATA)[:11])
        assert len(receive_all(client)) == 20
    assert sniffer.process.stdout is not None
    answered, cut = (json.loads(sniffer.process.stdout.readline()) for _ in range(2))
    assert got == [METADATA, framed(METADATA)[:11]]
    assert answered["request"] == METADATA.hex()
    assert answered["response_part"] == (struct.pack(">i", 7) + bytes(12)).hex()
    assert answered["response_error"] == "a frame of 64 bytes: the connection ended inside it"
    assert answered["latency_us"] is None
    assert cut["request_part"] == METADATA[:7].hex()
    assert cut["request_error"] == f"a frame of {len(METADATA)} bytes: the connection ended inside it"


def test_a_long_frame_goes_through_and_only_its_beginning_is_kept(sniff: Sniff, serve: Serve) -> None:
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address, "--frame-bytes-max", 1000)
    with sniffer.connect() as client:
        client.sendall(framed(METADATA[:8] + bytes(5_000_000)) + framed(METADATA))
        assert receive_frame(client) == receive_frame(client) == METADATA[4:8] + b"answer"
    assert sniffer.process.stdout is not None
    long, short = (json.loads(sniffer.process.stdout.readline()) for _ in range(2))
    assert long["request_part"] == (METADATA[:8] + bytes(56)).hex()
    assert long["request_error"] == "a frame of 5000008 bytes: the first of them are recorded"
    assert long["response"] == short["response"] == (METADATA[4:8] + b"answer").hex()
    assert short["request_json"]["topics"] is None


@pytest.mark.parametrize(
    ("greeting", "what"),
    [(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "TLS"), (b"GET / HTTP/1.1\r\n\r\n", "another protocol")],
)
def test_another_protocol_goes_through_and_is_named(sniff: Sniff, serve: Serve, greeting: bytes, what: str) -> None:
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(lambda each: each.sendall(receive_all(each))).address)
    with sniffer.connect() as client:
        client.sendall(greeting)
        client.shutdown(socket.SHUT_WR)
        assert receive_all(client) == greeting
    assert f"this is {what}: " in json.loads(sniffer.end().out)["error"]


# --- those that misbehave ---------------------------------------------------------------------------------------------


def test_a_client_that_never_reads_is_not_read_for_and_holds_nobody_up(sniff: Sniff, serve: Serve) -> None:
    blocked = threading.Event()
    taken: list[int] = []

    def flood(connection: socket.socket) -> None:
        if receive_frame(connection) != METADATA:
            connection.sendall(framed(b"alive"))
            return
        connection.settimeout(1)
        taken.append(0)
        connection.sendall(struct.pack(">ii", 200 << 20, 7))
        try:
            while taken[0] < 200 << 20:
                taken[0] += connection.send(bytes(1 << 16))
        except TimeoutError:
            blocked.set()
            connection.settimeout(20)
            with contextlib.suppress(ConnectionResetError):
                connection.recv(1)  # until the client is gone

    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(flood).address)
    with sniffer.connect() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        deaf.sendall(framed(METADATA))
        assert blocked.wait(60)
        assert taken[0] < 64 << 20  # what the kernel holds for three sockets, and little more
        with sniffer.connect() as other:
            other.sendall(framed(b"hello"))
            assert receive_frame(other) == b"alive"
    assert sniffer.end().code == 130


def test_a_server_that_dies_is_the_clients_business(sniff: Sniff, serve: Serve) -> None:
    reset = struct.pack("ii", 1, 0)

    def die(connection: socket.socket) -> None:
        receive_frame(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)

    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(die).address)
    with sniffer.connect() as client:
        client.sendall(framed(METADATA))
        with pytest.raises(ConnectionResetError):
            receive_all(client)
    assert sniffer.process.stdout is not None
    line = json.loads(sniffer.process.stdout.readline())
    assert (line["request"], line["unanswered"]) == (METADATA.hex(), "the connection was reset")
    assert sniffer.end().code == 130


def test_a_target_that_is_not_there_is_said_once(sniff: Sniff, serve: Serve) -> None:
    port = free_port()
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", f"{LOCAL}:{port}")
    for _ in range(3):
        with sniffer.connect() as client:
            assert receive_all(client) == b""
    ended = sniffer.end()
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == (
        f"fastquorum wire sniff: {LOCAL}:{port} cannot be reached: Connection refused; "
        "clients are disconnected until then\n"
    )


def test_hundreds_of_connections_each_have_their_lines(sniff: Sniff, serve: Serve, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address, "--out", out)
    clients = [sniffer.connect() for _ in range(300)]
    for turn in range(2):
        for number, client in enumerate(clients):
            client.sendall(framed(struct.pack(">hhih", 3, 12, 1000 * turn + number, -1)))
        for number, client in enumerate(clients):
            assert receive_frame(client) == struct.pack(">i", 1000 * turn + number) + b"answer"
    for client in clients:
        client.close()
    assert sniffer.end().code == 130
    lines = read_lines(out)
    assert len(lines) == 600
    assert len({line["connection"] for line in lines}) == 300
    assert all(line["response"][:8] == line["request"][8:16] for line in lines)


def test_an_interrupt_writes_what_is_not_answered_yet(sniff: Sniff, serve: Serve) -> None:
    arrived = threading.Event()

    def swallow(connection: socket.socket) -> None:
        receive_frame(connection)
        arrived.set()
        connection.recv(1)

    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(swallow).address)
    with sniffer.connect() as client:
        client.sendall(framed(METADATA))
        assert arrived.wait(20)
        ended = sniffer.end()
    assert ended.code == 130
    assert ended.err == ""
    line = json.loads(ended.out)
    assert (line["request"], line["unanswered"]) == (METADATA.hex(), "the sniffer was stopped")


def test_several_nodes_are_told_apart(sniff: Sniff, serve: Serve) -> None:
    first, second = serve(echo_ids), serve(echo_ids)
    sniffer = sniff("--map", f":0={first.address}", "--map", f":0=:{second.port}", "--format", "table", targets=2)
    for port in sniffer.ports:
        with socket.create_connection((LOCAL, port), 20) as client:
            client.sendall(framed(METADATA))
            assert receive_frame(client)
    rows = sniffer.end().out.splitlines()
    assert rows[0].split()[3] == "SERVER"
    assert [row.split()[3] for row in rows[1:]] == [first.address, second.address]


def test_a_reader_of_the_recording_that_goes_away_ends_it(sniff: Sniff, serve: Serve) -> None:
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address)
    assert sniffer.process.stdout is not None
    sniffer.process.stdout.close()
    with sniffer.connect() as client:
        client.sendall(framed(METADATA))
        receive_all(client)
    assert sniffer.process.wait(20) == 141


def test_a_disk_that_is_full_ends_it_with_the_reason(sniff: Sniff, serve: Serve) -> None:
    sniffer = sniff("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address, "--out", "/dev/full")
    with sniffer.connect() as client:
        client.sendall(framed(METADATA))
        receive_all(client)
    ended = sniffer.ended()
    assert ended.code == 1
    full = "fastquorum wire sniff: /dev/full: No space left on device; make room on its file system"
    assert ended.err.splitlines() == [full]


def test_output_that_cannot_be_printed_ends_it_too(serve: Serve) -> None:
    with Path("/dev/full").open("w") as full:
        sniffer = Sniffer("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address, stdout=full)
        try:
            with sniffer.connect() as client:
                client.sendall(framed(METADATA))
                receive_all(client)
            ended = sniffer.ended()
        finally:
            sniffer.kill()
    assert ended.code == 1
    assert (
        ended.err.splitlines()[0]
        == "fastquorum wire sniff: stdout: No space left on device; make room on its file system"
    )


def test_a_recording_is_private_and_not_lost_to_the_next_one(sniff: Sniff, serve: Serve, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--listen", f"{LOCAL}:0", "--to", serve(echo_ids).address, "--out", str(out))
    sniffer = sniff(*words)
    assert os.stat(out).st_mode & 0o777 == 0o600
    out.write_text("kept")
    assert sniffer.end().code == 130
    refused = in_process("wire", "sniff", *words)
    assert refused.code == 2
    assert "exists already; choose another name, or give --overwrite" in refused.err
    assert out.read_text() == "kept"
    assert sniff(*words, "--overwrite").end().code == 130
    assert out.read_text() == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "give --listen HOST:PORT and --to HOST:PORT"),
        (("--listen", "h:1"), "--listen and --to belong together"),
        (("--listen", "h", "--to", "h:1"), "--listen: 'h' is not HOST:PORT"),
        (("--listen", "h:0", "--to", "h:0"), "--to: 'h:0' is not HOST:PORT"),
        (("--map", "h:1"), "--map: 'h:1' is not LISTEN=TARGET"),
        (("--map", "h:1=h"), "--map: 'h' is not HOST:PORT"),
        (("--listen", "192.0.2.1:1", "--to", "h:1"), "cannot listen on 192.0.2.1:1"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    ran = in_process("wire", "sniff", *words, "--out", tmp_path / "out")
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    ran = in_process("wire", "sniff", "--map", ":0=h:1", "--out", tmp_path / "no" / "where")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"fastquorum wire sniff: {tmp_path / 'no' / 'where'} cannot be written: No such file or directory; give "
        "another --out\n"
    )


def test_a_taken_port_is_said(serve: Serve) -> None:
    address = serve(echo_ids).address
    ran = in_process("wire", "sniff", "--listen", address, "--to", address)
    assert ran.code == 2
    assert f"cannot listen on {address}: " in ran.err
