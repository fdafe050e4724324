"""Heartbeats without Python: on the shell's own sockets, where it leads, and in the order of their connection."""

from typing import Any

from fastquorum.node.io.clock import now_us
from fastquorum.node.metadata.heartbeats import steady_beat
from fastquorum.wire import ApiKey, decode_response, encode_request, request_header
from fastquorum.wire.codec.codec import Codec
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse

from .native_rig import Peer, Rig, kernels, until
from .produce_frames import produce_api, produce_request
from .test_native_produce import a_batch

LEAD = 5
"""The rig's."""
ANSWER = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
WISH = BrokerHeartbeatRequest(broker_id=1, broker_epoch=30, current_metadata_offset=40)


def sent(number: int, wish: BrokerHeartbeatRequest = WISH) -> bytes:
    return encode_request(request_header(wish, 1, number, "broker"), wish)


def answered(peer: Peer) -> tuple[int, Any]:
    return decode_response(peer.frame(), ApiKey.BROKER_HEARTBEAT, 1)


def served(rig: Rig, leader_epoch: int = LEAD, confirmed_us_max: int = 1_000_000) -> Any:
    beats = kernels.SteadyBeats()
    beats.begin(leader_epoch)
    beats.keep(steady_beat(Codec(), WISH, 1, 30, ANSWER))
    rig.shell.serve_beats(beats, confirmed_us_max)
    return beats


def test_a_steady_broker_is_answered_while_python_does_something_else(rig: Rig) -> None:
    beats = served(rig)
    rig.lead(voters=(1,))
    peer = rig.connect()
    before_us = now_us()
    peer.send(sent(1), sent(2))
    assert [answered(peer), answered(peer)] == [(1, ANSWER), (2, ANSWER)]
    rig.collect()
    assert rig.events == []
    ((broker_id, epoch, contact_us, offset),) = beats.take_answered()
    assert (broker_id, epoch, offset) == (1, 30, 40)
    assert before_us <= contact_us <= now_us()


def test_what_is_asked_behind_something_of_pythons_is_pythons(rig: Rig) -> None:
    served(rig)
    rig.lead(voters=(1,))
    peer, other = rig.connect(), rig.connect()
    peer.send(b"\0\x13 a creation", sent(1))
    rig.await_news(lambda: len(rig.events) == 2)
    other.send(sent(2))
    assert answered(other) == (2, ANSWER)
    rig.shell.send(peer.number, b"created")
    rig.shell.send(peer.number, b"beaten")
    rig.shell.settled(peer.number, 2)
    peer.send(sent(3))
    assert [peer.frame(), peer.frame()] == [b"created", b"beaten"]
    assert answered(peer) == (3, ANSWER)


def test_a_heartbeat_behind_a_produce_that_waits_is_pythons(rig: Rig) -> None:
    served(rig)
    rig.shell.serve_produce(produce_api())
    rig.lead(voters=(1,))
    rig.shell.hold_syncs(True)
    peer = rig.connect()
    peer.send(produce_request(a_batch(b"v"), number=1))
    until(lambda: rig.shell.end_offset == 2, "the batch is in the log")
    peer.send(sent(2))
    rig.await_news(lambda: rig.events)
    assert rig.events[0].frame == sent(2)
    rig.shell.hold_syncs(False)


def test_where_nobody_leads_or_raft_decides_or_another_lead_began_it_is_pythons(rig: Rig) -> None:
    beats = served(rig)
    peers = [rig.connect() for _ in range(4)]
    peers[0].send(sent(1))
    rig.await_news(lambda: len(rig.events) == 1)
    rig.lead(voters=(1,))
    rig.shell.freeze()
    peers[1].send(sent(1))
    rig.await_news(lambda: len(rig.events) == 2)
    rig.shell.resume(now_us())
    beats.begin(LEAD + 1)
    beats.keep(steady_beat(Codec(), WISH, 1, 30, ANSWER))
    peers[2].send(sent(1))
    rig.await_news(lambda: len(rig.events) == 3)
    beats.begin(LEAD)
    beats.keep(steady_beat(Codec(), WISH, 1, 30, ANSWER))
    peers[3].send(sent(1))
    assert answered(peers[3]) == (1, ANSWER)


def test_after_the_disk_has_failed_nobody_is_answered(rig: Rig) -> None:
    served(rig)
    rig.lead(voters=(1,))
    rig.shell.latch()
    peer = rig.connect()
    peer.send(sent(1))
    rig.await_news(lambda: rig.events)
    assert peer.is_silent()


def confirmed(rig: Rig, peer: Peer) -> None:
    """A voter's Fetch answers what was sent just now."""
    rig.append()
    offset = peer.answer().offsets[-1] + 1
    peer.fetch(offset)
    until(lambda: rig.shell.is_confirmed(1 << 60), "a majority follows")


def test_while_no_majority_is_known_to_follow_it_is_pythons(rig: Rig) -> None:
    served(rig, confirmed_us_max=3_600_000_000)
    rig.lead()
    follower = rig.voter(2)
    peers = rig.connect(), rig.connect()
    peers[0].send(sent(1))
    rig.await_news(lambda: rig.events)
    assert not rig.shell.is_confirmed(1 << 60)
    confirmed(rig, follower)
    peers[1].send(sent(1))
    assert answered(peers[1]) == (1, ANSWER)


def test_once_that_is_long_ago_somebody_else_may_lead_and_it_is_pythons(rig: Rig) -> None:
    served(rig, confirmed_us_max=1)
    rig.lead()
    confirmed(rig, rig.voter(2))
    peer = rig.connect()
    peer.send(sent(1))
    rig.await_news(lambda: rig.events)
    assert rig.events[0].frame == sent(1)
    assert not rig.shell.is_confirmed(1)
