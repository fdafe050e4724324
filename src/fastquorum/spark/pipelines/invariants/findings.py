"""What breaks a promise, with its evidence; and the same finding of several replicas as one."""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.spark.pipelines.remedies import OF_VERDICTS
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.pipelines.torn import CUT_OFF
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.storage.replacing import REPLACE


class FindingKind(StrEnum):
    """Which promise is broken, and how."""

    EPOCH_BACKWARDS = "epoch-backwards"
    TWO_LEADERS = "two-leaders"
    LEADER_NOT_IN_ISR = "leader-not-in-isr"
    ISR_OUTSIDE_REPLICAS = "isr-outside-replicas"
    PARTITION_EPOCH_JUMP = "partition-epoch-jump"
    LEADER_EPOCH = "leader-epoch-backwards"
    BROKER_EPOCH_NOT_OFFSET = "broker-epoch-not-offset"
    FENCED_LEADS = "fenced-leads"
    SHUTTING_DOWN_ELECTED = "shutting-down-elected"
    SNAPSHOT_DIFFERS = "snapshot-differs"
    MISSING_SEGMENT = "missing-segment"
    LOST_RECORDS = "lost-records"
    NOT_ON_MAJORITY = "not-on-majority"
    BIT_FLIP = "bit-flip"
    NOT_REPLAYABLE = "not-replayable"
    PROPERTIES = "properties"
    QUORUM_STATE = "quorum-state"
    NOT_STARTED = "not-started"
    TORN_END = "torn-end"
    COPIES = "copies"
    NO_VOTE = "no-vote"
    UNCHECKED = "unchecked"


PROMISES: Final = MappingProxyType(
    {
        FindingKind.EPOCH_BACKWARDS: "the epochs of a log never fall",
        FindingKind.TWO_LEADERS: "an epoch has one leader, and begins once",
        FindingKind.LEADER_NOT_IN_ISR: "a partition's leader is in its ISR, or there is none",
        FindingKind.ISR_OUTSIDE_REPLICAS: "a partition's ISR is a part of its replicas",
        FindingKind.PARTITION_EPOCH_JUMP: "a partition's epoch begins at 0 and grows by one with each change",
        FindingKind.LEADER_EPOCH: "a partition's leader epoch never falls, and rises with a change of leader",
        FindingKind.BROKER_EPOCH_NOT_OFFSET: "a broker's epoch is the offset of its registration, and grows",
        FindingKind.FENCED_LEADS: "a broker that is fenced, or not registered, leads nothing",
        FindingKind.SHUTTING_DOWN_ELECTED: "a broker in controlled shutdown is not elected",
        FindingKind.SNAPSHOT_DIFFERS: "a snapshot is what the log comes to at its offset",
        FindingKind.MISSING_SEGMENT: "offsets continue",
        FindingKind.LOST_RECORDS: "a log goes on to where its snapshots end, at least",
        FindingKind.NOT_ON_MAJORITY: "what was committed stays on a majority of the voters",
        FindingKind.BIT_FLIP: "bytes are as they were written",
        FindingKind.NOT_REPLAYABLE: "a record fits what there is before it",
        FindingKind.PROPERTIES: "a directory says what its log holds, and who votes",
        FindingKind.QUORUM_STATE: "a replica knows its epoch, and how it voted",
        FindingKind.NOT_STARTED: "a node starts on its directory as it is",
        FindingKind.TORN_END: "an interrupted write may end a log: the next start cuts it off",
        FindingKind.COPIES: "a node has one directory",
        FindingKind.NO_VOTE: "a voter's directory has the id that the voters' record names",
        FindingKind.UNCHECKED: "what could not be checked is named",
    }
)
NOTHING: Final = "the log is empty: there is nothing to look at"
_NEW_VOTER: Final = f"its node does not start so: restore the file, or, {REPLACE}"
REMEDIES: Final[Mapping[str, str]] = {
    FindingKind.NOT_ON_MAJORITY: OF_VERDICTS[ReplicaVerdict.LACKING],
    FindingKind.NOT_REPLAYABLE: "a node stops there, unless it starts from a later snapshot: where the type or "
    "version is unknown here, newer software may have written it: upgrade the nodes, and this program; where only "
    "some replicas have it (audit replicas), format those anew; else restore a backup",
    FindingKind.PROPERTIES: "its node does not start so, and the log was looked at as what its records are: put the "
    "file back, and format nothing anew, for votes and records are there still",
    FindingKind.QUORUM_STATE: _NEW_VOTER,
    FindingKind.TORN_END: CUT_OFF,
    FindingKind.UNCHECKED: "where the log before it was removed, as retention does, nothing is to be done; else mend "
    "what keeps the log from being read, and look again",
}
"""What to do about a finding, by its kind."""
_BY_WORDS: Final[Mapping[str, str]] = {
    NOTHING: "if its node has run before, bring back what was in the log",
    NO_STATE: f"nothing is to be done about a copy that leaves it out; of a directory to run on, {_NEW_VOTER}",
}
"""What to do about findings whose text decides it, by that text."""
NOTES: Final = frozenset({FindingKind.TORN_END, FindingKind.COPIES, FindingKind.NO_VOTE, FindingKind.UNCHECKED})
"""Kinds that break no promise."""

SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("node_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("directories", pa.list_(pa.string()), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("is_violation", pa.bool_(), nullable=False),
        pa.field("promise", pa.string(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", arrow.TIMESTAMP),
        *arrow.fields(pa.string(), "topic", "topic_id"),
        *arrow.fields(pa.int32(), "partition", "broker_id"),
        pa.field("says", pa.string(), nullable=False),
        pa.field("before", pa.string()),
        pa.field("before_offset", pa.int64()),
    ]
)
"""One row for each finding. `directories`, and the nodes they are of: who has it. `says`: what is wrong, as the record
says it, or what is there; `before`: what stood there before, since the record at `before_offset`."""
_WHO: Final = ("cluster_id", "node_ids", "directories")


class LogOwner(NamedTuple):
    """The log that a finding is about."""

    cluster_id: str | None
    node_id: int | None
    directory: str

    @classmethod
    def of(cls, table: pa.Table) -> "LogOwner":
        """Return the owner that a table's first row names."""
        return cls(*(table[name][0].as_py() for name in cls._fields))


class LogFinding(NamedTuple):
    """A finding in one log."""

    kind: FindingKind
    says: str
    offset: int | None
    epoch: int | None = None
    timestamp: Any = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    broker_id: int | None = None
    before: str | None = None
    before_offset: int | None = None


def table_of(found: Iterable[LogFinding], *logs: LogOwner) -> pa.Table:
    """Return findings (SCHEMA) that all these logs have."""
    owner = {
        "cluster_id": logs[0].cluster_id if logs else None,
        "node_ids": [each.node_id for each in logs],
        "directories": [each.directory for each in logs],
    }
    rows = [
        {**owner, **each._asdict(), "is_violation": each.kind not in NOTES, "promise": PROMISES[each.kind]}
        for each in found
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def merged(found: pa.Table) -> pa.Table:
    """Findings of one cluster's logs, those that are the same as one: by kind, then offset."""
    kept: dict[str, dict[str, Any]] = {}
    for row in found.to_pylist():
        what = {name: each for name, each in row.items() if name not in _WHO}
        key = json.dumps(what, sort_keys=True, default=str)
        known = kept.setdefault(key, {**row, "node_ids": [], "directories": []})
        for node_id, directory in zip(row["node_ids"], row["directories"], strict=True):
            if directory not in known["directories"]:
                known["directories"].append(directory)
                known["node_ids"].append(node_id)
    rows = list(kept.values())
    for row in rows:
        pairs = sorted(zip(row["directories"], row["node_ids"], strict=True), key=lambda pair: str(pair[0]))
        row["directories"], row["node_ids"] = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows.sort(key=_order)
    return pa.Table.from_pylist(rows, SCHEMA)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    numbers = [-1 if row[name] is None else row[name] for name in ("offset", "partition", "broker_id")]
    return (not row["is_violation"], row["kind"], numbers[0], row["topic"] or "", *numbers[1:], row["directories"])


def accuses(found: pa.Table) -> bool:
    """Return whether a promise is said to be broken. That compares what is read one after the other, of several logs or
    of one in several passes: a node may have gone on meanwhile."""
    return True in found["is_violation"].to_pylist()


def as_report(found: pa.Table) -> dict[str, Any]:
    """The same for programs. `violations`, and `notes`, which are none; `kinds`: how many of each kind of violation;
    `clusters`: the same of each cluster that has any. `remedy`: what to do about a finding; null: for its reader."""
    rows = found.to_pylist()
    for row in rows:
        row["timestamp"] = None if row["timestamp"] is None else row["timestamp"].isoformat()
        row["remedy"] = _BY_WORDS.get(row["says"], REMEDIES.get(row["kind"]))
    rows.sort(key=lambda row: (row["cluster_id"] or "", *_order(row)))
    violations = [row for row in rows if row["is_violation"]]
    clusters = sorted({row["cluster_id"] or "" for row in violations})
    return {
        "violations": violations,
        "notes": [row for row in rows if not row["is_violation"]],
        "kinds": _kinds(violations),
        "clusters": [
            {"cluster_id": each, "kinds": _kinds([row for row in violations if (row["cluster_id"] or "") == each])}
            for each in clusters
        ],
    }


def empty_clusters(found: pa.Table, logs: Iterable[FoundLog]) -> list[str | None]:
    """Return the ids of clusters of which no log has anything to look at, by their findings and `logs`."""
    empty = {
        directory
        for row in found.to_pylist()
        if row["kind"] == FindingKind.UNCHECKED and row["says"] == NOTHING
        for directory in row["directories"]
    }
    clusters: dict[str | None, set[str]] = {}
    for log in logs:
        clusters.setdefault(log.cluster_id, set()).add(log.directory)
    return sorted((key for key, each in clusters.items() if each <= empty), key=str)


def _kinds(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {each.value: count for each in FindingKind if (count := sum(row["kind"] == each for row in rows))}
