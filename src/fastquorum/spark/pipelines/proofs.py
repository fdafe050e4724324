"""What snapshots and marks prove of the replicas' logs: a snapshot is only ever of committed records, and below its
durable mark a log was synced.

So the newest good snapshot of a voter, or the durable mark of any replica, says how much is committed at least,
whatever is left of the logs. Committed is what a majority had on its disks: where no majority has it any more, voters
have lost it, or older copies of them were put back, and those may elect one of themselves without it. A replica that
ends below its own snapshot or mark, or has nothing though an epoch is written down beside it, has lost records; and a
log that has another epoch at its own snapshot's last offset is not the log that it is of (by Raft's log matching,
section 5.3). A log that was replaced by a snapshot begins with it, and has lost nothing; one whose files begin behind
all its snapshots has lost what was before. (A node that stopped after it fetched a snapshot, and before it replaced its
log, looks like one that has lost records, which is true of its log: when it starts, it replaces it.) Source: KIP-630.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from fastquorum.spark.pipelines.judging import LATER
from fastquorum.spark.pipelines.replicas import EMPTY, ReplicaLog, ReplicaVerdict
from fastquorum.spark.pipelines.voting import VoteResult, VoterKey
from fastquorum.types import OffsetAndEpoch

_BEHIND: Final = frozenset({ReplicaVerdict.BEHIND, ReplicaVerdict.TORN, ReplicaVerdict.STALE})
"""Verdicts on replicas that are sound, and do not hold all that is committed."""


def compare_own(replica: ReplicaLog) -> None:
    """Judge a replica divergent if its log is not the one that its own snapshots are of, or lacks its beginning."""
    if replica.lost_begin is not None and replica.unreadable is None:
        why = f"its log begins at offset {replica.lost_begin}, and no snapshot says what was before"
        replica.judge(ReplicaVerdict.DIVERGENT, 0, why)
    for snapshot in replica.snapshots:
        found = replica.batch_at(snapshot.offset - 1)
        if replica.is_trusted and found is not None and found.epoch != snapshot.epoch:
            why = (
                f"its log is of epoch {found.epoch} there, and its own snapshot of all below {snapshot.offset} is of "
                f"epoch {snapshot.epoch}"
            )
            replica.judge(ReplicaVerdict.DIVERGENT, found.base_offset, why)


class Shortage(NamedTuple):
    """Committed records that no majority holds any longer."""

    end: int
    """End of what is committed, exclusive."""
    says: str
    """What proves that, and how many have it."""
    lacking: list[ReplicaLog]
    """Voters that do not have it."""


class Proof(NamedTuple):
    """A proof of how much is committed at least."""

    key: OffsetAndEpoch
    """End of what is committed, exclusive, and the epoch of its last record."""
    source: str
    """The proof's source, in words."""


def newest_proof(replicas: Sequence[ReplicaLog], others: Sequence[ReplicaLog], won: VoteResult) -> Proof | None:
    """Return the newest snapshot of a voter, or durable mark of any replica, if it says that more is committed than the
    votes do. `others`: replicas that prove nothing, as their logs are not the committed one."""
    found = [
        proof
        for each in replicas
        if each.is_trusted and all(each is not other for other in others)
        for proof in _proofs_of(each)
    ]
    newest = max(found, default=None)
    return None if newest is None or newest.key.offset <= (won.end or 0) else newest


def _proofs_of(replica: ReplicaLog) -> Iterator[Proof]:
    owner = replica.directory if replica.node_id is None else f"node {replica.node_id}"
    if replica.snapshots and replica.is_voter:
        yield Proof(replica.snapshots[-1], f"a snapshot of {owner}")
    if (vouched := replica.vouched) is not None:
        yield Proof(vouched, f"the durable mark of {owner}")


def raised_by(proof: Proof, replicas: Sequence[ReplicaLog], won: VoteResult) -> tuple[VoteResult, int]:
    """Return the election with as much committed as a proof says, along a replica that has its last record, if there is
    one; and up to where the branch is known to be right."""
    newest = proof.key
    for at, each in enumerate(replicas):
        held = each.batch_at(newest.offset - 1)
        if each.is_trusted and held is not None and held.epoch == newest.epoch:
            return won.on_branch(at, newest.offset), newest.offset
    return won._replace(end=newest.offset), won.end or 0


