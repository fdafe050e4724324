"""The demo's client: appends record by record, and after a failure finds out what became of the record in hand."""

import time
from typing import Final, NamedTuple

from fastquorum.client.connection import Deadline, NotSent
from fastquorum.client.quorum import QuorumClient
from fastquorum.client.refusals import OutcomeUnknown
from fastquorum.errors import FatalError, NotReady, Overloaded
from fastquorum.types import Offset

COMMIT_S: Final = 2.0
"""How long a leader may try to commit a record before it has to say that it does not know."""
AGAIN_S: Final = 0.02


class Acknowledged(NamedTuple):
    """A record that the quorum has promised to keep."""

    offset: Offset
    value: bytes


class Appender:
    """One record in hand at a time, and nothing else appends: so all that is committed behind the last acknowledged
    record is the one in hand.
    """

    def __init__(self, client: QuorumClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self.ledger: list[Acknowledged] = []
        self.commit_us: list[int] = []
        """For each record the microseconds from sending it first to knowing that it is committed."""
        self.settled = 0
        """Appends whose outcome was unknown at first."""

    def append(self, value: bytes) -> None:
        """Append one record, exactly once. Raises what no waiting helps against."""
        began = time.monotonic_ns()
        offset = self._append_once(value)
        self.commit_us.append((time.monotonic_ns() - began) // 1000)
        self.ledger.append(Acknowledged(offset, value))

    def _append_once(self, value: bytes) -> Offset:
        while True:
            try:
                return self._client.append([value], self._deadline, commit_timeout_s=COMMIT_S)
            except OutcomeUnknown as error:
                offset = self._settle(value, error)
                if offset is not None:
                    return offset
            except (NotSent, NotReady, Overloaded):
                if self._deadline.is_over:
                    raise
                time.sleep(AGAIN_S)

    def _settle(self, value: bytes, error: OutcomeUnknown) -> Offset | None:
        """Where the record in hand has got to; None if it is certain that it is nowhere and never will be."""
        if not error.is_sealed:
            raise error  # the node may still act on it, so nothing that is read now would settle it
        self.settled += 1
        end = self._client.barrier(self._deadline)
        start = self.ledger[-1].offset + 1 if self.ledger else 0
        found = [record for _, record in self._client.read_all(start, end, self._deadline)]
        match found:
            case []:
                return None
            case [record] if record.value == value:
                return record.offset
            case _:
                raise FatalError(
                    f"after offset {start - 1} the quorum holds {len(found)} records that were not appended"
                )
