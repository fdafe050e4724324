"""What each replica is, held against what is committed.

At every place the batch is right that most voters have, of those that hold the branch that far. What differs is told
apart by what a healthy quorum can show: a leader that was deposed has records of an epoch that nobody else's log has
behind that place; a crash leaves a last batch in part. All else is divergent: two logs that have an epoch in common are
the same up to its last common record (Raft's log matching, section 5.3), and what a replica has synced, or put into a
snapshot, does not go by itself. Source: Raft, sections 5.3 and 5.4.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from fastquorum.spark.pipelines.carrying import Flags
from fastquorum.spark.pipelines.replicas import ANYTHING, DAMAGED, INSIDE, NOTHING, Ids, ReplicaLog, ReplicaVerdict
from fastquorum.spark.pipelines.torn import is_crash
from fastquorum.spark.pipelines.voting import VoteResult, VoterKey, proven_ends

_SILENT: Final = -5
"""In place of a vote."""
_TWO_MINDS: Final = -6
"""The same, of a node of which two directories contradict each other."""
LOST: Final = "replicas that have lost records may have held these"
NOBODY: Final = "no majority of the voters' directories holds the same"
_TWO: Final = "another replica has other bytes of the same epoch there, and it is not known which are right"
LATER: Final = (
    "its records there are of a later epoch than those that a majority has: it is not known which were committed"
)


class Reference(NamedTuple):
    """The right batch at every base offset."""

    ids: Ids
    """Ids of the right batches; NOTHING: not known."""
    is_contested: Flags
    """Whether as many voters have one batch there as another one."""
    epochs: Ids
    """Epochs of the right batches; NOTHING where none begins, or it is not known."""
    bodies: Ids
    """Bodies of the right batches, in the same way."""
    proven_ends: list[int]
    """Up to where each replica's batches are known to be of the branch that won, as of `voting.proven_ends`."""

    def epochs_from(self, position: int) -> frozenset[int]:
        """Return the epochs of the right batches that end there or later."""
        first = position
        while first > 0 and self.ids[first] == INSIDE:
            first -= 1
        return frozenset(self.epochs[first:].tolist()) - {NOTHING}


def reference_of(
    offsets: Ids, replicas: Sequence[ReplicaLog], seats: Sequence[VoterKey | None], won: VoteResult, known_end: int
) -> Reference:
    """Return what is right on the branch that won, by its voters; where none of them has anything, as the branch has
    it. `seats`: of each replica, as of `voting.seats_of`. `known_end`: the branch is known to be right up to there."""
    by_node: dict[VoterKey, Ids] = {}
    ends = proven_ends(replicas, won.branch)
    for each, node, end in zip(replicas, seats, ends, strict=True):
        if node is None:
            continue
        counts = (offsets < end) | _contradicts(each, replicas[won.branch], end)
        speaks = counts & ((each.ids >= 0) | (each.ids == INSIDE))
        mine = np.where(speaks, each.ids, _SILENT)
        before = by_node.get(node, np.full(len(offsets), _SILENT, np.int64))
        agree = np.where((before == _SILENT) | (before == mine), mine, _TWO_MINDS)
        by_node[node] = np.where(mine == _SILENT, before, agree)
    best = np.zeros(len(offsets), np.int64)
    rival = np.zeros(len(offsets), np.int64)
    branch = replicas[won.branch].ids
    ids = np.where((branch >= 0) | (branch == INSIDE), branch, NOTHING)
    is_split = np.zeros(len(offsets), np.bool_)
    for mine in by_node.values():
        is_split |= mine == _TWO_MINDS
        is_silent = (mine == _SILENT) | (mine == _TWO_MINDS)
        votes = np.where(is_silent, 0, sum((mine == other).astype(np.int64) for other in by_node.values()))
        is_other = mine != ids
        rival = np.where(is_other, np.maximum(rival, np.minimum(votes, best)), rival)
        is_better = votes > best
        ids, best = np.where(is_better, mine, ids), np.where(is_better, votes, best)
    is_known = offsets < known_end
    ids = np.where(is_known, ids, NOTHING)
    # As many say the one as the other; or one node's directories do, and nobody else is there.
    is_contested = is_known & (rival == best) & ((best > 0) | is_split)
    return Reference(ids, is_contested, *_contents(offsets, replicas, ids), ends)