def find_lacking(
    replicas: Sequence[ReplicaLog], seats: Sequence[VoterKey | None], won: VoteResult, proof: Proof
) -> Shortage | None:
    """Judge the voters that do not have what a proof says was committed, if so many have not that no majority has. None
    is accused of it while enough others have it, or may: of a voter without a directory here nobody can tell."""
    end = proof.key.offset
    has_it = [reach >= end or each.snapshot_end >= end for each, reach in zip(replicas, won.reach, strict=True)]
    holders = {seat for seat, has in zip(seats, has_it, strict=True) if has and seat is not None}
    known = f"all below {end} was committed, as {proof.source} says"
    for each in replicas:
        if each.verdict is ReplicaVerdict.UNDECIDED and each.why == LATER and (each.offset or 0) < end:
            each.judge(
                ReplicaVerdict.DIVERGENT, each.offset or 0, f"its records there are of a later epoch, and {known}"
            )
    if len(holders) + len(won.voters - set(seats)) >= won.majority:
        return None
    few = f"only {len(holders)}" if holders else "none"
    have = f"{known}, and {few} of {len(won.voters)} voters {'have' if len(holders) > 1 else 'has'} that"
    lacking = []
    for each, seat in zip(replicas, seats, strict=True):
        if seat is not None and seat not in holders:
            lacking.append(each)
            if each.verdict in _BEHIND:
                each.verdict, each.why = ReplicaVerdict.LACKING, "; ".join(filter(None, (have, each.why)))
    return Shortage(end, have, lacking)


def compare_newest(replicas: Sequence[ReplicaLog], committed: int) -> None:
    """A replica that has records of another epoch than the snapshot at the committed end, and does not say itself that
    they were committed, has a deposed leader's."""
    epochs = {
        key.epoch
        for each in replicas
        if each.is_voter and (each.is_trusted or each.has_lost)
        for key in each.snapshots
        if key.offset == committed
    }
    for each in replicas:
        if not each.is_trusted:
            continue
        held = each.batch_at(committed - 1)
        if epochs and held is not None and held.epoch not in epochs and each.verdict is not ReplicaVerdict.STALE:
            is_older = held.epoch < max(epochs)
            why = f"of epoch {held.epoch}, and a snapshot of all below {committed} is of epoch {max(epochs)}"
            each.judge(ReplicaVerdict.STALE if is_older else ReplicaVerdict.UNDECIDED, held.base_offset, why)


def compare_epochs(replica: ReplicaLog) -> None:
    """A replica whose epochs fall from one batch to the next is divergent, whatever the others have: a leader appends
    in its own epoch, which is later than that of all it has (Raft, section 5.2)."""
    base, _, epochs = replica.held
    falls = np.flatnonzero(epochs[1:] < epochs[:-1]) + 1
    if replica.is_trusted and len(falls):
        at = int(falls[0])
        why = f"a batch of epoch {epochs[at]} follows one of epoch {epochs[at - 1]}"
        replica.judge(ReplicaVerdict.DIVERGENT, int(base[at]), why)


def compare_known(replica: ReplicaLog) -> None:
    """A replica that has other records than a majority where its own node knew all to be committed is divergent: who
    has lost some is in the majority, and its node starts no more, lest they are gone everywhere."""
    is_other = replica.verdict is ReplicaVerdict.STALE and replica.offset is not None
    if is_other and (replica.offset or 0) < replica.committed_end:
        known = f"all below {replica.committed_end} was committed, as its own durable mark says"
        why = f"{known}, and a majority has other records there"
        replica.judge(ReplicaVerdict.DIVERGENT, replica.offset or 0, why)


def compare_mark(replica: ReplicaLog) -> None:
    """A replica whose durable mark names a place where none of its batches ends is divergent: one of the two is another
    directory's, and its node does not start so. Where bytes are damaged, that is told instead."""
    marked = replica.synced_end or 0
    is_damaged = any(offset < marked for offset in replica.damage)
    if replica.is_mark_of_log or replica.unreadable or is_damaged or not replica.is_trusted:
        return
    replica.judge(
        ReplicaVerdict.DIVERGENT, marked, f"its durable mark is of another log: no batch ends at offset {marked} there"
    )


def find_loss(replica: ReplicaLog) -> None:
    """A replica that ends below what it once had, or lacks files that it had, is divergent: a node that cuts its log
    off lowers its mark first, and does not start without a segment.

    What `leader-epoch-checkpoint` has counts where nothing else is left, as recovery has it: beside a mark it may be of
    records that its node has cut off since, or had not synced when it crashed."""
    end = replica.end_offset
    had = _once_had(replica)
    if had is None:
        return
    text = f"{EMPTY if end == 0 else f'its log ends at {end}'}, and {had}" if replica.refused is None else had
    if replica.is_trusted:
        replica.judge(ReplicaVerdict.DIVERGENT, end, text)
    elif replica.offset is not None and replica.offset >= end:
        replica.why = f"{text}; {replica.why}"
    replica.has_lost = True


def _once_had(replica: ReplicaLog) -> str | None:
    """Return what says that a replica had more than it has; None: nothing does."""
    end, own = replica.end_offset, replica.snapshot_end
    if replica.refused is not None:
        return replica.refused
    if end < own:
        return f"its own snapshot is of all below {own}"
    if end < (replica.synced_end or 0):
        return f"all below {replica.synced_end} had been synced"
    # An epoch's first record may never have been synced.
    if (end == 0 or replica.is_mark_lost) and (replica.last_epoch_start or 0) > end:
        return f"its leader-epoch-checkpoint has an epoch that began at offset {replica.last_epoch_start}"
    return None
