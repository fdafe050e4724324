"""One Fetch under way on a connection: a second one, sent before the first was answered, would seem to the leader to
answer what it was sent for the first, and confirm a read barrier (lane rule 7)."""

from fastquorum.config import MS, SECOND, QuorumConfig
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse
from tests.lane.builders import encode_values, fetch_response
from tests.node.rig import Rig

CONFIG = QuorumConfig(preallocate_bytes=4096, request_timeout_us=60 * SECOND)
"""Nothing is given up because it was not answered for long."""


def fetches(rig: Rig, connection: int) -> list[int]:
    """Correlation ids of the Fetches sent on it since the last look."""
    return [
        header.correlation_id for header, message in rig.requests_on(connection) if isinstance(message, FetchRequest)
    ]


def refuse_votes(rig: Rig, epoch: int, leader: int) -> None:
    """Whoever is asked for a pre-vote says who leads."""
    data = VoteResponse.TopicData
    partition = data.PartitionData(leader_id=leader, leader_epoch=epoch)
    response = VoteResponse(topics=[data(topic_name="__cluster_metadata", partitions=[partition])])
    for connection in (*rig.outgoing(2), *rig.outgoing(3)):
        for header, message in rig.requests_on(connection):
            if isinstance(message, VoteRequest):
                rig.reply(connection, header, response)


def stand_in_vain(rig: Rig) -> None:
    """Its leader is silent for the fetch timeout; the others hear it, and say so."""
    rig.pass_time(rig.config.fetch_timeout_us + MS)
    assert rig.replica.raft.role == "prospective"
    for _ in range(20):
        rig.establish()
        refuse_votes(rig, 5, 2)
        if rig.replica.raft.role == "follower":
            return
        rig.pass_time(50 * MS)
    raise AssertionError("it does not follow again")


def test_who_follows_again_while_a_fetch_is_under_way_fetches_on_a_new_connection() -> None:
    rig = Rig(1, 2, 3, config=CONFIG)
    before = rig.follow(2, epoch=5)
    assert len(fetches(rig, before)) == 1
    stand_in_vain(rig)
    rig.establish()
    assert before not in rig.transport.open
    assert rig.shell._fetch_link is not None
    after = rig.shell._fetch_link.connection
    assert after != before
    assert len(fetches(rig, after)) == 1


def test_who_follows_again_with_nothing_under_way_keeps_its_connection() -> None:
    rig = Rig(1, 2, 3, config=CONFIG)
    connection = rig.follow(2, epoch=5)
    (correlation_id,) = fetches(rig, connection)
    rig.replica.on_frame(connection, fetch_response(correlation_id, leader_id=3), rig.now_us)  # of no use
    rig.pass_time(rig.config.retry_backoff_us)
    assert rig.shell._fetch_link is not None
    assert rig.shell._fetch_link.connection == connection
    assert len(fetches(rig, connection)) == 1


def refuse_an_answer_for_want_of_room(rig: Rig, connection: int) -> None:
    """Its next Fetch is answered with records for which there is no room."""
    (correlation_id,) = fetches(rig, connection)
    values = encode_values([bytes(8_192)], base_offset=rig.log.end_offset, leader_epoch=5, timestamp_ms=1)
    rig.disk.room_bytes = 0
    rig.replica.on_frame(connection, fetch_response(correlation_id, values, leader_id=2), rig.now_us)
    assert fetches(rig, connection) == [], "not at once"
    rig.pass_time(rig.config.fetch_timeout_us // 4)
    rig.establish()


def test_a_lane_that_is_closed_behind_an_answer_that_it_did_not_take_keeps_its_connection() -> None:
    rig = Rig(1, 2, 3, config=CONFIG)
    connection = rig.follow(2, epoch=5)
    for _ in range(3):
        refuse_an_answer_for_want_of_room(rig, connection)
        assert rig.shell.may_fetch_on(connection)


def test_an_answer_that_was_not_taken_stands_for_its_own_fetch_only() -> None:
    rig = Rig(1, 2, 3, config=CONFIG)
    connection = rig.follow(2, epoch=5)
    refuse_an_answer_for_want_of_room(rig, connection)
    assert len(fetches(rig, connection)) == 1, "another one is under way"
    rig.disk.room_bytes = 1_000_000
    stand_in_vain(rig)
    assert not rig.shell.may_fetch_on(connection)
    assert connection not in rig.transport.open
