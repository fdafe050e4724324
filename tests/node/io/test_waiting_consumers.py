"""Consumers that wait for records are told of the next commit, whenever it comes: also while the replica's thread is in
the middle of something, as native threads commit without it.
"""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastquorum import sync
from fastquorum.kernels import load
from fastquorum.node.clients.fetch import Fetches
from fastquorum.wire.messages.produce import ProduceRequest
from tests.api.nodes import QUICK, WAIT_S
from tests.node.io.test_hostile_connections import a_fetch, client_request, connect, read_frame

FOR_EVER_MS = 2**31 - 1


class Late:
    """A producer's record that native threads commit while the replica's thread stands where `commit` is called, once
    it is wanted."""

    def __init__(self, node: sync.Quorum) -> None:
        self.is_wanted = False
        self._node = node
        self._producer = connect(node)
        batch = load("native").encode_values([b"late"], base_offset=0, leader_epoch=0, timestamp_ms=1_000)
        data = ProduceRequest.TopicProduceData
        part = data.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data(name="quorum", partition_data=[part])])
        self._produce = client_request(request, 9, 0)

    def commit(self) -> None:
        if not self.is_wanted:
            return
        self.is_wanted = False
        before = self._node.high_watermark
        self._producer.sendall(self._produce)
        deadline = time.monotonic() + WAIT_S
        while self._node.high_watermark == before and time.monotonic() < deadline:
            time.sleep(0.001)

    def close(self) -> None:
        self._producer.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[sync.Quorum]:
    with sync.open(str(tmp_path), node_id=1, **QUICK) as node:
        node.wait_ready(WAIT_S)
        yield node


@pytest.fixture
def client(node: sync.Quorum) -> Iterator[socket.socket]:
    """A consumer that was told of a commit for which it waited: nobody waits for another one now."""
    end = node.append(b"first", timeout=WAIT_S) + 1
    with connect(node) as client:
        client.settimeout(WAIT_S)
        client.sendall(a_fetch(1, fetch_offset=end, max_wait_ms=FOR_EVER_MS))
        node.append(b"second", timeout=WAIT_S)
        assert b"second" in read_frame(client)
        yield client


def answer_to_one_that_waits(client: socket.socket, node: sync.Quorum) -> bytes:
    client.sendall(a_fetch(2, fetch_offset=node.high_watermark, max_wait_ms=FOR_EVER_MS))
    return read_frame(client)


def test_a_commit_while_a_fetch_is_put_among_those_that_wait(
    node: sync.Quorum, client: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, count = Late(node), Fetches._count

    def count_late(fetches: Fetches, *arguments: Any) -> None:
        late.commit()
        count(fetches, *arguments)

    monkeypatch.setattr(Fetches, "_count", count_late)
    late.is_wanted = True
    assert b"late" in answer_to_one_that_waits(client, node)
    late.close()
