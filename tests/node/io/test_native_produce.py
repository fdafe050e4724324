"""Produce without Python: which requests and batches are served so, the same answers as Python's, and their order."""

import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Attribute, Compression
from fastquorum.kernels.codes import EVENT_FRAME
from fastquorum.node.io.clock import now_us
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode, decode_request, encode_request, request_header
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.produce import ProduceRequest

from .native_rig import Peer, Rig, kernels, native, until
from .produce_frames import (
    BATCH_BYTES_MAX,
    MINUTE_MS,
    TOPIC,
    TOPIC_ID,
    a_batch,
    produce_api,
    produce_request,
    produce_response,
)

VERSIONS = range(3, 14)
Data = ProduceRequest.TopicProduceData


# --- what is served ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@given(
    number=st.integers(-(2**31), 2**31 - 1),
    acks=st.sampled_from([-1, 0, 1, 2]),
    timeout_ms=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=20),
    records=st.binary(max_size=300),
)
@settings(max_examples=30, deadline=None)
def test_a_plain_request_is_read_as_the_codec_reads_it(version: int, records: bytes, **fields: Any) -> None:
    frame = produce_request(records, version=version, **fields)
    assert produce_api().parse(frame) == (version, fields["number"], fields["acks"], fields["timeout_ms"], records)
    for end in range(0, len(frame), 7):
        assert produce_api().parse(frame[:end]) is None
    assert produce_api().parse(frame + b"\0") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_another_shape_is_pythons(version: int) -> None:
    for fields in ({"index": 1}, {"transactional_id": "t"}):
        assert produce_api().parse(produce_request(b"r", version=version, **fields)) is None
    other = {"topic_id": Uuid(bytes(16))} if version >= 13 else {"topic": "thinks"}
    assert produce_api().parse(produce_request(b"r", version=version, **other)) is None
    assert produce_api().parse(produce_request(None, version=version)) is None
    partition = Data.PartitionProduceData(index=0, records=b"r")
    once = Data(name=TOPIC, topic_id=TOPIC_ID, partition_data=[partition])
    twice = Data(name=TOPIC, topic_id=TOPIC_ID, partition_data=[partition, partition])
    for topics in ([], [once, once], [twice]):
        body = ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics)
        assert produce_api().parse(encode_request(request_header(body, version, 1, None), body)) is None


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_changed_request_is_read_as_the_codec_reads_it_or_not_at_all(data: st.DataObject) -> None:
    # Without a client's name, which nobody reads here: it need not even be text.
    frame = bytearray(produce_request(b"some records", version=data.draw(st.sampled_from(VERSIONS)), client_id=None))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    found = produce_api().parse(bytes(frame))
    if found is not None:
        header, body = decode_request(bytes(frame))
        assert isinstance(body, ProduceRequest)
        records = body.topic_data[0].partition_data[0].records
        assert found == (header.request_api_version, header.correlation_id, body.acks, body.timeout_ms, records)


@pytest.mark.parametrize("topic", ["t", "x" * 127, "y" * 200, "Ünïcode"])
@pytest.mark.parametrize("version", [8, 9, 12, 13])
def test_a_topic_has_any_name(topic: str, version: int) -> None:
    assert produce_api(topic).parse(produce_request(b"r", topic=topic, version=version)) is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_is_what_the_codec_would_write(version: int) -> None:
    for error, base_offset in ((0, 0), (0, 2**40 + 5), (ErrorCode.REQUEST_TIMED_OUT, -1)):
        expected = produce_response(version, 2**31 - 1, error, base_offset, 77)
        assert produce_api().answer(version, 2**31 - 1, error, base_offset, 77) == expected


def a_judgement(records: bytes) -> bool:
    """The requirements of a batch, with its place written over: the checks of the general decoder."""
    stamped = bytearray(records)
    try:
        kernels.stamp_batch(stamped, 0, 0)
        info = kernels.decode_batch(stamped).info
    except CorruptionError:
        return False
    return (
        info.size_bytes == len(records) <= BATCH_BYTES_MAX
        and not info.is_control
        and not info.is_transactional
        and info.last_offset - info.base_offset + 1 == info.records_count
        and (info.producer_id < 0 or min(info.producer_epoch, info.base_sequence) >= 0)
        and info.compression == Compression.NONE
    )


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.data())
@settings(max_examples=300, deadline=None)
def test_a_batch_is_judged_as_the_general_decoder_judges_it(values: list[bytes], data: st.DataObject) -> None:
    good = a_batch(*values)
    assert produce_api().takes(good)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 2))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):  # an honest checksum of whatever it says
        bad[17:21] = kernels.crc32c(bytes(bad[21:])).to_bytes(4, "big")
    assert produce_api().takes(bytes(bad)) is a_judgement(bytes(bad))
    for end in range(len(good)):
        assert not produce_api().takes(good[:end])
    assert not produce_api().takes(good + good)


