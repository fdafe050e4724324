"""What a leader answered to an append that it did not take, or does not know the outcome of, as an error.

Source: the Kafka protocol guide (Produce); KIP-98.
"""

from dataclasses import dataclass

from fastquorum.errors import (
    NotReady,
    OutOfOrderSequence,
    Overloaded,
    ProducerFenced,
    RecordTooLarge,
    RetriableError,
    UnknownProducer,
    UsageError,
)
from fastquorum.kernels import BATCH_BYTES_MAX
from fastquorum.wire import ErrorCode
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.produce import ProduceResponse

Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


@dataclass(eq=False)
class OutcomeUnknown(RetriableError):
    """An append was sent, and whether it is, or will be, committed is not known."""

    reason: str
    is_sealed: bool
    """Whether no leader will append it any more, if none has; only then can `barrier` settle it."""

    def __str__(self) -> str:
        return f"the outcome of the append is unknown ({self.reason}): read the log before sending it again"


def refusal(answer: Answer, size_bytes: int) -> RetriableError | UsageError:
    """Return the error for a refused batch. After OutcomeUnknown and NotReady another node may know more."""
    detail = answer.error_message or error_name(answer.error_code)
    match answer.error_code:
        case ErrorCode.MESSAGE_TOO_LARGE:
            return RecordTooLarge(answer.error_message or "", size_bytes=size_bytes, limit_bytes=BATCH_BYTES_MAX)
        case ErrorCode.NOT_ENOUGH_REPLICAS:
            return Overloaded(detail)
        case ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return OutOfOrderSequence(detail)
        case ErrorCode.INVALID_PRODUCER_EPOCH:
            return ProducerFenced(detail)
        case ErrorCode.UNKNOWN_PRODUCER_ID:
            return UnknownProducer(detail)
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.REQUEST_TIMED_OUT | ErrorCode.KAFKA_STORAGE_ERROR:
            # A leader that is none any more may have had it in its log already, and its followers too.
            return OutcomeUnknown(error_name(answer.error_code), is_sealed=True)
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION | ErrorCode.UNKNOWN_TOPIC_ID | ErrorCode.LEADER_NOT_AVAILABLE:
            return NotReady(detail)
        case _:
            return UsageError(f"the quorum refuses the records: {detail}")
