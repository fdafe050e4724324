"""What nothing comes of by itself: whoever runs the node is told, once for each thing, and the node goes on."""

import pytest

from fastquorum.config import MS
from fastquorum.node.notices import AGAIN_US, NOTICES_MAX, Notices
from fastquorum.types import METADATA_TOPIC_ID
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.records.control_values import VotersRecord
from tests.node.rig import FakeListener, Rig
from tests.node.test_replica_callers import vote
from tests.storage.test_voter_sets import FAULTS, batch_with, broken, entry


def answer_fetches(rig: Rig, connection: int, records: bytes) -> int:
    """Whatever the follower fetches on this connection is answered by these records; how often it was."""
    requests = rig.requests_on(connection) if connection in rig.transport.open else []
    data = FetchResponse.FetchableTopicResponse
    for header, message in requests:
        assert isinstance(message, FetchRequest)
        partition = data.PartitionData(
            records=records,
            high_watermark=0,
            log_start_offset=0,
            current_leader=data.PartitionData.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        )
        rig.reply(
            connection, header, FetchResponse(responses=[data(topic_id=METADATA_TOPIC_ID, partitions=[partition])])
        )
    return len(requests)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_voter_set_of_which_no_quorum_can_be_made_is_refused_with_words(fault: str) -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow(2, epoch=5)
    records = batch_with(rig.kernels, broken(fault))
    refused = 0
    for _ in range(20):
        refused += answer_fetches(rig, connection, records)
        rig.pass_time(50 * MS)
        rig.establish()
        connection = rig.outgoing(2)[-1] if rig.outgoing(2) else -1
        if rig.shell._fetch_link is not None:
            connection = rig.shell._fetch_link.connection
    assert refused > 1, "it is asked for again"
    assert rig.replica.error is None
    assert rig.log.end_offset == 0
    assert rig.replica.raft.voters.ids == (1, 2, 3)
    ((event, sentence),) = rig.listener.notices
    assert event == "answer_refused"
    assert "node 2" in sentence
    assert "VotersRecord" in sentence


def test_a_voter_set_of_any_size_is_taken_in() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow(2, epoch=5)
    record = VotersRecord(voters=[entry(node_id) for node_id in range(1, 41)])
    assert answer_fetches(rig, connection, batch_with(rig.kernels, record))
    assert rig.replica.raft.voters.ids == tuple(range(1, 41))
    assert rig.listener.notices == []


def test_an_epoch_that_a_voter_cannot_have_reached_is_told_of_once() -> None:
    rig = Rig(1, 2, 3)
    for _ in range(3):
        rig.ask(rig.accept(), vote(epoch=2**31 - 1), 2)
    assert rig.replica.raft.epoch == 0
    ((event, sentence),) = rig.listener.notices
    assert event == "epoch_not_believed"
    assert "node 2" in sentence
    assert str(2**31 - 1) in sentence


def test_what_changes_is_told_of_a_node_once_a_minute_and_keeps_nothing_else_from_being_told() -> None:
    listener = FakeListener()
    notices = Notices(listener)
    for epoch in range(1_000):
        notices.give("epoch_not_believed", 3, f"epoch {epoch}", epoch)
    notices.give("epoch_not_believed", 2, "of another node", 1_000)
    notices.give("double", 3, "of another kind", 1_000)
    notices.give("epoch_not_believed", 3, "a minute later", AGAIN_US)
    assert [sentence for _, sentence in listener.notices] == [
        "epoch 0",
        "of another node",
        "of another kind",
        "a minute later",
    ]


def test_what_is_the_same_is_told_once() -> None:
    listener = FakeListener()
    notices = Notices(listener)
    for minute in range(100):
        notices.give("double", 3, "it is so", minute * AGAIN_US)
    assert listener.notices == [("double", "it is so")]


def test_what_is_told_within_a_minute_has_a_bound() -> None:
    listener = FakeListener()
    notices = Notices(listener)
    for node_id in range(3 * NOTICES_MAX):
        notices.give("records_lost", node_id, f"of node {node_id}", 0)
    assert len(listener.notices) == NOTICES_MAX
    notices.give("records_lost", 2 * NOTICES_MAX, "later", AGAIN_US)
    assert listener.notices[-1] == ("records_lost", "later")