def test_batches_that_need_somebody_to_look_at_them_are_pythons() -> None:
    for attributes in (Attribute.CONTROL, Attribute.TRANSACTIONAL, Compression.GZIP):
        batch = kernels.encode_values([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=1, attributes=attributes)
        assert not produce_api().takes(batch)
    assert not produce_api().takes(a_batch(bytes(BATCH_BYTES_MAX)))


# --- served by a shell ------------------------------------------------------------------------------------------------


def served(rig: Rig, **options: Any) -> Peer:
    """A producer's connection to a leader that is alone."""
    rig.shell.serve_produce(produce_api(**options))
    rig.lead(voters=(1,))
    return rig.connect()


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_a_producer_is_answered_once_its_batch_is_committed(rig: Rig, version: int) -> None:
    peer = served(rig)
    rig.shell.hold_syncs(True)
    peer.send(produce_request(a_batch(b"a", b"b"), version=version, number=7))
    until(lambda: rig.shell.end_offset == 3, "the batch is in the log")
    assert peer.is_silent()
    rig.shell.hold_syncs(False)
    assert peer.frame() == produce_response(version, 7, base_offset=1, log_start_offset=0)
    rig.collect()
    assert rig.events == []
    (stored,) = kernels.batch_headers(rig.stored())[1:]
    assert (stored.base_offset, stored.last_offset, stored.leader_epoch, stored.crc_valid) == (1, 2, 5, True)


def test_many_in_one_write_are_answered_in_their_order(rig: Rig) -> None:
    peer = served(rig)
    peer.send(*[produce_request(a_batch(b"v"), number=number, acks=[1, -1][number % 2]) for number in range(100)])
    for number in range(100):
        assert peer.frame() == produce_response(9, number, base_offset=1 + number, log_start_offset=0)


def test_an_answer_of_pythons_waits_for_those_to_what_was_asked_before(rig: Rig) -> None:
    peer = served(rig)
    rig.shell.hold_syncs(True)
    requests = encode_request(request_header(ApiVersionsRequest(), 3, 2, "tests"), ApiVersionsRequest())
    peer.send(produce_request(a_batch(b"1"), number=1), requests)
    rig.await_news(lambda: rig.events)
    assert [event.frame for event in rig.events] == [requests]
    rig.shell.send(peer.number, b"Python's answer")
    assert peer.is_silent()
    # Not settled yet, and so the next is Python's, too: it must not be appended before what Python has.
    peer.send(produce_request(a_batch(b"3"), number=3))
    rig.await_news(lambda: len(rig.events) == 2)
    rig.shell.hold_syncs(False)
    assert peer.frame() == produce_response(9, 1, base_offset=1, log_start_offset=0)
    assert peer.frame() == b"Python's answer"
    rig.shell.settled(peer.number, 1)  # of an answer that Python gave before it knew of the second frame
    peer.send(produce_request(a_batch(b"4"), number=4))
    rig.await_news(lambda: len(rig.events) == 3)
    rig.shell.send(peer.number, b"to the second")
    rig.shell.send(peer.number, b"to the third")
    rig.shell.settled(peer.number, 3)
    peer.send(produce_request(a_batch(b"5"), number=5))
    assert [peer.frame() for _ in range(3)] == [
        b"to the second",
        b"to the third",
        produce_response(9, 5, base_offset=2, log_start_offset=0),
    ]


@pytest.mark.parametrize(
    "frame",
    [
        produce_request(a_batch(b"x"), acks=0),
        produce_request(a_batch(b"x"), acks=2),
        produce_request(a_batch(b"x")[:-1]),
        produce_request(a_batch(b"x"), topic="another"),
        produce_request(b""),
    ],
    ids=["acks=0", "acks=2", "damaged", "another topic", "empty"],
)
def test_what_is_not_plain_is_pythons(rig: Rig, frame: bytes) -> None:
    peer = served(rig)
    peer.send(frame)
    rig.await_news(lambda: rig.events)
    assert [(event.kind, event.frame) for event in rig.events] == [(EVENT_FRAME, frame)]
    assert rig.shell.end_offset == 1


def a_producers(sequence: int, *values: bytes, epoch: int = 0, producer: int = 7) -> bytes:
    stamp = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    return kernels.encode_values(values or (b"x",), base_offset=0, leader_epoch=0, timestamp_ms=1_000, **stamp)


def test_an_idempotent_producers_next_batch_is_served_and_any_other_is_pythons(rig: Rig) -> None:
    peer = served(rig)
    box = native.Mailbox()
    assert rig.shell.append_encoded(bytearray(a_producers(0, b"a", b"b")), 2, 1_000, box, "python's", False, True) == 1
    peer.send(produce_request(a_producers(2), number=1), produce_request(a_producers(3), number=2))
    assert peer.frame() == produce_response(9, 1, base_offset=3, log_start_offset=0)
    assert peer.frame() == produce_response(9, 2, base_offset=4, log_start_offset=0)
    again, others, gap = a_producers(0, b"a", b"b"), a_producers(3, b"other"), a_producers(5)
    for number, records in enumerate((again, others, gap, a_producers(4, epoch=1), a_producers(0, producer=8))):
        other = rig.connect()
        other.send(produce_request(records))
        rig.await_news(lambda number=number: len(rig.events) == number + 1)
    assert rig.shell.end_offset == 5


def test_while_raft_decides_and_where_nobody_leads_python_answers(rig: Rig) -> None:
    rig.shell.serve_produce(produce_api())
    peer = rig.connect()
    peer.send(produce_request(a_batch(b"nobody leads")))
    rig.await_news(lambda: len(rig.events) == 1)
    rig.lead(voters=(1,))
    rig.shell.freeze()
    second = rig.connect()
    second.send(produce_request(a_batch(b"raft decides")))
    rig.await_news(lambda: len(rig.events) == 2)
    rig.shell.resume(now_us())
    third = rig.connect()
    third.send(produce_request(a_batch(b"it goes on")))
    assert third.frame() == produce_response(9, 1, base_offset=1, log_start_offset=0)


def test_too_much_that_waits_is_pythons_to_refuse(make_rig: Any) -> None:
    rig = make_rig(records_max=2)
    peer = served(rig)
    rig.shell.hold_syncs(True)
    peer.send(*[produce_request(a_batch(b"v"), number=number) for number in range(4)])
    rig.await_news(lambda: len(rig.events) == 2)
    assert rig.shell.end_offset == 3
    rig.shell.hold_syncs(False)


def test_a_connection_with_too_many_that_wait_is_pythons(rig: Rig) -> None:
    peer = served(rig, unanswered_max=2)
    rig.shell.hold_syncs(True)
    peer.send(*[produce_request(a_batch(b"v"), number=number) for number in range(3)])
    rig.await_news(lambda: rig.events)
    assert rig.shell.end_offset == 3
    rig.shell.hold_syncs(False)


def test_those_whose_time_is_over_are_told_so_in_their_order(rig: Rig) -> None:
    peer = served(rig)
    rig.shell.hold_syncs(True)
    peer.send(
        produce_request(a_batch(b"1"), number=1, timeout_ms=60),
        produce_request(a_batch(b"2"), number=2, timeout_ms=1),
        produce_request(a_batch(b"3"), number=3),
    )
    began = time.monotonic()
    late = int(ErrorCode.REQUEST_TIMED_OUT)
    assert [peer.frame(), peer.frame()] == [produce_response(9, 1, late), produce_response(9, 2, late)]
    assert time.monotonic() - began >= 0.05, "not before its time"
    rig.shell.hold_syncs(False)
    assert peer.frame() == produce_response(9, 3, base_offset=3, log_start_offset=0)


def test_one_whose_time_was_over_behind_another_is_told_so_once_that_is_committed(rig: Rig) -> None:
    rig.shell.serve_produce(produce_api())
    rig.lead()
    voter, peer = rig.voter(2), rig.connect()
    peer.send(produce_request(a_batch(b"1"), number=1), produce_request(a_batch(b"2"), number=2, timeout_ms=0))
    until(lambda: rig.shell.end_offset == 3, "both are in the log")
    voter.fetch(2)
    assert peer.frame() == produce_response(9, 1, base_offset=1, log_start_offset=0)
    assert peer.frame() == produce_response(9, 2, int(ErrorCode.REQUEST_TIMED_OUT))


class Producing(NamedTuple):
    """One request, and whether all that were made so far are committed before the next."""

    connection: int
    has_time: bool
    is_committed: bool


@given(requests=st.lists(st.builds(Producing, st.integers(0, 2), st.booleans(), st.booleans()), max_size=30))
@settings(max_examples=30, deadline=None)
def test_each_connection_hears_what_a_look_at_all_that_wait_would_tell_it(
    requests: list[Producing], tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = Rig(tmp_path_factory.mktemp("produces"))
    peers = [served(rig), rig.connect(), rig.connect()]
    until(lambda: rig.shell.high_watermark == 1, "what the term begins with is committed")
    rig.shell.hold_syncs(True)
    waiting: dict[int, list[tuple[int, Producing]]] = {0: [], 1: [], 2: []}
    late = int(ErrorCode.REQUEST_TIMED_OUT)
    for offset, each in enumerate(requests, 1):
        peer, before = peers[each.connection], waiting[each.connection]
        peer.send(
            produce_request(a_batch(), number=offset, timeout_ms=MINUTE_MS if each.has_time else 0),
        )
        if each.has_time or before:
            before.append((offset, each))
        else:
            assert peer.frame() == produce_response(9, offset, late)
        until(lambda end=offset + 1: rig.shell.end_offset == end, "it is in the log")  # type: ignore[misc]
        if not each.is_committed:
            continue
        rig.shell.hold_syncs(False)
        for connection, kept in waiting.items():
            for number, one in kept:
                response = peers[connection].frame()
                # Those without time may be told so when the one before them is committed, and they are not yet.
                if one.has_time or response != produce_response(9, number, late):
                    assert response == produce_response(9, number, base_offset=number, log_start_offset=0)
            kept.clear()
        until(lambda end=offset + 1: rig.shell.high_watermark == end, "all is committed")  # type: ignore[misc]
        rig.shell.hold_syncs(True)
    assert all(peer.is_silent() for peer in peers)
    rig.close()


def test_when_the_lead_ends_whoever_waits_is_sent_away(rig: Rig) -> None:
    peer = served(rig)
    rig.shell.hold_syncs(True)
    peer.send(produce_request(a_batch(b"1"), number=1), produce_request(a_batch(b"2"), number=2, version=13))
    until(lambda: rig.shell.end_offset == 3, "both are in the log")
    rig.shell.close()
    rig.shell.fail_pending(-1_001)
    code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [peer.frame(), peer.frame()] == [produce_response(9, 1, code), produce_response(13, 2, code)]
    rig.shell.hold_syncs(False)


def test_an_answer_that_breaks_its_connection_off_takes_those_that_wait_behind_it_along(rig: Rig, arm: Any) -> None:
    peer = served(rig)
    other = rig.connect()
    until(lambda: rig.shell.high_watermark == 1, "what the term begins with is committed")
    rig.shell.hold_syncs(True)
    peer.send(*[produce_request(a_batch(b"%d" % number), number=number) for number in range(3)])
    until(lambda: rig.shell.end_offset == 4, "all are in the log")
    arm("before-send-produce-response", "eio", only_hit=1)
    rig.shell.hold_syncs(False)
    until(lambda: rig.shell.high_watermark == 4, "all are committed")
    assert peer.is_silent()
    other.send(produce_request(a_batch(b"4"), number=4))
    assert other.frame() == produce_response(9, 4, base_offset=4, log_start_offset=0)


def test_a_failed_sync_acknowledges_nothing(rig: Rig, arm: Any) -> None:
    peer = served(rig)
    until(lambda: rig.shell.high_watermark == 1, "what the term begins with is committed")
    arm("before-flush-submit", "eio")
    peer.send(produce_request(a_batch(b"1")))
    rig.await_news(lambda: rig.shell.was_cut_off)
    rig.shell.stop()
    rig.shell.fail_pending(-1_001)
    assert peer.is_silent()


def test_a_producer_that_went_away_is_answered_nowhere(rig: Rig) -> None:
    peer = served(rig)
    rig.shell.hold_syncs(True)
    peer.send(produce_request(a_batch(b"1")))
    until(lambda: rig.shell.end_offset == 2, "it is in the log")
    rig.shell.close_connection(peer.number)
    rig.shell.hold_syncs(False)
    until(lambda: rig.shell.high_watermark == 2, "it is committed")
    assert peer.frame() is None
