"""/healthz and /readyz through a node's life, and the server that a bad client cannot hold up."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.errors import ConfigError, DirectoryError, FatalError
from fastquorum.node.io.sockets.accepting import ACCEPTS_MAX
from fastquorum.node.io.sockets.listening import listen
from fastquorum.observe import serving
from fastquorum.observe.serving import MetricsServer
from fastquorum.types import Endpoint
from tests.api.nodes import QUICK, WAIT_S, stalled, trio
from tests.cli.conftest import files_of, free_port, wait_until
from tests.observe.builders import Response, get, scrape

SERVED = "127.0.0.1:0"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[sync.Quorum]:
    """A quorum of one that serves its metrics, and leads."""
    with sync.open(tmp_path / "n1", node_id=1, metrics=SERVED, **QUICK) as quorum:
        quorum.wait_ready(WAIT_S)
        yield quorum


def refuses(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    with socket.socket() as sock:
        return sock.connect_ex((host, int(port))) != 0


# --- a node's life ----------------------------------------------------------------------------------------------------


def test_a_node_that_reads_its_log_is_alive_and_not_ready() -> None:
    listening = listen(Endpoint("", "127.0.0.1", 0))
    endpoint = f"127.0.0.1:{listening.getsockname()[1]}"
    server = MetricsServer(listening)
    server.start()
    try:
        assert get(endpoint, "/healthz") == get(endpoint, "/healthz")
        assert get(endpoint, "/healthz").status == 200
        ready = get(endpoint, "/readyz")
        assert (ready.status, ready.body) == (503, "the node is starting: it reads its log\n")
        assert "fastquorum_up 0" in get(endpoint, "/metrics").body
    finally:
        server.close()
    assert refuses(endpoint)


def test_a_leader_is_alive_and_ready_until_it_is_closed(one: sync.Quorum) -> None:
    endpoint = str(one.metrics_endpoint)
    assert get(endpoint, "/healthz").status == 200
    ready = get(endpoint, "/readyz")
    assert (ready.status, ready.body) == (200, f"node 1 leads epoch {one.epoch}\n")
    one.close()
    assert refuses(endpoint)


def test_without_a_leader_nodes_are_alive_and_not_ready(tmp_path: Path) -> None:
    with trio(tmp_path, metrics=SERVED) as nodes:
        left = nodes.followers[0]
        for node_id in [each for each in nodes.nodes if each != left.node_id]:
            nodes.crash(node_id)
        wait_until(lambda: get(left.metrics_endpoint, "/readyz").status == 503, WAIT_S)
        assert get(left.metrics_endpoint, "/healthz").status == 200
        assert scrape(left.metrics_endpoint).value("fastquorum_ready") == 0
        missing = [each for each in (1, 2, 3) if each != left.node_id]
        nodes.open(*missing)
        wait_until(lambda: get(left.metrics_endpoint, "/readyz").status == 200, WAIT_S)


def test_a_replica_that_has_stopped_says_why_until_it_is_closed(one: sync.Quorum) -> None:
    endpoint = str(one.metrics_endpoint)
    one._node._reactor.post(lambda replica, now: replica.halt(FatalError("the moon fell down"), now))
    wait_until(lambda: one._node.is_over)
    for path in ("/healthz", "/readyz"):
        found = get(endpoint, path)
        assert (found.status, found.body) == (503, "the replica has stopped: the moon fell down\n")
    assert get(endpoint, "/metrics").body.endswith("fastquorum_up 0.0\n")
    one.close()
    assert refuses(endpoint)


def test_a_failed_disk_is_no_life(one: sync.Quorum) -> None:
    one._node._shell._shell.latch()  # type: ignore[attr-defined]
    assert get(one.metrics_endpoint, "/healthz").body == "the disk has failed: the replica stops\n"
    assert get(one.metrics_endpoint, "/readyz").status == 503


def test_a_disk_that_does_not_answer_makes_a_node_not_ready_but_alive(tmp_path: Path) -> None:
    with sync.open(tmp_path, node_id=1, metrics=SERVED, **{**QUICK, "disk_stall_us_max": 300_000}) as one:
        one.wait_ready(WAIT_S)
        with stalled(one):
            one.append_nowait(b"x")
            wait_until(lambda: get(one.metrics_endpoint, "/readyz").status == 503, WAIT_S)
            assert get(one.metrics_endpoint, "/healthz").status == 200
            assert scrape(one.metrics_endpoint).value("fastquorum_sync_under_way_seconds") > 0
        wait_until(lambda: get(one.metrics_endpoint, "/readyz").status == 200, WAIT_S)


def test_a_thread_that_does_not_come_back_is_no_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "ANSWER_S", 0.05)
    with sync.open(tmp_path, node_id=1, metrics=SERVED, **{**QUICK, "disk_stall_us_max": 300_000}) as one:
        one.wait_ready(WAIT_S)
        with one._node._lock:
            assert get(one.metrics_endpoint, "/readyz").body.startswith("the replica's thread does not answer")
            assert get(one.metrics_endpoint, "/metrics").body.endswith("fastquorum_up 0.0\n")
            wait_until(lambda: get(one.metrics_endpoint, "/healthz").status == 503)
            assert "has not answered for" in get(one.metrics_endpoint, "/healthz").body
        wait_until(lambda: get(one.metrics_endpoint, "/healthz").status == 200)
        assert scrape(one.metrics_endpoint).value("fastquorum_up") == 1


# --- the port ---------------------------------------------------------------------------------------------------------


def test_a_taken_port_is_said_before_anything_is_touched(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ConfigError) as refused:
            sync.open(tmp_path / "n1", node_id=1, metrics=f"127.0.0.1:{port}")
    assert str(refused.value).startswith(f"metrics.listener: 127.0.0.1:{port} is taken; stop what uses it")
    assert not (tmp_path / "n1").exists()


def test_a_node_that_cannot_start_gives_the_port_back(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    before = files_of(tmp_path)
    port = free_port()
    with pytest.raises(DirectoryError):
        sync.open(tmp_path, node_id=1, metrics=f"127.0.0.1:{port}")
    assert refuses(f"127.0.0.1:{port}")
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("text", ["nonsense", "host:port", "h:70000"])
def test_an_address_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sync.open(tmp_path / "n1", node_id=1, metrics=text)
    assert "expected HOST:PORT" in str(refused.value)


# --- clients ----------------------------------------------------------------------------------------------------------


def connected(endpoint: str) -> socket.socket:
    host, _, port = endpoint.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def received(sock: socket.socket) -> bytes:
    """All that comes until the server closes."""
    return b"".join(iter(lambda: sock.recv(65536), b""))


def exchange(endpoint: str, request: bytes) -> bytes:
    """All that comes back until the server closes."""
    with connected(endpoint) as sock:
        sock.sendall(request)
        return received(sock)


def test_other_paths_and_methods_are_answered_as_http_asks(one: sync.Quorum) -> None:
    endpoint = str(one.metrics_endpoint)
    assert get(endpoint, "/nothing").status == 404
    assert "/readyz" in get(endpoint, "/").body
    assert get(endpoint, "/metrics?format=x").status == 200
    posted = get(endpoint, "/metrics", "POST")
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD")
    head = get(endpoint, "/healthz", "HEAD")
    assert (head.status, head.body) == (200, "")
    assert head.headers["Content-Length"] == str(len(get(endpoint, "/healthz").body))
    assert exchange(endpoint, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert exchange(endpoint, b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_goes_on_after_it_was_refused_is_not_reset(one: sync.Quorum) -> None:
    with connected(str(one.metrics_endpoint)) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000)
        assert received(sock).startswith(b"HTTP/1.1 431 ")
        for _ in range(3):
            sock.sendall(b"y" * 100_000)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def test_clients_that_hang_hold_nobody_up(one: sync.Quorum) -> None:
    with ExitStack() as held:
        for number in range(serving.CONNECTIONS_MAX * 2):
            sock = held.enter_context(connected(str(one.metrics_endpoint)))
            sock.sendall(b"GET /metrics HTTP/1.1\r\n" if number % 2 else b"")
        found: list[Response] = []
        askers = [threading.Thread(target=lambda: found.append(get(one.metrics_endpoint, "/readyz"))) for _ in range(4)]
        for each in askers:
            each.start()
        for each in askers:
            each.join()
        assert [each.status for each in found] == [200] * 4
        one.append(b"goes on", timeout=WAIT_S)


def test_a_crowd_that_comes_at_once_takes_few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = 8 * serving.CONNECTIONS_MAX
    most = 0
    serve_one = MetricsServer._on_connected

    def counting(self: MetricsServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        serve_one(self, reader, writer)

    monkeypatch.setattr(MetricsServer, "_on_connected", counting)
    with listen(Endpoint("", "127.0.0.1", 0)) as listening, ExitStack() as held:
        listening.listen(crowd)
        endpoint = f"127.0.0.1:{listening.getsockname()[1]}"
        for _ in range(crowd):
            held.enter_context(connected(endpoint))
        before = len(os.listdir("/proc/self/fd"))
        server = MetricsServer(listening)
        server.start()
        try:
            assert get(endpoint, "/healthz").status == 200  # behind all of them
        finally:
            server.close()
    assert serving.CONNECTIONS_MAX < most - before < serving.CONNECTIONS_MAX + 5 * ACCEPTS_MAX


def test_a_request_that_is_never_finished_ends(one: sync.Quorum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_S", 0.1)
    assert exchange(str(one.metrics_endpoint), b"GET /metrics HT") == b""


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /healthz HTTP/1.1\r\nHost: h", 200),
        ("GET /healthz HTTP/1.0", 200),  # had no hosts yet
        ("GET /healthz HTTP/1.1", 400),  # RFC 9112, section 3.2
        ("GET /healthz HTTP/2.0\r\nHost: h", 400),
        ("GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + "y" * 30_000, 431),
        ("GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: none", 400),
    ],
    ids=["1.1", "1.0", "no host", "2.0", "too long", "bad length"],
)
def test_a_request_is_held_to_its_protocol(one: sync.Quorum, request_line: str, status: int) -> None:
    answer = exchange(str(one.metrics_endpoint), request_line.encode() + b"\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
