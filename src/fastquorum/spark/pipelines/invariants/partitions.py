"""Partitions, all at once: who leads, who is in sync, and by which epochs.

A PartitionChangeRecord says no epoch: it stands for one more of the partition, and one more of the leader if it names
one, even the same. So epochs can be wrong only where a whole PartitionRecord says them, or in a snapshot. Source:
KIP-631, KIP-841, KIP-966; Kafka `PartitionRegistration`, `ReplicationControlManager`.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.carrying import UNSAID, Flags, Ints, ValueHistory, carried, pairs, spread, stated_at
from fastquorum.spark.pipelines.invariants.brokers import FENCED, GONE, SHUTTING_DOWN, WORDS, BrokerStates
from fastquorum.spark.pipelines.invariants.facts import CODES, TYPES, codes_of
from fastquorum.spark.pipelines.invariants.findings import FindingKind, LogFinding
from fastquorum.spark.pipelines.invariants.lists import Lists
from fastquorum.types import NO_NODE

_TOPIC: Final = CODES["TOPIC_RECORD"]
_REMOVAL: Final = CODES["REMOVE_TOPIC_RECORD"]
_RECORD: Final = CODES["PARTITION_RECORD"]
_CHANGE: Final = CODES["PARTITION_CHANGE_RECORD"]
_CREATED: Final = 0
_CHANGED: Final = 1
_REMOVED: Final = 2
_THERE: Final = 1
_GONE: Final = 2
_NEVER: Final = np.iinfo(np.int64).max


class _Lives(NamedTuple):
    """Rows by partition, then time: what a record states, what the partition then is. UNSAID: not known."""

    rows: Ints
    kinds: Ints
    starts: Ints
    owners: Ints
    is_first: Flags
    is_there: Flags
    was_there: Flags
    leaders_stated: Ints
    leaders: Ints
    isr: Ints
    """Row of the facts that stated it last; likewise `replicas`."""
    replicas: Ints
    epochs: Ints
    """Epoch of the partition, before what a PartitionRecord states now; likewise of the leader."""
    leader_epochs: Ints
    is_unknown: Flags
    """Whether no record ever stated what the partition is."""


class PartitionAudit:
    """Audits partitions, from facts that count, in order."""

    def __init__(self, rows: pa.Table, *, is_whole: bool, base_count: int) -> None:
        """`base_count`: how many rows come first that are of the snapshot before the log."""
        self.table = rows
        self.is_whole = is_whole
        self._base_count = base_count
        self._isr, self._replicas, self._elr = (Lists.of(rows[name]) for name in ("isr", "replicas", "elr"))
        self._names = _topic_names(rows)
        types = self._types = codes_of(rows)
        self._ids = np.asarray(rows["id"].combine_chunks().dictionary_encode().indices.fill_null(-1), np.int64)
        is_topic, is_removal = types == _TOPIC, types == _REMOVAL
        at = np.flatnonzero(is_topic | is_removal)
        self._topics = ValueHistory.of(self._ids[at], at, np.where(is_topic[at], _THERE, _GONE))
        self._lives = self._lived(np.flatnonzero((types == _RECORD) | (types == _CHANGE)), np.flatnonzero(is_removal))
        self._order = np.argsort(self._lives.rows, kind="stable")

    def found(self, brokers: BrokerStates) -> list[LogFinding]:
        """Return all findings, in no order."""
        return [*self._misplaced(), *self._epochs(), *self._members(), *self._leads(brokers)]

    def are_left_by(self, rows: Ints, broker_id: int) -> bool:
        """Return whether the broker leaves an ISR or the lead, or is no longer eligible, by each of these rows."""
        lives, wanted = self._lives, np.full(len(rows), broker_id)
        if len(lives.rows) == 0:
            return False
        at = self._order[np.minimum(np.searchsorted(lives.rows[self._order], rows), len(lives.rows) - 1)]
        is_change = (lives.rows[at] == rows) & (lives.kinds[at] == _CHANGED) & lives.was_there[at]
        was_in = self._isr.hold(lives.isr[at - 1], wanted) | (lives.leaders[at - 1] == broker_id)
        # The last member stays in the ISR, and leads no more.
        is_out = (lives.leaders[at] != broker_id) & (
            ~self._isr.hold(lives.isr[at], wanted) | (lives.leaders[at] == NO_NODE)
        )
        elr_rows = lives.rows[at]
        is_ineligible = self._elr.is_stated[elr_rows] & ~self._elr.hold(elr_rows, wanted)
        return bool((is_change & ((was_in & is_out) | is_ineligible)).all())

    # --- what each partition is ---------------------------------------------------------------------------------------

    def _lived(self, at: Ints, removals: Ints) -> _Lives:
        created_first = at[np.argsort(self._types[at] != _RECORD, kind="stable")]
        numbers = self._ints("number", -1)
        topics, _, first, owners = pairs(self._ids[created_first], numbers[created_first])
        members, removed_at = spread(self._ids[removals], removals, topics)
        matters = created_first[first][members] < removed_at
        members, removed_at = members[matters], removed_at[matters]
        rows, owners = np.concatenate([created_first, removed_at]), np.concatenate([owners, members])
        order = np.lexsort((rows, owners))
        rows, owners = rows[order], owners[order]
        kinds = np.full(len(rows), _REMOVED)
        kinds[self._types[rows] == _RECORD] = _CREATED
        kinds[self._types[rows] == _CHANGE] = _CHANGED
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        is_first = np.zeros(len(rows), np.bool_)
        is_first[starts] = True
        existence = carried(np.array([1, UNSAID, 0])[kinds], starts)
        stated = self._ints("leader", UNSAID)[rows]
        return _Lives(
            rows,
            kinds,
            starts,
            owners,
            is_first,
            existence == 1,
            np.where(is_first, False, np.roll(existence == 1, 1)),
            stated,
            carried(stated, starts),
            rows[stated_at(self._isr.is_stated[rows], starts)],
            rows[stated_at(self._replicas.is_stated[rows], starts)],
            self._before("said_epoch", rows, kinds, starts, kinds == _CHANGED),
            self._before("leader_epoch", rows, kinds, starts, (kinds == _CHANGED) & (stated != UNSAID)),
            existence == UNSAID,
        )

    def _before(self, name: str, rows: Ints, kinds: Ints, starts: Ints, counts: Flags) -> Ints:
        """Return an epoch as it was before each row: the last stated one, plus one for each row since that counts."""
        is_stated = kinds == _CREATED
        last_stated = stated_at(is_stated, starts)
        # What was stated before this row, for a row that states it itself.
        previous = np.maximum(np.arange(len(rows)) - 1, 0)
        before = np.where(is_stated, last_stated[previous], last_stated)
        total: Ints = np.cumsum(counts, dtype=np.int64)
        return self._ints(name, UNSAID)[rows[before]] + total[previous] - total[before] if len(rows) else total

    def _ints(self, name: str, unsaid: int) -> Ints:
        return np.asarray(self.table[name].fill_null(unsaid), np.int64)

    # --- records that do not fit --------------------------------------------------------------------------------------

    def _misplaced(self) -> list[LogFinding]:
        """Find records of topics and partitions that are not there, or are there already."""
        types, lives, found = self._types, self._lives, []
        of_topics = np.flatnonzero(np.isin(types, (_TOPIC, _REMOVAL, _RECORD)))
        states = self._topics.at(self._ids[of_topics], of_topics - (types[of_topics] != _RECORD))
        is_new = types[of_topics] == _TOPIC
        is_bad = np.where(is_new, states == _THERE, (states == _GONE) | ((states == 0) & self.is_whole))
        for row in of_topics[is_bad].tolist():
            says = "the topic is there already" if types[row] == _TOPIC else "there is no such topic"
            found.append(self._finding(FindingKind.NOT_REPLAYABLE, row, f"{TYPES[types[row]]}: {says}"))
        strange = (lives.kinds == _CHANGED) & ~lives.is_there & (~lives.is_unknown | self.is_whole)
        for at in np.flatnonzero(strange).tolist():
            found.append(self._of(FindingKind.NOT_REPLAYABLE, at, f"{TYPES[_CHANGE]}: there is no such partition"))
        return found

    # --- epochs -------------------------------------------------------------------------------------------------------

    def _epochs(self) -> list[LogFinding]:
        lives, found = self._lives, []
        is_stated = (lives.kinds == _CREATED) & (lives.rows >= self._base_count)
        epochs, leader_epochs = (self._ints(each, UNSAID)[lives.rows] for each in ("said_epoch", "leader_epoch"))
        is_new = is_stated & ~lives.was_there & (epochs != 0) & (self.is_whole and not self._has_migrated())
        for at in np.flatnonzero(is_new).tolist():
            found.append(self._of(FindingKind.PARTITION_EPOCH_JUMP, at, f"a new partition has epoch {epochs[at]}"))
        again = np.flatnonzero(is_stated & lives.was_there)
        grown = epochs[again] - lives.epochs[again]
        is_same = self._says_the_same(again)
        for at in again[(grown < 0) | (grown > 1 + self._clearings(again)) | ((grown == 0) & ~is_same)].tolist():
            says = f"the partition's epoch becomes {epochs[at]}, after {lives.epochs[at]}"
            found.append(self._of(FindingKind.PARTITION_EPOCH_JUMP, at, says))
        leaders, before = lives.leaders[again], lives.leaders[again - 1]
        rise = leader_epochs[again] - lives.leader_epochs[again]
        for at in again[(rise < 0) | ((rise == 0) & (leaders != before))].tolist():
            says = f"leader {lives.leaders[at]} leads in epoch {leader_epochs[at]}, after {lives.leader_epochs[at]}"
            found.append(self._of(FindingKind.LEADER_EPOCH, at, says))
        return found

    def _has_migrated(self) -> bool:
        """Return whether the cluster came from ZooKeeper; its partitions then brought their epochs along (KIP-866)."""
        at = self._types == CODES["ZK_MIGRATION_STATE_RECORD"]
        return bool((self._ints("number", 0)[at] > 0).any())

    def _says_the_same(self, at: Ints) -> Flags:
        """Return whether the row leaves everything as it was."""
        lives = self._lives
        same: Flags = lives.leaders[at] == lives.leaders[at - 1]
        same &= self._isr.are_equal(lives.isr[at], lives.isr[at - 1])
        return same & self._replicas.are_equal(lives.replicas[at], lives.replicas[at - 1])

    def _clearings(self, at: Ints) -> Ints:
        """Count the CLEAR_ELR_RECORDs since the partition began. Each may have been a change of the partition."""
        rows = np.flatnonzero(self._types == CODES["CLEAR_ELR_RECORD"])
        lives = self._lives
        begun = lives.rows[lives.starts[lives.owners[at]]]
        since: Ints = np.searchsorted(rows, lives.rows[at]) - np.searchsorted(rows, begun)
        return since

    # --- members ------------------------------------------------------------------------------------------------------

    def _members(self) -> list[LogFinding]:
        lives, found = self._lives, []
        is_held = self._replicas.hold_all(lives.replicas, self._isr, lives.isr)
        leads = lives.leaders != NO_NODE
        is_in = ~leads | self._isr.hold(lives.isr, lives.leaders)
        for kind, good in ((FindingKind.ISR_OUTSIDE_REPLICAS, is_held), (FindingKind.LEADER_NOT_IN_ISR, is_in)):
            bad = lives.is_there & ~good
            begins = bad & ~(np.roll(bad, 1) & ~lives.is_first & lives.was_there)
            for at in np.flatnonzero(begins).tolist():
                isr = self._isr.text(int(lives.isr[at]))
                if kind is FindingKind.LEADER_NOT_IN_ISR:
                    says = f"leader {lives.leaders[at]} is not in ISR {isr}"
                else:
                    says = (
                        f"ISR {isr} has a member that is not a replica: {self._replicas.text(int(lives.replicas[at]))}"
                    )
                found.append(self._of(kind, at, says))
        return found

    # --- who may lead -------------------------------------------------------------------------------------------------

    def _leads(self, brokers: BrokerStates) -> list[LogFinding]:
        lives, found = self._lives, []
        named = np.flatnonzero((lives.kinds != _REMOVED) & lives.is_there & (lives.leaders_stated >= 0))
        states = brokers.states.at(lives.leaders[named], np.maximum(lives.rows[named], self._base_count - 1))
        is_barred = (states == FENCED) | (states == GONE) | ((states == 0) & self.is_whole)
        for at, state in zip(named[is_barred].tolist(), states[is_barred].tolist(), strict=True):
            says = f"broker {lives.leaders[at]} is to lead, and is {WORDS[state]}"
            found.append(self._of(FindingKind.FENCED_LEADS, at, says, broker_id=int(lives.leaders[at])))
        before = np.where(lives.was_there[named], lives.leaders[named - 1], NO_NODE)
        is_elected = (lives.rows[named] >= self._base_count) & (before != lives.leaders[named])
        for at in named[is_elected & (states == SHUTTING_DOWN)].tolist():
            says = f"broker {lives.leaders[at]} is elected, and is {WORDS[SHUTTING_DOWN]}"
            found.append(self._of(FindingKind.SHUTTING_DOWN_ELECTED, at, says, broker_id=int(lives.leaders[at])))
        return [*found, *self._left_leading(brokers.turns)]

    def _left_leading(self, turns: ValueHistory) -> list[LogFinding]:
        """Find partitions that a broker leads while it becomes one that may not lead."""
        lives, found = self._lives, []
        leading = np.flatnonzero(lives.is_there & (lives.leaders >= 0))
        until = np.append(lives.rows[1:], _NEVER)[: len(lives.rows)]
        until[lives.starts[1:] - 1] = _NEVER
        begins = np.maximum(lives.rows, self._base_count - 1)
        following = turns.after(lives.leaders[leading], begins[leading])
        is_left = (following >= 0) & (following < until[leading])
        for at, row in zip(leading[is_left].tolist(), following[is_left].tolist(), strict=True):
            leader = int(lives.leaders[at])
            says = f"{TYPES[self._types[row]]} of broker {leader} leaves it leading"
            finding = self._of(FindingKind.FENCED_LEADS, at, says, broker_id=leader, since=at)
            fact = self._fact(row)
            found.append(finding._replace(offset=fact["offset"], epoch=fact["epoch"], timestamp=fact["timestamp"]))
        return found

    # --- evidence -----------------------------------------------------------------------------------------------------

    def _of(
        self, kind: FindingKind, at: int, says: str, *, broker_id: int | None = None, since: int | None = None
    ) -> LogFinding:
        """Make a finding of a row of the lives. What stood before is as of the row before, or as of `since`."""
        lives = self._lives
        finding = self._finding(kind, int(lives.rows[at]), says)._replace(broker_id=broker_id)
        before = at - 1 if since is None else since
        if before < 0 or (since is None and not lives.was_there[at]):
            return finding
        text = (
            f"leader {lives.leaders[before]}, ISR {self._isr.text(int(lives.isr[before]))}, "
            f"replicas {self._replicas.text(int(lives.replicas[before]))}{self._epochs_after(before)}"
        )
        return finding._replace(before=text, before_offset=self._fact(int(lives.rows[before]))["offset"])

    def _epochs_after(self, at: int) -> str:
        """Return the epochs as of this row, as far as they are known."""
        lives, row = self._lives, int(self._lives.rows[at])
        if lives.kinds[at] == _CREATED:
            fact = self._fact(row)
            return f", partition epoch {fact['said_epoch']}, leader epoch {fact['leader_epoch']}"
        is_election = lives.leaders_stated[at] != UNSAID
        epoch, leader_epoch = int(lives.epochs[at]) + 1, int(lives.leader_epochs[at]) + is_election
        return f", partition epoch {epoch}, leader epoch {leader_epoch}"

    def _finding(self, kind: FindingKind, row: int, says: str) -> LogFinding:
        fact = self._fact(row)
        name = self._names.get(fact["id"], fact["name"])
        is_partition = CODES[fact["type"]] in (_RECORD, _CHANGE)
        number = fact["number"] if is_partition else None
        return LogFinding(kind, says, fact["offset"], fact["epoch"], fact["timestamp"], name, fact["id"], number)

    def _fact(self, row: int) -> dict[str, Any]:
        fact: dict[str, Any] = self.table.slice(row, 1).to_pylist()[0]
        return fact


def _topic_names(rows: pa.Table) -> dict[str, str]:
    named = rows.filter(pc.equal(rows["type"], "TOPIC_RECORD"))
    return dict(zip(named["id"].to_pylist(), named["name"].to_pylist(), strict=True))
