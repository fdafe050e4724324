"""The log's end, lent: what goes to the borrower and what comes back. A loan ends before raft/ decides anything.

Knows the numbers, not what the borrower does with them. Source: `kernels.loan`.
"""

from collections.abc import Sequence

from fastquorum.kernels import Producers
from fastquorum.kernels.loan import LoanState, Position, Zeros
from fastquorum.storage.log.flushing import Flushing, FlushTicket
from fastquorum.storage.log.mark import LogPosition
from fastquorum.storage.log.segment import Segment
from fastquorum.storage.ports import Borrower
from fastquorum.types import Epoch, Offset


def _position(at: LogPosition) -> Position:
    return at.offset, at.segment_base, at.position


def lend(
    borrower: Borrower,
    segments: Sequence[Segment],
    flushing: Flushing,
    *,
    end_offset: Offset,
    flushed: LogPosition,
    generation: int,
    last_epoch: Epoch,
    segment_bytes: int,
    zeros: Zeros,
    producers: Producers,
) -> None:
    """Hand it over; the active segment's zeros are the borrower's, too."""
    active, ticket = segments[-1], flushing.ticket
    state = LoanState(
        start_offset=segments[0].base_offset,
        end_offset=end_offset,
        size_bytes=active.size_bytes,
        prepared_bytes=active.prepared_bytes,
        max_timestamp_ms=active.max_timestamp_ms,
        flushed=_position(flushed),
        generation=generation,
        last_epoch=last_epoch,
        ticket=(ticket.token, ticket.generation, _position(ticket.at)) if ticket is not None else None,
        is_flush_wanted=flushing.wanted,
        next_token=flushing.next_token,
    )
    active.borrower = borrower
    lent = [(each.base_offset, each.file, each.index, each.size_bytes) for each in segments]
    borrower.lend(state, lent, segment_bytes, zeros, producers)


def note(active: Segment, state: LoanState) -> None:
    """What has become of the active segment."""
    active.size_bytes = state.size_bytes
    active.prepared_bytes = state.prepared_bytes
    active.max_timestamp_ms = state.max_timestamp_ms


def take_back(borrower: Borrower, active: Segment, flushing: Flushing) -> LoanState:
    """The active segment is the log's again, and the sync under way."""
    state = borrower.take_back()
    active.borrower = None
    note(active, state)
    ticket = None
    if state.ticket is not None:
        token, generation, at = state.ticket
        ticket = FlushTicket(token, generation, LogPosition(*at))
    flushing.resume(ticket, wanted=state.is_flush_wanted, next_token=state.next_token)
    return state
