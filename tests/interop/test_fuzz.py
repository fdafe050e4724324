"""Mutants against live nodes, in short; and that each thing that may go wrong is noticed when it does."""

import os
import random
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.client.connection import Deadline
from fastquorum.node.clients.server import SERVED
from fastquorum.storage.identity import LogKind
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import API, decode_request, encode
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from tests.process.processes import WAIT_S
from tests.wire.golden import Frame, frames

from .fuzz.drive import Run, fuzz, quorum
from .fuzz.forgery import Forgery
from .fuzz.line import Line
from .fuzz.live import Live, frame, replica_fetch, requests
from .fuzz.mutations import Mutant, Mutator
from .fuzz.nodes_time import COMPLAINTS, complaints, thread_states
from .fuzz.pieces import pieces
from .fuzz.report import Counts, Finding, read_mutants, write_mutants
from .fuzz.values import OVERLONG
from .nodes import CLUSTER_ID

pytestmark = pytest.mark.timeout(300)

SEED = 11
EACH = 1_000
"""Mutants for each kind of log."""
CENSUS = 20_000
"""Mutants among which everything occurs."""
LIVE = Live(LogKind.USER, epoch=5, leader=1, victim=2, quiet=3, ports={1: 10_001, 2: 10_002, 3: 10_003})


@pytest.mark.long
@pytest.mark.parametrize("kind", LogKind)
def test_mutants_leave_the_quorum_as_it_was(kind: LogKind) -> None:
    counts = Counts()
    with quorum(kind, counts) as run:
        fuzz(run, SEED, range(EACH))
    assert counts.mutants == EACH
    assert counts.appended_by_client
    assert counts.hung_up_on
    assert counts.answers


# --- what goes wrong is noticed ---------------------------------------------------------------------------------------


@pytest.fixture
def run() -> Iterator[Run]:
    with quorum(LogKind.USER, Counts()) as started:
        yield started


def harmless(live: Live) -> list[Mutant]:
    """One for each node."""
    raw = struct.pack(">i", 4) + b"\x7f\xff\x00\x00"
    return [Mutant(number, node_id, "", ("",), raw) for number, node_id in enumerate(live.ports)]


def found_by(run: Run, mutants: list[Mutant]) -> Finding:
    with pytest.raises(Finding) as caught:
        run.send_all(mutants)
    return caught.value


def stand_still(pid: int) -> None:
    """Return once every thread has stopped: until then it may still answer."""
    os.kill(pid, signal.SIGSTOP)
    deadline = Deadline(WAIT_S)
    while any(state != "T" for state in thread_states(pid)):
        assert not deadline.is_over


@pytest.mark.long
def test_a_node_that_stands_still_is_a_hang_at_the_mutants_it_does_not_answer(run: Run) -> None:
    victim = run.live.victim
    stand_still(run.nodes.pid(victim))
    found = found_by(run, harmless(run.live))
    assert found.kind == "hang"
    assert {each.node_id for each in found.mutants} == {victim}


def test_a_node_that_dies_is_found_dead(run: Run) -> None:
    os.kill(run.nodes.pid(run.live.quiet), signal.SIGKILL)
    found = found_by(run, harmless(run.live))
    assert (found.kind, f"ended with {-signal.SIGKILL}" in found.detail) == ("died", True)


def forged_vote(live: Live, epoch: int) -> bytes:
    """Well-formed, a voter's, with a higher epoch: whoever gets it has to believe it."""
    topic = VoteRequest.TopicData
    part = topic.PartitionData(
        replica_epoch=epoch,
        replica_id=live.quiet,
        replica_directory_id=live.directory_id(live.quiet),
        last_offset=1 << 40,
    )
    return frame(VoteRequest(cluster_id=CLUSTER_ID, topics=[topic(topic_name=TOPIC_NAME, partitions=[part])]), 2)