def _contradicts(replica: ReplicaLog, branch: ReplicaLog, end: int) -> bool:
    """Return whether a replica has another batch than the branch, behind all that both have, of an epoch that both have
    there. No log of a deposed leader looks like that: it may be the right one."""
    return bool(replica.epochs_from(end) & branch.epochs_from(end))


def _contents(offsets: Ids, replicas: Sequence[ReplicaLog], ids: Ids) -> tuple[Ids, Ids]:
    """Return epochs and bodies of the batches with these ids, from whichever replica has them."""
    epochs, bodies = (np.full(len(offsets), NOTHING, np.int64) for _ in range(2))
    for each in replicas:
        its_epochs = np.full(len(offsets), NOTHING, np.int64)
        its_epochs[np.searchsorted(offsets, each.held[0])] = each.held[2]
        is_its = (ids >= 0) & (each.ids == ids)
        epochs, bodies = np.where(is_its, its_epochs, epochs), np.where(is_its, each.bodies, bodies)
    return epochs, bodies


def differ(replicas: Sequence[ReplicaLog], right: Reference) -> list[ReplicaLog]:
    """Return the replicas that have another batch, where the right one is known."""
    is_known = (right.ids != NOTHING) & ~right.is_contested
    return [
        each
        for each in replicas
        if bool((is_known & ((each.ids >= 0) | (each.ids == INSIDE)) & (each.ids != right.ids)).any())
    ]


def judge(
    offsets: Ids,
    replicas: Sequence[ReplicaLog],
    won: VoteResult,
    right: Reference,
    committed: int | None,
    why_open: str | None,
) -> None:
    """Judge all replicas but those that have lost records, which are judged already. `why_open`: why it is not known
    whether a majority had what is beyond the committed end."""
    for each, proven_end in zip(replicas, right.proven_ends, strict=True):
        if each.unreadable is not None:
            each.verdict, each.why = ReplicaVerdict.UNDECIDED, each.unreadable
        elif not each.is_trusted:
            continue
        elif committed is None:
            _judge_alone(each, offsets)
        elif not _judge_below(each, offsets, replicas[won.branch], right, proven_end, committed):
            _judge_behind(each, offsets, committed, why_open)
    if committed is not None:
        _contest_tails(offsets, replicas, committed)


def _judge_alone(replica: ReplicaLog, offsets: Ids) -> None:
    """Judge a replica where nothing proves what is right."""
    nobody = NOBODY if len(offsets) else None
    replica.verdict = ReplicaVerdict.UNDECIDED
    replica.why = "; ".join(each for each in (replica.own_fault, nobody) if each)


def _judge_below(
    replica: ReplicaLog, offsets: Ids, branch: ReplicaLog, right: Reference, proven_end: int, committed: int
) -> bool:
    """Return whether the replica has anything else where records are committed, and judge it then."""
    there = np.arange(len(offsets)) <= replica.last_position
    wanted = there & (offsets < committed) & (replica.ids != ANYTHING)
    has_one = (replica.ids >= 0) | (replica.ids == INSIDE)
    is_wrong = (replica.ids != right.ids) & (right.ids != NOTHING) & ~(right.is_contested & has_one)
    is_wrong |= replica.ids == DAMAGED
    position = _first(wanted & (is_wrong | (right.is_contested & has_one & (offsets < proven_end))))
    if position is None:
        return False
    offset = int(offsets[position])
    if replica.ids[position] in (DAMAGED, NOTHING):
        is_torn = replica.ids[position] == DAMAGED and _is_torn(replica, offset, committed)
        verdict = ReplicaVerdict.TORN if is_torn else ReplicaVerdict.DIVERGENT
        replica.judge(verdict, offset, replica.why_not(offsets, position))
    elif not is_wrong[position]:
        replica.judge(ReplicaVerdict.UNDECIDED, offset, _TWO)
    else:
        _judge_other(replica, offsets, position, right, branch.epochs_from(committed))
    return True


