"""Clients that ask and do not read, or that ask much while something waits: what is kept for them has a bound."""

from collections import deque
from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.node.network import requests
from fastquorum.node.network.inbox import Inbox, WaitingFrame
from fastquorum.node.network.requests import HELD_BYTES_MAX
from fastquorum.raft import events as ev
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from tests.node.rig import Rig, partition_of
from tests.node.test_client_apis import batch, count_reads, describe_quorum, fetch, produce

RECORD_BYTES = 100_000


def filled(*voter_ids: int) -> Rig:
    """A leader whose committed log has one record of 100 kB."""
    rig = Rig(*voter_ids, config=QuorumConfig(preallocate_bytes=1 << 20)).lead()
    rig.append(bytes(RECORD_BYTES))
    rig.sync()
    if voter_ids:
        rig.fetch(rig.accept(), 2, 2)
        rig.pass_time(0)
    assert rig.replica.high_watermark == 2
    return rig


@pytest.mark.parametrize(
    ("message", "version"),
    [(fetch(0, wait_ms=0), 12), (MetadataRequest(topics=None), 12), (describe_quorum(), 1), (ApiVersionsRequest(), 3)],
)
def test_nothing_is_made_for_who_does_not_read_until_it_does(message: Message, version: int) -> None:
    rig = filled()
    slow, other = rig.accept(), rig.accept()
    rig.transport.unread.add(slow)
    numbers = [rig.ask(slow, message, version) for _ in range(3)]
    rig.ask(other, message, version)
    assert rig.answers(slow) == []
    assert len(rig.answers(other)) == 1, "the other client is served"
    rig.transport.unread.clear()
    rig.replica.on_drained(slow, rig.now_us)
    numbers.append(rig.ask(slow, ApiVersionsRequest(), 3))
    assert [number for number, _ in rig.numbered_answers(slow)] == numbers


def test_a_fetch_that_waited_is_not_read_for_who_has_not_read_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = filled()
    consumer = rig.accept()
    for wait_ms in (400, 1 << 30):
        rig.ask(consumer, fetch(2, wait_ms=wait_ms), 12)
    reads = count_reads(rig, monkeypatch)
    rig.transport.unread.add(consumer)
    rig.append(b"here")
    rig.sync()
    rig.pass_time(500 * MS)
    assert 2 not in reads
    rig.transport.unread.clear()
    rig.replica.on_drained(consumer, rig.now_us)
    rig.pass_time(0)
    assert len(rig.answers(consumer)) == 2


@pytest.mark.parametrize("first", ["produce", "fetch"])
def test_what_is_asked_behind_something_that_waits_holds_a_few_answers_only(first: str) -> None:
    rig = filled(1, 2, 3)
    client = rig.accept()
    waiting = produce(batch(rig), timeout_ms=60_000) if first == "produce" else fetch(2, wait_ms=60_000)
    numbers = [rig.ask(client, waiting, 9 if first == "produce" else 12)]
    numbers += [rig.ask(client, fetch(0, wait_ms=0), 12) for _ in range(40)]
    order = rig.replica.connections.requests
    assert order.kept_bytes <= HELD_BYTES_MAX + RECORD_BYTES + 10_000
    assert rig.answers(client) == []
    rig.pass_time(61_000 * MS)
    answers = rig.numbered_answers(client)
    assert [number for number, _ in answers] == numbers
    fetched = [message for _, message in answers[1:] if isinstance(message, FetchResponse)]
    assert {len(partition_of(each).records or b"") > RECORD_BYTES for each in fetched} <= {True, False}
    assert order.kept_bytes == 0


def test_what_was_set_aside_goes_behind_others_and_before_what_came_later_on_its_connection() -> None:
    first, second, third, fourth = (WaitingFrame(7, b"%d" % number, False) for number in range(4))
    other, event = WaitingFrame(8, b"other", False), ev.TimerFired()
    inbox = Inbox()
    for item in (event, other, third, other, fourth):
        inbox.append(item)
    inbox.put_back(deque([first, second]))
    assert [inbox.take() for _ in range(len(inbox))] == [event, other, first, second, third, other, fourth]
    for item in (event, other):
        inbox.append(item)
    inbox.put_back(())
    inbox.put_back([first, second])
    assert [inbox.take() for _ in range(len(inbox))] == [event, other, first, second]


def test_with_much_kept_for_all_nobody_has_a_second_request_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = filled()
    monkeypatch.setattr(requests, "ALL_BYTES_MAX", 3 * RECORD_BYTES)
    clients = [rig.accept() for _ in range(20)]
    for client in clients:
        rig.ask(client, fetch(2, wait_ms=60_000), 12)
        for _ in range(2):
            rig.ask(client, fetch(0, wait_ms=0), 12)
    order = rig.replica.connections.requests
    assert order.kept_bytes <= 4 * RECORD_BYTES + 10_000
    late = rig.accept()
    rig.ask(late, fetch(0, wait_ms=0), 12)
    assert len(rig.answers(late)) == 1, "one request of anybody is served"
    rig.append(b"for all of them")
    rig.sync()
    for _ in clients:
        rig.pass_time(0)
        rig.work()
    assert [len(rig.answers(client)) for client in clients] == [3] * 20
    assert order.kept_bytes == 0


def test_what_was_kept_for_a_connection_goes_with_it() -> None:
    rig = filled()
    client = rig.accept()
    rig.ask(client, fetch(2, wait_ms=60_000), 12)
    for _ in range(8):
        rig.ask(client, fetch(0, wait_ms=0), 12)
    replica: Any = rig.replica
    assert replica.connections._set_aside
    replica.on_disconnected(client, rig.now_us)
    assert not replica.connections._set_aside
    assert not replica.connections._held_back
    assert not replica.connections.requests._waiting
    assert not replica._clients._fetches._held_back
    assert not replica._clients._fetches.are_parked
    assert (len(replica.connections.requests), replica.connections.requests.kept_bytes) == (0, 0)


def test_a_voters_connection_is_favoured_and_an_observers_is_not() -> None:
    rig = Rig(1, 2, 3).lead()
    voter, observer = rig.accept(), rig.accept()
    rig.fetch(voter, 2, 1)
    rig.fetch(observer, 9, 1)
    assert rig.transport.favoured == {voter}