def test_a_leader_deposed_by_a_forged_vote_is_noticed_and_as_a_mutant_it_deposes_nobody(run: Run) -> None:
    live, raw = run.live, forged_vote(run.live, run.live.epoch + 7)
    data = struct.pack(">i", len(raw)) + raw
    run.send_all([Mutant(number, node_id, "", ("",), data) for number, node_id in enumerate(live.ports)])
    assert run.counts.tamed == 3
    line = Line(live.ports[live.victim])
    line.send(data)
    run.nodes.wait_epoch(live.epoch)
    line.close()
    with pytest.raises(Finding, match="leader changed"):
        run.check()


def test_what_is_wrong_with_memory_and_log_is_noticed() -> None:
    with quorum(LogKind.USER, Counts(), growth_mib_max=-1.0) as run:
        run.send_all(harmless(run.live))
        run.client.begin_append()
        run.client.finish_append()
        end_offset = run.nodes.wait_caught_up().partition.high_watermark
        (offset, value), *_ = run.client.promised.items()
        run.client.promised[offset] = b"another"
        with pytest.raises(Finding, match="wrong record"):
            run.client.check_log(end_offset, set())
        run.client.promised[offset] = value
        run.client.promised[end_offset] = b"never appended"
        with pytest.raises(Finding, match="record lost"):
            run.client.check_log(end_offset, set())
        del run.client.promised[end_offset], run.client.promised[offset]
        with pytest.raises(Finding, match="record from nowhere"):
            run.client.check_log(end_offset, set())
        run.warmed_up()
        with pytest.raises(Finding, match="memory"):
            run.check()


@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_a_sanitizers_words_are_found(complaint: str) -> None:
    assert complaints("fastquorum: node 1 leads epoch 1\n") == []
    assert complaints(f"fastquorum: node 1 leads epoch 1\nx {complaint} y\nmore\n") == [f"x {complaint} y", "more"]


# --- mutants ----------------------------------------------------------------------------------------------------------


def test_a_mutant_is_known_by_seed_and_number() -> None:
    one, again, other = Mutator(SEED, LIVE), Mutator(SEED, LIVE), Mutator(SEED + 1, LIVE)
    some = [one.mutant(number) for number in range(300)]
    assert [again.mutant(number) for number in reversed(range(300))] == some[::-1]
    assert sum(other.mutant(each.number).data == each.data for each in some) < 30


def test_every_api_and_version_that_is_served_and_every_way_occurs() -> None:
    mutator, counts = Mutator(SEED, LIVE), Counts()
    for number in range(CENSUS):
        counts.count(mutator.mutant(number))
    made = {type(message).__name__.removesuffix("Request") for message, _ in requests(LIVE)}
    assert made == {API[key].name for key in SERVED}
    wanted = {f"{type(message).__name__} {version}" for message, version in requests(LIVE)}
    wanted |= {f"golden {each.id}" for each in frames() if each.kind == "request" and each.api_key in SERVED}
    assert wanted <= counts.apis.keys()
    assert {"a piece", "a value", "header", "records", "splice", "noise", "in pieces"} <= counts.ways.keys()
    assert {"as it is", "a conversation", "bits flipped", "bytes set", "repeated", "removed"} <= counts.ways.keys()


@pytest.mark.parametrize("each", [each for each in frames() if each.kind == "request"], ids=lambda each: each.id)
def test_pieces_are_the_message(each: Frame) -> None:
    _, message = decode_request(each.raw)
    assert b"".join(piece.data for piece in pieces(message, each.version)) == encode(message, each.version)


def test_a_mutants_bytes_come_back_from_the_file_of_suspects(tmp_path: Path) -> None:
    mutator = Mutator(SEED, LIVE)
    some = [mutator.mutant(number) for number in range(50)]
    write_mutants(tmp_path / "suspects", SEED, LIVE, some)
    assert list(read_mutants(tmp_path / "suspects", LIVE)) == some


def test_overlong_varints_are_no_varints_that_the_encoder_writes() -> None:
    assert all(len(each) > 5 or each[-1] in (0, 0x1F) for each in OVERLONG)


# --- forgeries --------------------------------------------------------------------------------------------------------


