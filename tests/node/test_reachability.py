"""Whom a replica cannot reach, since when and why; and why leadership changed, as it is told."""

import pytest

from fastquorum.node.causes import WORDS, reason_of
from fastquorum.node.network.reachability import REPORT_AFTER_US, STALE_US, Reachability, unreachable_text
from fastquorum.node.ports import Unreachable
from fastquorum.raft.events import FetchResponseReceived, ResponseReceived
from fastquorum.raft.transitions import Cause
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.quorum import EndQuorumEpochResponse, VoteResponse

from .rig import FakeListener, Rig

AT = Endpoint("CONTROLLER", "h2", 9093)


class Connections:
    """That say what the test has them say."""

    def __init__(self) -> None:
        self.found: list[Unreachable] = []

    def unreachable(self) -> list[Unreachable]:
        return self.found


def watched() -> tuple[Reachability, Connections, FakeListener]:
    connections, listener = Connections(), FakeListener()

    def endpoint_of(_: NodeId) -> Endpoint:
        return AT

    return Reachability(connections, listener, endpoint_of), connections, listener  # type: ignore[arg-type]


def refused(node_id: NodeId, since_us: Micros, tried_us: Micros = 0) -> Unreachable:
    return Unreachable(node_id, AT, "Connection refused", since_us, max(since_us, tried_us))


def test_a_node_that_is_back_soon_is_not_told_of() -> None:
    reach, connections, listener = watched()
    connections.found = [refused(2, 1_000)]
    reach.look(2_000)
    assert reach.unreachable == (refused(2, 1_000),), "whoever asks is told at once"
    connections.found = []
    reach.look(1_000 + REPORT_AFTER_US)
    assert (reach.unreachable, listener.reach) == ((), [])


