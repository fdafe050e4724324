"""What snapshots prove of the replicas' logs: a snapshot is only ever of committed records.

So the newest good one of a voter says how much is committed at least, whatever is left of the logs; who ends below its
own has lost records; and a log that has another epoch at a snapshot's last offset is not the log that it is of (by
Raft's log matching, section 5.3). A log that was replaced by a snapshot begins with it, and has lost nothing. (A node
that stopped after it fetched a snapshot, and before it replaced its log, looks like one that has lost records, which is
true of its log: when it starts, it replaces it.) Source: KIP-630.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from fastquorum.spark.pipelines.replicas import ANYTHING, DAMAGED, EMPTY, NOTHING, Ids, Replica
from fastquorum.types import OffsetAndEpoch


def judge_by_snapshots(offsets: Ids, replicas: Sequence[Replica], shared_end: int | None) -> int | None:
    """The end of what is committed: what a majority shares, or the newest snapshot if that has more; None as
    `shared_end`. Who contradicts a snapshot, or has lost records, is divergent from then on."""
    for each in replicas:
        _compare_own(each)
    newest = _newest(offsets, replicas)
    bound = shared_end if newest is None or shared_end is None else max(shared_end, newest.offset)
    for each in replicas:
        _find_loss(each, bound)
    if newest is not None and shared_end is not None and newest.offset > shared_end:
        _compare(offsets, replicas, shared_end, newest)
    return bound


def _compare_own(replica: Replica) -> None:
    for snapshot in replica.snapshots:
        found = replica.batch_at(snapshot.offset - 1)
        if replica.is_trusted and found is not None and found.epoch != snapshot.epoch:
            replica.accuse(found.base_offset, _another_epoch(found.epoch, "its own snapshot", snapshot))


def _newest(offsets: Ids, replicas: Iterable[Replica]) -> OffsetAndEpoch | None:
    """Of a voter's; not of one that holds other batches than the majority, or than its own snapshots say."""
    found = [
        each.snapshots[-1] for each in replicas if each.snapshots and each.is_voter and not _has_others(each, offsets)
    ]
    return max(found, default=None)


def _has_others(replica: Replica, offsets: Ids) -> bool:
    if replica.is_trusted or replica.offset is None:
        return False
    found = replica.ids[offsets == replica.offset]
    return bool((found >= 0).any())


def _find_loss(replica: Replica, bound: int | None) -> None:
    own = replica.snapshots[-1].offset if replica.snapshots else 0
    end = replica.end_offset
    if end >= own or (bound is not None and end >= bound):
        return
    text = EMPTY if end == 0 else f"its log ends at {end}"
    text = f"{text}, and its own snapshot is of all below {own}"
    if replica.is_trusted:
        replica.accuse(end, text)
    elif replica.offset is not None and replica.offset >= end:
        replica.why = f"{text}; {replica.why}"
    replica.has_lost = True


def _compare(offsets: Ids, replicas: Sequence[Replica], start: int, newest: OffsetAndEpoch) -> None:
    """What they hold between the end of what a majority shares and the newest snapshot's. Who reaches that, in its
    epoch and without a hole, has all that is committed."""
    begin, stop = np.searchsorted(offsets, [start, newest.offset]).tolist()
    holders = [each for each in replicas if each.is_trusted and _holds(each, newest, begin, stop)]
    for each in replicas:
        if not each.is_trusted:
            continue
        mine = each.ids[begin:stop]
        wrong = mine == DAMAGED
        if holders:
            theirs = holders[0].ids[begin:stop]
            goes_on = np.arange(begin, stop) <= np.flatnonzero(each.ids != NOTHING).max(initial=-1)
            wrong |= (mine != theirs) & (mine != ANYTHING) & (theirs != ANYTHING) & goes_on
        last = each.batch_at(newest.offset - 1)
        if wrong.any():
            position = begin + int(np.argmax(wrong))
            each.accuse(int(offsets[position]), each.why_not(offsets, position))
        elif last is not None and last.epoch != newest.epoch:
            each.accuse(last.base_offset, _another_epoch(last.epoch, "the newest snapshot", newest))


def _holds(replica: Replica, newest: OffsetAndEpoch, begin: int, stop: int) -> bool:
    last = replica.batch_at(newest.offset - 1)
    is_whole = not bool((replica.ids[begin:stop] == DAMAGED).any())
    return is_whole and last is not None and last.epoch == newest.epoch


def _another_epoch(epoch: int, whose: str, snapshot: OffsetAndEpoch) -> str:
    return f"its log is of epoch {epoch} there, and {whose} of all below {snapshot.offset} is of epoch {snapshot.epoch}"
