"""Batches of a producer, appended exactly once: sent again through elections until they are committed, and found again
by whoever comes later.

A batch says whose it is, and which of theirs: the leader takes it once (KIP-98), and answers another try with where it
lies. That settles what a lost answer leaves open. Blocking; one thread at a time. May not know what is in a batch.
"""

import time
from typing import Final, NamedTuple

from fastquorum.client.committed_log import CommittedLog
from fastquorum.client.connection import Deadline, NotSent
from fastquorum.client.quorum import LOOK_AGAIN_S, SILENCE_S, QuorumClient
from fastquorum.client.refusals import OutcomeUnknown
from fastquorum.errors import (
    AppendTimeout,
    NotReady,
    OffsetOutOfRange,
    Overloaded,
    ProducerFenced,
    RetriableError,
    UnknownProducer,
)
from fastquorum.kernels import Kernels
from fastquorum.node.lane.fences import NOTE_EPOCH, fence_batch
from fastquorum.storage.identity import LogKind
from fastquorum.types import Offset, OffsetAndEpoch

COMMIT_S: Final = 2.0
"""How long a leader may try to commit a batch before another one is looked for: less than SILENCE_S."""
OVERLOADED_S: Final = 0.05
"""Before the next try at a leader that is full: its queue holds some flushes' work."""

_FUTILE_EPOCH: Final = 2
"""Neither one of a first fence nor the one after NOTE_EPOCH."""


class BatchPlace(NamedTuple):
    """Where a batch lies that is committed."""

    base_offset: Offset
    is_old: bool
    """It was in the log before this producer began: somebody else appended it."""


class ResumedProducer:
    """Appends for one that may have been here before, in another process."""

    def __init__(self, client: QuorumClient, kernels: Kernels, timeout_s: float) -> None:
        """`timeout_s`: how long one batch is tried."""
        self._client = client
        self._kernels = kernels
        self._timeout_s = timeout_s
        self._log = CommittedLog(client, kernels, timeout_s)
        self._began_at: Offset = -1
        """Where the log ended before the first batch was sent: what lies below it is older."""

    def append(self, batch: bytes) -> BatchPlace:
        """Have it in the log once, and committed. It must carry its producer's id, epoch and sequence.

        Raises:
            NotReady, NotSent, Overloaded: it was never sent.
            AppendTimeout: not committed within `timeout_s`. It may still be, and may be appended again.
            OutOfOrderSequence, ProducerFenced, RecordTooLarge, UsageError: it was refused, for good.
        """
        deadline = Deadline(self._timeout_s)
        self._began_at = self._began_at if self._began_at >= 0 else self._log_end(deadline)
        is_sent, reason = False, RetriableError()
        while True:
            pause_s = LOOK_AGAIN_S
            try:
                offset = self._client.append_batch(batch, deadline, commit_timeout_s=COMMIT_S, silence_s=SILENCE_S)
                return BatchPlace(offset, offset < self._began_at)
            except OutcomeUnknown as error:
                is_sent, reason = True, error
            except (NotReady, NotSent) as error:
                reason = error
            except Overloaded as error:
                reason, pause_s = error, max(error.retry_after_s, OVERLOADED_S)
            if deadline.left_s <= pause_s:
                raise AppendTimeout(self._timeout_s) if is_sent else reason
            time.sleep(pause_s)

    def is_known(self, producer_id: int) -> bool:
        """Is anything of this producer, of epoch 0, in the log? Asked by a fence that can never be taken: the refusal
        says what is known.

        Raises as `append`.
        """
        try:
            self.append(self._fence(producer_id, _FUTILE_EPOCH, 0))
        except UnknownProducer:
            return False
        except ProducerFenced:
            return True
        raise AssertionError("a fence skipped an epoch")

    def note(self, producer_id: int, number: int) -> None:
        """Have the number in the log, for good, as the one fence of a producer that has nothing else. Consumers pass
        over it.

        Raises ProducerFenced if another number was noted before; else as `append`.
        """
        self.append(self._fence(producer_id, NOTE_EPOCH, number))

    def _fence(self, producer_id: int, epoch: int, number: int) -> bytes:
        """The same bytes whenever it is made."""
        return fence_batch(
            self._kernels, LogKind.USER, producer_id=producer_id, epoch=epoch, number=number, timestamp_ms=0
        )

    def batch_at(self, placed: BatchPlace) -> bytes:
        """A batch that is committed, as it lies in the log. NotReady, OffsetOutOfRange, CorruptionError."""
        found = self._log.fetch(placed.base_offset, placed.base_offset + 1)
        if isinstance(found, OffsetAndEpoch):
            raise OffsetOutOfRange(
                f"the log no longer holds offset {placed.base_offset}: it begins at {found.offset}",
                offset=placed.base_offset,
                start_offset=found.offset,
            )
        return found

    def _log_end(self, deadline: Deadline) -> Offset:
        """The leader's. What somebody else sent before, and has not been appended yet, is not in it. NotReady."""
        partition = self._client.describe(deadline).topics[0].partitions[0]
        return next(row.log_end_offset for row in partition.current_voters if row.replica_id == partition.leader_id)
