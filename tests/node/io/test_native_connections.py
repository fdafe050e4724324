"""The native shell's sockets: order, peers that do not read, peers that say too much, and those that owe something."""

import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum.kernels.codes import EVENT_CONNECTED, EVENT_DRAINED, EVENT_FRAME, EVENT_LOST
from fastquorum.node.io.clock import now_us

from .native_rig import Peer, Rig, is_readable, until
from .produce_frames import a_batch, produce_api, produce_request

SCRIPTS = Path(__file__).parent
S = 1_000_000
LIMITS = {"partial_us_max": 10 * S, "idle_us_max": 100 * S, "connect_us_max": 20 * S}

OWED_MIB = 24
"""What a connection may be owed beyond one frame."""


def kinds(rig: Rig) -> list[tuple[int, int]]:
    return [event[:2] for event in rig.events]


def kept(rig: Rig) -> list[bytes]:
    return [event.frame for event in rig.events if event.kind == EVENT_FRAME]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connecting(rig: Rig, address: tuple[str, int], number: int = 7) -> int:
    """A connection that we begin."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    assert sock.connect_ex(address) in (0, errno.EINPROGRESS)
    assert rig.shell.add(number, sock.fileno(), False, now_us()) == 0
    sock.detach()
    return number


# --- what comes in ----------------------------------------------------------------------------------------------------


def test_frames_come_as_they_were_cut_however_the_bytes_come(rig: Rig) -> None:
    peer = rig.connect()
    frames = [b"", b"a", bytes(300_000), b"b" * 5, bytes(2_000_000), b""]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)

    def send() -> None:
        at = 0
        for size in (1, 2, 1, 1, 3, 5, 7, 300_001, 2, 3, 1_999_999):
            peer.sock.sendall(data[at : at + size])
            at += size
        peer.sock.sendall(data[at:])

    sender = threading.Thread(target=send)
    sender.start()
    rig.await_news(lambda: len(rig.events) == len(frames))
    sender.join()
    assert kept(rig) == frames


@pytest.mark.parametrize("length", [-1, -(2**31), 1_001, 2**31 - 1])
def test_a_length_that_no_frame_has_ends_the_connection(make_rig: Callable[..., Rig], length: int) -> None:
    rig = make_rig(frame_bytes_max=1_000)
    peer = rig.connect()
    peer.send(bytes(1_000))
    peer.sock.sendall(length.to_bytes(4, "big", signed=True) + b"more")
    rig.await_news(lambda: len(rig.events) == 2)
    assert kinds(rig) == [(EVENT_FRAME, peer.number), (EVENT_LOST, peer.number)]
    assert rig.shell.knows(peer.number), "until Python closes it"
    rig.shell.close_connection(peer.number)
    assert not rig.shell.knows(peer.number)
    assert peer.frames() == []


def test_the_end_of_the_stream_is_reported_once_behind_its_frames(rig: Rig) -> None:
    peer = rig.connect()
    peer.send(b"last words")
    peer.sock.sendall(b"\0\0\0\x09half")
    peer.sock.close()
    rig.await_news(lambda: len(rig.events) == 2)
    assert kinds(rig) == [(EVENT_FRAME, peer.number), (EVENT_LOST, peer.number)]
    rig.shell.break_off(peer.number)
    rig.shell.send(peer.number, b"to nobody")
    rig.collect()
    assert len(rig.events) == 2


def test_a_peer_that_says_more_than_python_takes_is_not_read_from_until_it_is_dealt_with(rig: Rig) -> None:
    peer = rig.connect()
    frame, count = bytes(32_768), 1_024
    sender = threading.Thread(target=lambda: [peer.send(number.to_bytes(4, "big") + frame) for number in range(count)])
    sender.start()
    # No end is announced: that the shell reads no more can only be seen by waiting. Too short a wait finds no less.
    rig.await_news(lambda: len(rig.events) >= 64)
    while is_readable(rig.shell, 0.3):
        rig.collect()
    taken = sum(map(len, kept(rig)))
    assert taken <= 4 * 1024 * 1024 + 1024 * 1024, "a buffer beyond what may wait"
    assert sender.is_alive()
    while len(rig.events) < count:
        rig.deal_with_frames()
        assert is_readable(rig.shell, 20)
        rig.collect()
    sender.join()
    assert kept(rig) == [number.to_bytes(4, "big") + frame for number in range(count)]


def test_many_small_frames_count_as_much_as_large_ones(rig: Rig) -> None:
    peer = rig.connect()
    count = 400_000
    sender = threading.Thread(target=lambda: [peer.send(*[b"1234"] * 1_000) for _ in range(count // 1_000)])
    sender.start()
    rig.await_news(lambda: len(rig.events) >= 64)
    while is_readable(rig.shell, 0.3):
        rig.collect()
    assert len(rig.events) <= 64 + 1024 * 1024 // 8
    while len(rig.events) < count:
        rig.deal_with_frames()
        assert is_readable(rig.shell, 20)
        rig.collect()
    sender.join()


def test_others_are_read_from_while_one_is_not(rig: Rig) -> None:
    loud, quiet = rig.connect(), rig.connect()
    loud.send(*[b"frame"] * 100)
    rig.await_news(lambda: len(rig.events) == 100)
    loud.send(b"not read yet")
    quiet.send(b"read")
    rig.await_news(lambda: len(rig.events) == 101)
    assert rig.events[-1].frame == b"read"
    rig.deal_with_frames()
    rig.await_news(lambda: len(rig.events) == 102)
    assert rig.events[-1].frame == b"not read yet"


@pytest.mark.parametrize(("connections", "frames", "frame_bytes"), [(17, 1, 4 * 1024 * 1024 - 4), (65, 4_096, 0)])
def test_in_a_crowd_nobody_has_a_second_frame_waiting(
    rig: Rig, connections: int, frames: int, frame_bytes: int
) -> None:
    """Few large frames, and many that take more than their bytes."""
    sent = frame_bytes.to_bytes(4, "big") + bytes(frame_bytes)
    for count in range(1, connections + 1):
        rig.connect().sock.sendall(sent * frames)
        rig.await_news(lambda count=count: len(rig.events) == count * frames)  # type: ignore[misc]
    late, before = rig.connect(), len(rig.events)
    late.send(b"one")
    rig.await_news(lambda: len(rig.events) == before + 1)
    late.send(b"two")
    # No end is announced: see above.
    while is_readable(rig.shell, 0.3):
        rig.collect()
    assert kept(rig)[before:] == [b"one"]
    rig.deal_with_frames()
    rig.await_news(lambda: len(rig.events) == before + 2)
    assert rig.events[-1].frame == b"two"


# --- what goes out ----------------------------------------------------------------------------------------------------


def test_what_the_socket_does_not_take_follows_in_order_when_it_does(rig: Rig) -> None:
    peer = rig.connect()
    frames = [bytes([number]) * 2_000_000 for number in range(4)]
    for frame in frames:
        rig.shell.send(peer.number, memoryview(frame))
    assert [peer.frame() for _ in frames] == frames
    rig.shell.send(peer.number, b"after that")
    assert peer.frame() == b"after that"


def test_a_peer_that_does_not_read_is_given_up_at_what_it_may_be_owed(rig: Rig) -> None:
    peer, other = rig.connect(), rig.connect()
    sent = 0
    while sent < 64 and not is_readable(rig.shell):
        rig.shell.send(peer.number, bytes(1 << 20))
        sent += 1
    assert OWED_MIB <= sent <= OWED_MIB + 4
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_LOST, peer.number)]
    rig.shell.send(other.number, b"well")
    assert other.frame() == b"well"


def test_a_frame_of_the_lanes_that_is_half_sent_when_the_terms_end_does_not_leave_later(rig: Rig) -> None:
    rig.lead()
    for _ in range(12):
        rig.append(bytes(60_000))
    slow, other = rig.voter(2), rig.connect()
    rig.shell.send(other.number, bytes(4 << 20))
    rig.shell.close()
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_LOST, slow.number)]
    rig.shell.close_connection(slow.number)
    size = int.from_bytes(slow.sock.recv(4), "big")
    assert size > 12 * 60_000
    received = 0
    while piece := slow.sock.recv(1 << 20):
        received += len(piece)
    assert received < size
    assert other.frame() == bytes(4 << 20), "what is not the lane's goes on"


def test_one_frame_of_any_size_may_be_owed(rig: Rig) -> None:
    peer = rig.connect()
    rig.shell.send(peer.number, bytes(40 << 20))
    frame = peer.frame()
    assert frame is not None
    assert len(frame) == 40 << 20


def test_a_peer_that_is_owed_much_is_not_read_from(rig: Rig) -> None:
    peer = rig.connect()
    rig.shell.send(peer.number, bytes(4 << 20))
    peer.send(b"asked for more")
    assert not is_readable(rig.shell, 0.1)
    assert peer.frame() == bytes(4 << 20)
    rig.await_news(lambda: rig.events)
    assert kept(rig) == [b"asked for more"]


def hold_answers(rig: Rig, peer: Peer) -> None:
    """A Produce of the peer's that no majority has yet: answers of Python's wait behind its own."""
    rig.shell.serve_produce(produce_api())
    rig.lead()
    peer.send(produce_request(a_batch()))
    until(lambda: rig.shell.end_offset == 2, "the batch is in the log")


def test_answers_behind_one_that_waits_count_as_unsent_ones_do(rig: Rig) -> None:
    peer = rig.connect()
    hold_answers(rig, peer)
    assert not rig.shell.needs_drain(peer.number)
    rig.shell.send(peer.number, bytes(300_000))
    assert rig.shell.needs_drain(peer.number)
    peer.send(b"asked for more")
    assert not is_readable(rig.shell, 0.1)
    for _ in range(OWED_MIB + 2):
        rig.shell.send(peer.number, bytes(1 << 20))
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_LOST, peer.number)], "as one that does not read"


def test_a_connection_is_drained_when_what_waited_has_left(rig: Rig) -> None:
    peer = rig.connect()
    rig.shell.send(peer.number, bytes(8 << 20))
    assert rig.shell.needs_drain(peer.number)
    assert not is_readable(rig.shell, 0.1)
    assert peer.frame() == bytes(8 << 20)
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_DRAINED, peer.number)]
    assert not rig.shell.needs_drain(peer.number)


def test_what_is_kept_for_all_is_bounded_and_the_quorum_goes_first(rig: Rig) -> None:
    """Nobody reads. Voters' connections are owed what they may be by themselves, and others no more."""
    voter, late = rig.connect(), rig.connect()
    rig.shell.favour(voter.number)
    crowd = [rig.connect() for _ in range(40)]
    for peer in crowd:
        rig.shell.send(peer.number, bytes(16 << 20))
    rig.shell.send(late.number, bytes(16 << 20))
    rig.collect()
    lost = {number for kind, number in kinds(rig) if kind == EVENT_LOST}
    assert late.number in lost
    assert 256 >> 4 <= len(crowd) - len(lost - {late.number}) <= (256 >> 4) + 8, "of each some is in the socket"
    rig.shell.send(voter.number, bytes(16 << 20))
    assert voter.frame() == bytes(16 << 20)
    small = rig.connect()
    rig.shell.send(small.number, b"what the socket takes is not kept")
    assert small.frame() == b"what the socket takes is not kept"


