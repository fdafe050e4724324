"""Finds what is committed, by the votes of a cluster's voters: which replica's log has it, up to where, and who votes.

A replica holds what another one does up to the last batch that both have (Raft's log matching, section 5.3), whatever
became of the batches before. A voter has one vote, however many copies of its directory there are: these and older
backups say nothing that its node did not. A directory that was formatted under another directory id than the set of
voters has for its node is an observer's, and has none (KIP-853). Who votes is found along the same log: a set is in
force from its record on, and is followed by the next one only where that is committed, by a majority of the new set
(KIP-853) as far as it can be seen. So a set that only a deposed leader has written down decides nothing behind its
record; before that its own majority counts, too, as its leader counted by it.

Directories of which nothing says whose they are stand for voters of which there is no other, one each; if there are
more of them than such voters, some are copies, and none has a vote.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np

from fastquorum.spark.pipelines.replicas import Ids, ReplicaLog
from fastquorum.storage.names import parse_segment


class VoterKey(NamedTuple):
    """A voter, as a set of voters names it, or the node that a directory is of."""

    id: int | str
    """A node's id; of a node that nothing names its directory."""
    directory_id: str | None = None
    """None: nothing says it, as at kraft.version 0, where the node's id is enough."""

    def is_same(self, other: Self) -> bool:
        """Return whether a directory of the one votes as the other."""
        ids = (self.directory_id, other.directory_id)
        return self.id == other.id and (None in ids or ids[0] == ids[1])


_EVERYONE: Final = -1
"""Offset of a set of voters that no record states."""


class VoterIds(NamedTuple):
    """A set of voters, as directories state it."""

    offset: int
    """Offset of its record; it is in force from there on."""
    ids: frozenset[VoterKey]
    is_proven: bool = False
    """A snapshot, or how the directory was formatted, says it, or its record is known to be committed by a snapshot or
    a durable mark: it needs no votes."""


class VoteResult(NamedTuple):
    """Result of the votes."""

    branch: int
    """Index of the replica whose log has all that is committed."""
    end: int | None
    """End of what is committed, exclusive; None: no majority shares anything."""
    voters: frozenset[VoterKey]
    """The set in force there."""
    reaches: Ids
    """A row for each branch: up to where each replica holds what it does, exclusive."""
    voters_of: tuple[frozenset[VoterKey], ...] = ()
    """The set in force on each branch."""

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def reach(self) -> Ids:
        """Up to where each replica holds what the winning branch does, exclusive."""
        found: Ids = self.reaches[self.branch]
        return found

    def on_branch(self, branch: int, end: int) -> Self:
        """Return the election with what is committed along another branch, or farther on."""
        return self._replace(branch=branch, end=end, voters=self.voters_of[branch])


def node_of(replica: ReplicaLog) -> VoterKey:
    return VoterKey(replica.directory) if replica.node_id is None else VoterKey(replica.node_id, replica.directory_id)


def nodes_of(replicas: Sequence[ReplicaLog]) -> list[VoterKey | None]:
    """Return the node of each replica; None: nothing of it can be read."""
    return [None if each.unreadable else node_of(each) for each in replicas]


def seats_of(nodes: Sequence[VoterKey | None], voters: frozenset[VoterKey]) -> list[VoterKey | None]:
    """Return the voter as which each directory votes; None: it has no vote."""
    by_id = {each.id: each for each in voters}
    return [_seat(node, by_id) for node in nodes]


def _seat(node: VoterKey | None, by_id: Mapping[int | str, VoterKey]) -> VoterKey | None:
    voter = None if node is None else by_id.get(node.id)
    return voter if node is not None and voter is not None and voter.is_same(node) else None


