"""Batches of a producer: tried until they are committed, and what is said when they are not."""

from collections.abc import Sequence
from typing import cast

import pytest

from fastquorum.client.connection import Deadline, NotSent
from fastquorum.client.producer import BatchPlace, ResumedProducer
from fastquorum.client.quorum import QuorumClient
from fastquorum.client.refusals import OutcomeUnknown, refusal
from fastquorum.errors import (
    AppendTimeout,
    NotReady,
    OutOfOrderSequence,
    Overloaded,
    ProducerFenced,
    RecordTooLarge,
    UnknownProducer,
    UsageError,
)
from fastquorum.kernels import load
from fastquorum.types import LISTENER_NAME, Endpoint, Offset
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.produce import ProduceResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
Topic = DescribeQuorumResponse.TopicData
UNKNOWN = OutcomeUnknown("it closed the connection", is_sealed=True)
UNREACHABLE = NotSent(Endpoint(LISTENER_NAME, "h1", 1), "nobody listens")
LOG_END = 10


class ScriptedClient:
    """A leader whose log ends at LOG_END, and which answers each append with the next thing in `script`."""

    def __init__(self, script: Sequence[Offset | Exception]) -> None:
        self.script = list(script)

    def describe(self, _: Deadline) -> DescribeQuorumResponse:
        voter = Topic.PartitionData.ReplicaState(replica_id=1, log_end_offset=LOG_END)
        partition = Topic.PartitionData(leader_id=1, current_voters=[voter])
        return DescribeQuorumResponse(topics=[Topic(partitions=[partition])])

    def append_batch(
        self, batch: bytes, deadline: Deadline, *, commit_timeout_s: float | None = None, silence_s: float = 0.0
    ) -> Offset:
        found = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(found, Exception):
            raise found
        return found


def producer(script: Sequence[Offset | Exception], timeout_s: float = 20.0) -> ResumedProducer:
    return ResumedProducer(cast("QuorumClient", ScriptedClient(script)), load("pure"), timeout_s)


def test_it_is_sent_again_until_it_is_committed() -> None:
    script = [UNKNOWN, UNREACHABLE, Overloaded("full"), NotReady("no leader"), UNKNOWN, 12]
    assert producer(script).append(b"") == BatchPlace(12, is_old=False)


def test_what_lay_in_the_log_before_is_somebody_elses() -> None:
    mine = producer([LOG_END - 1, LOG_END, LOG_END - 5])
    assert [mine.append(b"").is_old for _ in range(3)] == [True, False, True]


@pytest.mark.parametrize("error", [UNREACHABLE, NotReady("no leader"), Overloaded("full")], ids=str)
def test_what_was_never_sent_is_said_as_what_hindered_it(error: Exception) -> None:
    with pytest.raises(type(error)):
        producer([error], 0.1).append(b"")


@pytest.mark.parametrize("script", [[UNKNOWN], [UNKNOWN, NotReady("no leader")]], ids=["unknown", "and then nobody"])
def test_what_was_sent_may_be_committed_when_it_gives_up(script: list[Exception]) -> None:
    with pytest.raises(AppendTimeout, match="it may still commit"):
        producer(script, 0.1).append(b"")


@pytest.mark.parametrize("error", [OutOfOrderSequence("x"), ProducerFenced("x"), UsageError("x")], ids=repr)
def test_what_is_refused_is_not_tried_again(error: Exception) -> None:
    with pytest.raises(type(error), match="x"):
        producer([error, 1]).append(b"")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, RecordTooLarge),
        (ErrorCode.NOT_ENOUGH_REPLICAS, Overloaded),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, OutOfOrderSequence),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFenced),
        (ErrorCode.UNKNOWN_PRODUCER_ID, UnknownProducer),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, OutcomeUnknown),
        (ErrorCode.REQUEST_TIMED_OUT, OutcomeUnknown),
        (ErrorCode.LEADER_NOT_AVAILABLE, NotReady),
        (ErrorCode.INVALID_RECORD, UsageError),
    ],
)
def test_every_refusal_is_an_error_of_ours_with_what_the_leader_said(code: ErrorCode, error: type[Exception]) -> None:
    assert type(refusal(Answer(error_code=code), 7)) is error
    if error is not OutcomeUnknown:
        assert "this and that" in str(refusal(Answer(error_code=code, error_message="this and that"), 7))