def test_frames_that_are_not_whole_have_a_bound_too(make_rig: Callable[..., Rig]) -> None:
    """Once a crowd has sent much of a frame and never its end, no more is read of it; a small one is answered
    meanwhile."""
    rig = make_rig(frame_bytes_max=1 << 30)
    sent, part = 0, bytes(32 << 20)
    with contextlib.suppress(TimeoutError):
        for _ in range(20):
            peer = rig.connect()
            peer.sock.settimeout(5.0)  # for each piece: what goes on being read, however slowly, is being read
            left = memoryview((100 << 20).to_bytes(4, "big") + part)
            while left:
                taken = peer.sock.send(left[: 1 << 20])
                sent, left = sent + taken, left[taken:]
    assert 256 << 20 <= sent <= 320 << 20
    small = rig.connect()
    small.send(b"one")
    rig.await_news(lambda: rig.events)
    assert kept(rig) == [b"one"]


def test_last_words_go_out_as_far_as_sockets_take_them_and_then_all_are_closed(rig: Rig) -> None:
    peers = [rig.connect() for _ in range(3)]
    for peer in peers:
        rig.shell.send(peer.number, b"last words")
    rig.shell.close_all(now_us())
    assert rig.shell.connection_count() == 0
    for peer in peers:
        assert peer.frames() == [b"last words"]
    assert rig.events == []