def elect(
    offsets: Ids,
    replicas: Sequence[ReplicaLog],
    nodes: Sequence[VoterKey | None],
    directory_rows: Sequence[Mapping[str, Any]],
) -> VoteResult:
    """Elect the committed branch. `directory_rows`: with directory, offset, source, voter_id and directory_id."""
    reaches = _reaches(replicas)
    ballots = [_ballot(branch, replicas, reaches, nodes, directory_rows) for branch in range(len(replicas))]
    best = max(ballots, key=lambda each: (-1 if each.end is None else each.end, *_up_to_date(replicas[each.branch])))
    for each in ballots:
        if each.end is not None and best.end is not None and _contradicts(each, best):
            shared = int(each.reach[best.branch])
            # Where the same nodes hold both, in older copies and in what runs, the nodes went on with the later epoch.
            either = [(_support(one, nodes, shared), _up_to_date(replicas[one.branch])) for one in (each, best)]
            if either[0] > either[1]:
                best = each
    return best._replace(voters_of=tuple(each.voters for each in ballots))


def _up_to_date(replica: ReplicaLog) -> tuple[int, int]:
    """Its last epoch and its end, as votes go by: of branches that end alike the first knows of most elections. What
    they are called decides nothing."""
    return max(replica.epochs_from(0), default=-1), replica.end_offset


def _count(seats: Sequence[VoterKey | None], reach: Ids, offset: int) -> int:
    """Count the voters that hold the branch up to there."""
    return len({seat for seat, end in zip(seats, reach.tolist(), strict=True) if seat is not None and end >= offset})


def _contradicts(one: VoteResult, other: VoteResult) -> bool:
    assert one.end is not None
    assert other.end is not None
    return int(one.reach[other.branch]) < min(one.end, other.end)


def _support(election: VoteResult, nodes: Sequence[VoterKey | None], shared: int) -> int:
    return _count(seats_of(nodes, election.voters), election.reach, shared + 1)


def _reaches(replicas: Sequence[ReplicaLog]) -> Ids:
    """Return a row for each branch: up to where each replica holds it."""
    count = len(replicas)
    found = np.zeros((count, count), np.int64)
    for branch, one in enumerate(replicas):
        for at, other in enumerate(replicas):
            found[branch, at] = one.end_offset if at == branch else _reach(one, other)
    return found


def _reach(branch: ReplicaLog, other: ReplicaLog) -> int:
    # What is before a log is in a snapshot, and was committed: it says nothing else than the others do.
    before = max(min(other.known_start, branch.end_offset), min(branch.known_start, other.end_offset))
    return max(before, _common_end(branch, other))


def _common_end(one: ReplicaLog, other: ReplicaLog) -> int:
    """Return the end of the last batch that both have; 0: they have none."""
    same = np.flatnonzero((one.ids == other.ids) & (one.ids >= 0))
    return int(one.ends[same[-1]]) if len(same) else 0


def proven_ends(replicas: Sequence[ReplicaLog], branch: int) -> list[int]:
    """Return up to where each replica's batches are known to be of a branch: behind them it has a batch in common with
    the branch, or with another replica that has one farther on: also one that ends before the branch may be known."""
    found = [0] * len(replicas)
    found[branch] = replicas[branch].end_offset
    open_ones = set(range(len(replicas)))
    while open_ones:
        known = max(open_ones, key=lambda at: found[at])
        open_ones.remove(known)
        for at in open_ones:
            found[at] = max(found[at], min(found[known], _common_end(replicas[known], replicas[at])))
    return found


# --- who votes along a branch -----------------------------------------------------------------------------------------


def _ballot(
    branch: int,
    replicas: Sequence[ReplicaLog],
    reaches: Ids,
    nodes: Sequence[VoterKey | None],
    directory_rows: Sequence[Mapping[str, Any]],
) -> VoteResult:
    reach = reaches[branch]
    first, *following = _sets(branch, replicas, reach, nodes, directory_rows)
    voters, pending = first.ids, None
    for each in following:
        if each.is_proven or _may_be_committed(each, voters, nodes, reach):
            voters = each.ids
        # One that is in force already changes nothing: a log says again what its snapshot does.
        elif _changes(each.ids, voters):
            pending = each
            break
    end = _majority_end(voters, nodes, reach)
    if pending is not None:
        if _changes(pending.ids, voters) == 1:
            # Its leader has counted by it since it wrote it down; nobody was elected since without one of its majority.
            end = max(end, _majority_end(pending.ids, nodes, reach))
        end = min(end, pending.offset)
    return VoteResult(branch, end or None, voters, reaches)


