"""A voter that is of another cluster: nothing comes of it by itself, so whoever runs the node is told."""

import pytest

from fastquorum.config import MS
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse
from tests.node.rig import Rig, endpoint

ROUNDS = 200
"""So often it is given time to ask again: it backs off."""


def refused(rig: Rig, code: ErrorCode) -> int:
    """Let it ask for votes, or who leads, and be refused by whomever it asks; how often it was."""
    count = 0
    for _ in range(ROUNDS):
        rig.pass_time(100 * MS)
        rig.establish()
        for connection in list(rig.transport.open):
            for header, message in rig.requests_on(connection):
                if isinstance(message, VoteRequest):
                    rig.reply(connection, header, VoteResponse(error_code=code))
                    count += 1
                elif isinstance(message, FetchRequest):
                    rig.reply(connection, header, FetchResponse(error_code=code))
                    count += 1
    return count


def test_a_voter_of_another_cluster_is_told_of_once_however_often_it_refuses() -> None:
    rig = Rig(1, 2, 3)
    assert refused(rig, ErrorCode.INCONSISTENT_CLUSTER_ID) > 4
    assert sorted(rig.listener.foreign) == [(2, endpoint(2)), (3, endpoint(3))]
    assert not rig.replica.stopped
    text = str(rig.replica.not_leader())
    assert all(f"node {other} at host{other}:900{other}" in text for other in (2, 3)), "so is who embeds the node"
    assert "another cluster" in text


def test_who_leads_is_not_hindered_by_a_voter_of_another_cluster() -> None:
    rig = Rig(1, 2, 3)
    refused(rig, ErrorCode.INCONSISTENT_CLUSTER_ID)
    rig.follow(2, epoch=50)
    assert "another cluster" not in str(rig.replica.not_leader())


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REQUEST])
def test_a_voter_that_refuses_for_another_reason_is_not_said_to_be_of_another_cluster(code: ErrorCode) -> None:
    rig = Rig(1, 2, 3)
    assert refused(rig, code) > 2
    assert rig.listener.foreign == []