# --- connections that we begin ----------------------------------------------------------------------------------------


def test_what_is_sent_before_the_connection_is_there_goes_out_when_it_is(rig: Rig, server: socket.socket) -> None:
    number = connecting(rig, server.getsockname())
    rig.shell.send(number, b"early")
    theirs, _ = server.accept()
    rig.peers.append(Peer(theirs, number, 2))
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_CONNECTED, number)]
    assert not rig.shell.is_accepted(number)
    assert rig.peers[-1].frame() == b"early"


def test_a_connection_that_is_refused_is_lost(rig: Rig, server: socket.socket) -> None:
    address = server.getsockname()
    server.close()
    number = connecting(rig, address)
    rig.await_news(lambda: rig.events)
    assert kinds(rig) == [(EVENT_LOST, number)]


def test_a_descriptor_that_cannot_be_watched_stays_the_callers(rig: Rig, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        assert rig.shell.add(7, file.fileno(), True, now_us()) == errno.EPERM
        assert not rig.shell.knows(7)
        os.fstat(file.fileno())


# --- what they owe ----------------------------------------------------------------------------------------------------


def test_overdue_are_those_that_have_not_done_in_time_what_they_began(rig: Rig) -> None:
    mute, half, good, deaf = (rig.connect() for _ in range(4))
    half.send(b"frame")
    half.sock.sendall(b"\0\0\0\x05ha")
    good.send(b"frame")
    deaf.send(b"frame")
    rig.await_news(lambda: len(rig.events) == 3)
    rig.shell.send(deaf.number, bytes(4 << 20))
    now = now_us()
    assert rig.shell.overdue(now, **LIMITS) == []
    assert sorted(rig.shell.overdue(now + 11 * S, **LIMITS)) == [mute.number, half.number, deaf.number]
    assert len(rig.shell.overdue(now + 101 * S, **LIMITS)) == 4
    assert rig.shell.oldest_silent(now, S) == -1
    assert rig.shell.oldest_silent(now + 2 * S, S) == mute.number


def test_a_voters_connection_makes_no_room_however_long_it_is_silent(rig: Rig) -> None:
    voter, client = rig.connect(), rig.connect()
    rig.shell.favour(voter.number)
    assert rig.shell.oldest_silent(now_us() + S, 0) == client.number
    rig.shell.close_connection(client.number)
    assert rig.shell.oldest_silent(now_us() + S, 0) == -1


def test_a_connection_that_does_not_come_about_is_overdue(rig: Rig) -> None:
    with contextlib.ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # One connection fills the queue; the next one's SYN is dropped.
        open_sockets.enter_context(socket.create_connection(server.getsockname()))
        number = connecting(rig, server.getsockname())
        assert rig.shell.overdue(now_us(), **LIMITS) == []
        assert rig.shell.overdue(now_us() + 21 * S, **LIMITS) == [number]


def test_a_stall_of_a_sync_that_has_ended_meanwhile_is_not_watched_again(rig: Rig) -> None:
    rig.lead([1])
    assert rig.shell.flush_began_us == -1
    rig.shell.watch_flush_again(now_us())
    assert rig.shell.flush_began_us == -1, "none is under way"


# --- ends -------------------------------------------------------------------------------------------------------------


def test_descriptors_are_closed_when_the_shell_goes(rig: Rig) -> None:
    open_peer = rig.connect()
    rig.shell.end_threads()
    assert open_peer.frames() == []
    rig.shell.end_threads()
    late, closed_late = rig.connect(), rig.connect()
    rig.shell.close_connection(closed_late.number)
    rig.forget_shell()
    assert late.frames() == closed_late.frames() == []


def test_a_child_lets_go_of_the_shells_descriptors_and_leaves_it_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPTS / "forked_shell.py", tmp_path], check=True, timeout=60)


def test_a_connection_closed_while_its_frames_come_is_neither_read_nor_reported(rig: Rig) -> None:
    for _ in range(200):
        peer = rig.connect()
        peer.send(*[b"frame"] * 50)
        rig.shell.close_connection(peer.number)
        rig.collect()
        assert select.select([peer.sock], [], [], 20)[0], "closed"
        assert not [event for event in rig.events if event.kind == EVENT_LOST]
    count = len(rig.events)
    rig.collect()
    assert len(rig.events) == count