def _majority_end(voters: frozenset[VoterKey], nodes: Sequence[VoterKey | None], reach: Ids) -> int:
    """Return up to where a majority of voters has the branch, each in any of its directories."""
    held = dict.fromkeys(voters, 0)
    for seat, end in zip(seats_of(nodes, voters), reach.tolist(), strict=True):
        if seat is not None:
            held[seat] = max(held[seat], end)
    ends = sorted(held.values(), reverse=True)
    return ends[len(voters) // 2] if ends else 0


def _changes(one: frozenset[VoterKey], other: frozenset[VoterKey]) -> int:
    """Count the voters that join or leave from one set to the other."""
    return seats_of(list(one), other).count(None) + seats_of(list(other), one).count(None)


def _may_be_committed(
    each: VoterIds, before: frozenset[VoterKey], nodes: Sequence[VoterKey | None], reach: Ids
) -> bool:
    """Return whether a set of voters can be in force behind its record: not enough of its voters lack it. A set that
    differs by more than a voter, which no leader makes at once, needs a majority of the former voters here, too."""
    behind = each.offset + 1
    seats = seats_of(nodes, each.ids)
    absent = len(each.ids - set(seats))
    if _count(seats, reach, behind) + absent <= len(each.ids) // 2:
        return False
    if _changes(each.ids, before) <= 1:
        return True
    former = seats_of(nodes, before)
    return _count(former, reach, behind) > len(set(former) - {None}) // 2


def _sets(
    branch: int,
    replicas: Sequence[ReplicaLog],
    reach: Ids,
    nodes: Sequence[VoterKey | None],
    directory_rows: Sequence[Mapping[str, Any]],
) -> list[VoterIds]:
    """Return the sets of voters along a branch, ascending; one at least. A snapshot that ends at an offset states the
    set before the record there."""
    places = {each.directory: at for at, each in enumerate(replicas)}
    sets: dict[tuple[int, int, bool], set[VoterKey]] = {}
    for row in directory_rows:
        if row.get("voter_id") is not None:  # else it is a row of damage
            is_logged = parse_segment(row.get("source") or "") is not None
            key = (places.get(row["directory"], branch), row["offset"], is_logged)
            sets.setdefault(key, set()).add(VoterKey(row["voter_id"], row.get("directory_id")))
    found: dict[tuple[int, bool], VoterIds] = {}
    for (at, offset, is_logged), ids in sorted(sets.items(), key=lambda each: each[0]):
        is_proven = not is_logged or replicas[at].proven_end > offset
        is_stated = not is_logged or reach[at] > offset
        # What the branch says of itself comes before what others say.
        if is_stated and (at == branch or (offset, is_logged) not in found):
            found[offset, is_logged] = VoterIds(offset, frozenset(ids), is_proven)
    if not found:
        everyone = frozenset(VoterKey(node.id) for node in nodes if node is not None)
        return [VoterIds(_EVERYONE, everyone, is_proven=True)]
    names = [node for node in nodes if node is not None and isinstance(node.id, str)]
    return [_with_nameless(found[key], names, nodes) for key in sorted(found)]


def _with_nameless(each: VoterIds, names: Sequence[VoterKey], nodes: Sequence[VoterKey | None]) -> VoterIds:
    """Put directories that nothing names in place of voters that have none."""
    missing = sorted(each.ids - set(seats_of(nodes, each.ids)), key=lambda node: str(node.id))
    standing = dict(zip(missing, names, strict=False)) if len(names) <= len(missing) else {}
    return each._replace(ids=frozenset(standing.get(node, node) for node in each.ids))
