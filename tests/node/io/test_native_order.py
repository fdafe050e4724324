"""What the quorum lives by is served first: at most a slice of what strangers sent comes before a voter's Fetch, and
Python is told of voters' frames before strangers'. By the order of what is served, not by time."""

from collections.abc import Callable

import pytest

from fastquorum.kernels.codes import EVENT_FRAME
from fastquorum.node.io.clock import now_us

from .native_rig import Peer, Rig, until
from .produce_frames import a_batch, produce_api, produce_request

SLICE_BYTES = 16 * 1024
SLICE_EVENTS = 256
VALUE = bytes(1_000)
SERVED_FIRST_MAX = SLICE_BYTES // len(VALUE) + 2
"""Appends of one slice: the last may go over it; and one may have been begun before."""
APPENDS = 120


@pytest.fixture
def leader(make_rig: Callable[..., Rig]) -> Rig:
    rig = make_rig()
    rig.lead()
    rig.shell.serve_produce(produce_api())
    return rig


def lagging_voter(rig: Rig) -> Peer:
    """Its next Fetch, at offset 2, is answered at once, with all that is there."""
    voter = rig.voter(2)
    rig.shell.favour(voter.number)
    rig.append()
    assert voter.answer().offsets == [1]
    rig.append()
    return voter


def while_nothing_is_served(rig: Rig, poke: Peer, send: Callable[[], None]) -> None:
    """The sockets' thread stands, with this one's request in hand or before, until all has been sent."""
    rig.shell.before_fork()
    try:
        poke.send(produce_request(a_batch(VALUE)))
        send()
    finally:
        rig.shell.after_fork()


def appended_first(voter: Peer) -> int:
    """How many strangers' appends were served before its Fetch."""
    return len(voter.answer().offsets) - 1


def test_a_voter_waits_for_no_more_than_a_slice_of_many_strangers_requests(leader: Rig) -> None:
    voter = lagging_voter(leader)
    strangers = [leader.connect() for _ in range(APPENDS)]

    def send() -> None:
        for stranger in strangers[1:]:
            stranger.send(produce_request(a_batch(VALUE)))
        voter.fetch(2)

    while_nothing_is_served(leader, strangers[0], send)
    assert appended_first(voter) <= SERVED_FIRST_MAX
    until(lambda: leader.shell.end_offset >= 3 + APPENDS, "the strangers' appends")


def test_a_voter_waits_for_no_more_than_a_slice_of_one_strangers_requests(leader: Rig) -> None:
    voter = lagging_voter(leader)
    first, second = leader.connect(), leader.connect()

    def send() -> None:
        second.send(*[produce_request(a_batch(VALUE), number=number) for number in range(APPENDS)])
        voter.fetch(2)

    while_nothing_is_served(leader, first, send)
    assert appended_first(voter) <= SERVED_FIRST_MAX


def test_a_strangers_large_frame_comes_in_whole_after_its_beginning(leader: Rig) -> None:
    stranger, value = leader.connect(), bytes(60_000)
    stranger.send(*[produce_request(a_batch(value), number=number) for number in range(20)])
    until(lambda: leader.shell.end_offset >= 1 + 20, "the large appends")


def wait_until_all_were_received(rig: Rig) -> None:
    """A frame has come on every connection."""
    late_us = now_us() + 1_000_000_000

    def are_received() -> bool:
        never = 1 << 60
        return not rig.shell.overdue(late_us, partial_us_max=1, idle_us_max=never, connect_us_max=never)

    until(are_received, "a frame on each connection")


def test_python_is_told_of_voters_first_and_of_some_strangers_at_once(rig: Rig) -> None:
    strangers = [rig.connect() for _ in range(SLICE_EVENTS + 40)]
    voter = rig.connect()
    rig.shell.favour(voter.number)
    for stranger in strangers:
        stranger.send(b"stranger's")
    voter.send(b"voter's")
    wait_until_all_were_received(rig)
    rig.collect()
    assert len(rig.events) == 1 + SLICE_EVENTS
    assert rig.events[0].connection == voter.number
    rig.await_news(lambda: len(rig.events) == 1 + len(strangers))
    assert {event.connection for event in rig.events[1:]} == {stranger.number for stranger in strangers}


def test_one_frame_of_a_stranger_waits_behind_no_others_many(rig: Rig) -> None:
    busy, other = rig.connect(), rig.connect()
    busy.sock.sendall((b"\0\0\0\4busy") * 3 * SLICE_EVENTS)
    other.send(b"other")
    wait_until_all_were_received(rig)
    rig.collect()
    assert {event.frame for event in rig.events[:2]} == {b"busy", b"other"}
    rig.await_news(lambda: len(rig.events) == 1 + 3 * SLICE_EVENTS)


def test_what_waits_goes_with_its_connection(rig: Rig) -> None:
    leaving, staying = rig.connect(), rig.connect()
    for peer in (leaving, staying):
        peer.send(b"here", b"still here")
    wait_until_all_were_received(rig)
    rig.shell.close_connection(leaving.number)
    rig.await_news(lambda: len(rig.events) == 2)
    assert [event.connection for event in rig.events] == [staying.number] * 2


def test_what_came_before_a_connection_was_known_as_a_voters_is_not_overtaken(rig: Rig) -> None:
    stranger, voter = rig.connect(), rig.connect()
    for peer in (stranger, voter):
        peer.send(b"first", b"second")
    wait_until_all_were_received(rig)
    rig.shell.favour(voter.number)
    voter.send(b"third")
    rig.await_news(lambda: len(rig.events) == 5)
    frames = [event.frame for event in rig.events if event.connection == voter.number]
    assert frames == [b"first", b"second", b"third"]
    assert all(event.kind == EVENT_FRAME for event in rig.events)


def test_a_voters_connection_is_served_whatever_became_of_it_before(rig: Rig) -> None:
    """One that has ended, one that is not there, and one that is a voter's already."""
    ended = rig.connect()
    ended.sock.close()
    rig.await_news(lambda: rig.events)
    voter = rig.connect()
    for number in (ended.number, voter.number, voter.number, 12_345):
        rig.shell.favour(number)
    voter.send(b"here")
    rig.await_news(lambda: len(rig.events) == 2)
    assert rig.events[1][1:3] == (voter.number, b"here")