def _judge_other(
    replica: ReplicaLog, offsets: Ids, position: int, right: Reference, epochs_beyond: frozenset[int]
) -> None:
    """Judge a replica with good batches other than the committed ones. It is held against what is right from there on,
    and the branch's epochs beyond that: the branch may itself be wrong, or begin later."""
    offset, why = int(offsets[position]), replica.why_not(offsets, position)
    mine, theirs = replica.epochs_from(offset), right.epochs_from(position) | epochs_beyond
    is_same_body = replica.bodies[position] >= 0 and replica.bodies[position] == right.bodies[position]
    if mine & theirs or is_same_body:
        replica.judge(ReplicaVerdict.DIVERGENT, offset, f"{why}, the same but for its epoch" if is_same_body else why)
    elif replica.snapshot_end > offset:
        text = f"{why}, and its own snapshot is of all below {replica.snapshot_end}"
        replica.judge(ReplicaVerdict.DIVERGENT, offset, text)
    elif max(mine, default=-1) > max(theirs, default=-1):
        replica.judge(ReplicaVerdict.UNDECIDED, offset, LATER)
    else:
        epochs = ", ".join(map(str, sorted(mine)))
        replica.judge(
            ReplicaVerdict.STALE, offset, f"of epoch {epochs}, whose leader was deposed before it was committed"
        )


def _judge_behind(replica: ReplicaLog, offsets: Ids, committed: int, why_open: str | None) -> None:
    """Judge a replica that is right below the committed end."""
    fault = _first((replica.ids == DAMAGED) & (offsets >= committed))
    end = replica.end_offset
    if fault is not None:
        offset = int(offsets[fault])
        verdict = ReplicaVerdict.TORN if _is_torn(replica, offset, committed) else ReplicaVerdict.DIVERGENT
        replica.judge(verdict, offset, replica.why_not(offsets, fault))
    elif end > committed and why_open:
        replica.judge(ReplicaVerdict.UNDECIDED, committed, why_open)
    elif end > committed:
        replica.judge(ReplicaVerdict.TAIL, committed, replica.own_fault)
    elif end < committed:
        replica.verdict, replica.why = ReplicaVerdict.BEHIND, replica.own_fault


def judge_stale(replica: ReplicaLog, committed: int | None) -> None:
    """Judge stale tails with damage that no crash leaves: a node cuts off the tail, but does not start with that."""
    faults = sorted(offset for offset in replica.damage if not _is_torn(replica, offset, committed))
    if replica.verdict is ReplicaVerdict.STALE and faults:
        replica.judge(ReplicaVerdict.DIVERGENT, faults[0], replica.damage[faults[0]].why)


def _is_torn(replica: ReplicaLog, offset: int, committed: int | None) -> bool:
    """Return whether a crash may have left the damage there; behind all that is committed, anything at the end."""
    damage = replica.damage[offset]
    is_beyond = committed is not None and offset >= committed
    return damage.is_written and is_crash(
        offset,
        looks_torn=damage.is_torn or (damage.is_last and is_beyond),
        durable_end=replica.synced_end,
        snapshot_end=replica.snapshot_end,
    )


def _contest_tails(offsets: Ids, replicas: Sequence[ReplicaLog], committed: int) -> None:
    """Judge tails of one epoch with different bytes: no healthy quorum has both."""
    tails = [each for each in replicas if each.verdict is ReplicaVerdict.TAIL]
    for one, other in combinations(tails, 2):
        both = (one.ids >= 0) & (other.ids >= 0) & (offsets >= committed) & (one.ids != other.ids)
        if (position := _first(both)) is None:
            continue
        offset = int(offsets[position])
        if one.epochs_from(offset) & other.epochs_from(offset):
            one.judge(ReplicaVerdict.UNDECIDED, offset, _TWO)
            other.judge(ReplicaVerdict.UNDECIDED, offset, _TWO)


def _first(flags: Flags) -> int | None:
    found = np.flatnonzero(flags)
    return int(found[0]) if len(found) else None