def test_each_node_is_told_of_once_until_it_is_back() -> None:
    reach, connections, listener = watched()
    for now in range(0, 5 * REPORT_AFTER_US, REPORT_AFTER_US // 2):
        connections.found = [refused(2, 0, now), refused(3, 0, now)]
        reach.look(now)
    assert listener.reach == [(2, False), (3, False)]
    connections.found = [refused(3, 0, 6 * REPORT_AFTER_US)]
    reach.look(6 * REPORT_AFTER_US)
    assert listener.reach[2:] == [(2, True)]
    connections.found = [refused(2, 6 * REPORT_AFTER_US), refused(3, 0, 7 * REPORT_AFTER_US)]
    reach.look(7 * REPORT_AFTER_US)
    assert listener.reach[3:] == [(2, False)]


def test_nothing_is_said_of_a_node_that_nobody_tries_to_reach_any_more() -> None:
    reach, connections, listener = watched()
    connections.found = [refused(2, 0, REPORT_AFTER_US)]
    reach.look(REPORT_AFTER_US)
    reach.look(REPORT_AFTER_US + STALE_US)
    assert (reach.unreachable, listener.reach) == ((), [(2, False)]), "neither that it is there, nor that it is not"


def test_it_is_said_who_since_when_and_why() -> None:
    reach, connections, _ = watched()
    connections.found = [refused(2, 1_000_000), Unreachable(-2, AT, "the name is not known", 2_000_000, 5_000_000)]
    reach.look(5_200_000)
    assert reach.text() == (
        "the bootstrap server at h2:9093 cannot be reached for 3.2 s: the name is not known; "
        "node 2 at h2:9093 cannot be reached for 4.2 s: Connection refused"
    )
    assert unreachable_text((), 0) == ""


def answered(error: ErrorCode, partition_error: ErrorCode = ErrorCode.NONE) -> ResponseReceived:
    """Voter 2 answers a Vote so."""
    partition = VoteResponse.TopicData.PartitionData(error_code=partition_error)
    topics = [VoteResponse.TopicData(partitions=[partition])]
    return ResponseReceived(2, 0, VoteResponse(error_code=error, topics=topics))


def test_a_voter_of_another_cluster_is_named_though_it_is_reached() -> None:
    reach, _, listener = watched()
    reach.on_event(answered(ErrorCode.INCONSISTENT_CLUSTER_ID), 0)
    reach.look(REPORT_AFTER_US)
    assert "of another cluster" in reach.text()
    assert listener.reach == [], "that is told by itself"
    reach.on_event(answered(ErrorCode.NONE), 2 * REPORT_AFTER_US)
    reach.look(2 * REPORT_AFTER_US)
    assert reach.text() == ""


def test_a_voter_at_whose_address_another_one_answers_is_named_though_it_is_reached() -> None:
    reach, _, listener = watched()
    for now in range(0, 2 * REPORT_AFTER_US, REPORT_AFTER_US // 4):
        reach.on_event(answered(ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY), now)
        reach.on_event(FetchResponseReceived(2, -1, FetchResponse(), None), now)  # which names no voter
        reach.look(now)
    assert "node 2 at h2:9093 cannot be reached" in reach.text()
    assert "another node, or one with another directory id, answers there" in reach.text()
    assert listener.reach == [(2, False)]
    reach.on_event(answered(ErrorCode.NONE), 2 * REPORT_AFTER_US)
    reach.look(2 * REPORT_AFTER_US)
    assert (reach.text(), listener.reach[1:]) == ("", [(2, True)])


@pytest.mark.parametrize(
    "answer",
    [
        EndQuorumEpochResponse(),
        answered(ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH).message,
        answered(ErrorCode.VOTER_NOT_FOUND).message,
    ],
)
def test_an_answer_that_any_node_gives_takes_nothing_back(answer: Message) -> None:
    reach, _, listener = watched()
    reach.on_event(answered(ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY), 0)
    reach.look(REPORT_AFTER_US)
    reach.on_event(ResponseReceived(2, 0, answer), REPORT_AFTER_US)
    reach.look(REPORT_AFTER_US)
    assert ("another node" in reach.text(), listener.reach) == (True, [(2, False)])


def test_a_refusal_after_a_long_time_without_one_begins_anew() -> None:
    reach, _, listener = watched()
    for now in (0, 10 * STALE_US):
        reach.on_event(answered(ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY), now)
    assert [each.since_us for each in reach.unreachable] == [10 * STALE_US]
    assert listener.reach == []


@pytest.mark.parametrize("now_at", [Endpoint("CONTROLLER", "right", 9093), None])
def test_a_voter_that_is_known_by_another_address_by_now_or_is_none_is_not_named(now_at: Endpoint | None) -> None:
    listener = FakeListener()
    at = [AT, now_at]
    reach = Reachability(Connections(), listener, lambda _: at[0])  # type: ignore[arg-type]
    reach.on_event(answered(ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY), 0)
    reach.look(REPORT_AFTER_US)
    del at[0]
    reach.look(REPORT_AFTER_US)
    assert (reach.text(), listener.reach) == ("", [(2, False)]), "neither that it is there, nor that it is not"


def test_nothing_is_said_of_a_voter_that_was_not_asked_for_long() -> None:
    reach, _, listener = watched()
    reach.on_event(answered(ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY), 0)
    reach.look(REPORT_AFTER_US)
    reach.look(STALE_US)
    assert (reach.text(), listener.reach) == ("", [(2, False)])


def test_every_cause_has_words() -> None:
    assert WORDS.keys() == set(Cause)
    assert len(set(WORDS.values())) == len(Cause)
    assert reason_of([]) == ""
    assert reason_of([Cause.FETCH_TIMEOUT, Cause.PRE_VOTES_WON]) == (
        "the leader was silent for the fetch timeout, then a majority would vote for this node"
    )


def test_the_listener_hears_why_a_leader_leads_no_longer() -> None:
    rig = Rig(1, 2, 3)
    rig.lead()
    assert rig.listener.reasons[-1].endswith(WORDS[Cause.VOTES_WON])
    rig.pass_time(rig.config.check_quorum_us + 1)
    assert rig.listener.leaderships[-1][1:] == (-1, False)
    assert rig.listener.reasons[-1].startswith(WORDS[Cause.QUORUM_LOST])


@pytest.mark.parametrize("reason", ["Connection refused", ""])
def test_who_asks_a_replica_without_a_leader_hears_whom_it_cannot_reach(reason: str) -> None:
    rig = Rig(1, 2, 3)
    while not rig.transport.begun:
        rig.pass_time(100_000)
    for connection in list(rig.transport.begun):
        endpoint = rig.transport.open[connection]
        assert endpoint is not None
        rig.transport.errors[endpoint] = reason
        rig.transport.begun.remove(connection)
        rig.replica.on_disconnected(connection, rig.now_us)
    error = rig.replica.not_leader()
    assert (reason or "the connection ended") in error.hindrance
    assert "node " in error.hindrance