def stream_of(
    message: VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest, version: int
) -> bytes:
    raw = frame(message, version)
    return struct.pack(">i", len(raw)) + raw


def elections(cluster_id: str | None, epoch: int) -> list[bytes]:
    vote, begin, end = VoteRequest.TopicData, BeginQuorumEpochRequest.TopicData, EndQuorumEpochRequest.TopicData
    voted = vote.PartitionData(replica_epoch=epoch, replica_id=2)
    begun = begin.PartitionData(leader_id=2, leader_epoch=epoch)
    ended = end.PartitionData(leader_id=2, leader_epoch=epoch)
    return [
        stream_of(VoteRequest(cluster_id=cluster_id, topics=[vote(topic_name=TOPIC_NAME, partitions=[voted])]), 2),
        stream_of(
            BeginQuorumEpochRequest(cluster_id=cluster_id, topics=[begin(topic_name=TOPIC_NAME, partitions=[begun])]), 1
        ),
        stream_of(
            EndQuorumEpochRequest(cluster_id=cluster_id, topics=[end(topic_name=TOPIC_NAME, partitions=[ended])]), 1
        ),
    ]


@pytest.mark.parametrize("cluster_id", [CLUSTER_ID, None])
@pytest.mark.parametrize("number", range(3))
def test_elections_of_this_cluster_never_exceed_the_live_epoch(cluster_id: str | None, number: int) -> None:
    forgery = Forgery(LIVE)
    wanted = elections(cluster_id, LIVE.epoch)[number]
    for epoch in (LIVE.epoch + 1, 2**31 - 1):
        raw = elections(cluster_id, epoch)[number]
        for node_id in (LIVE.leader, LIVE.victim):
            stream = forgery.read(raw + raw, node_id)
            assert (stream.data, stream.tamed) == (wanted + wanted, 2)
    for epoch in (LIVE.epoch, LIVE.epoch - 1, -1):
        raw = elections(cluster_id, epoch)[number]
        assert forgery.read(raw, LIVE.leader).data == raw


@pytest.mark.parametrize("number", range(3))
def test_the_quiet_follower_hears_of_no_election_of_this_cluster(number: int) -> None:
    forgery = Forgery(LIVE)
    for cluster_id in (CLUSTER_ID, None):
        raw = elections(cluster_id, LIVE.epoch)[number]
        _, message = decode_request(forgery.read(raw, LIVE.quiet).data[4:])
        assert isinstance(message, VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest)
        assert message.cluster_id not in (CLUSTER_ID, None)


def test_other_clusters_elections_pass_as_they_are() -> None:
    for raw in elections("fo7WluRXSYeQxH4Icg2nDA", 2**31 - 1):
        assert Forgery(LIVE).read(raw, LIVE.quiet).data == raw


@pytest.mark.parametrize("version", range(12, 19))
def test_nobody_fetches_under_the_quiet_followers_name(version: int) -> None:
    raw = stream_of(replica_fetch(LIVE, version, LIVE.quiet), version)
    _, message = decode_request(Forgery(LIVE).read(raw, LIVE.leader).data[4:])
    assert isinstance(message, FetchRequest)
    assert LIVE.victim in (message.replica_id, message.replica_state.replica_id)
    assert LIVE.quiet not in (message.replica_id, message.replica_state.replica_id)


def test_a_stream_is_cut_as_the_node_cuts_it() -> None:
    forgery, whole = Forgery(LIVE), struct.pack(">i", 4) + b"\x7f\xff\x00\x00"
    chance = random.Random(1)
    assert (forgery.read(whole, 1).frames, forgery.read(whole, 1).ends) == (1, True)
    partial = forgery.read(whole[: chance.randrange(1, 8)], 1)
    assert (partial.is_partial, partial.ends, partial.frames) == (True, False, 0)
    for length in (-1, 2**31 - 1, 100 * 1024 * 1024 + 1):
        impossible = forgery.read(struct.pack(">i", length) + whole, 1)
        assert (impossible.ends, impossible.is_partial) == (True, False)
