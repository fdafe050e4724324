"""`audit-replicas`: do the replicas of a cluster hold the same bytes, and if not, which is the odd one?

Replicas copy batches from the leader byte for byte, so two logs are the same if their batches are: by offsets, epoch,
size and checksum, which every reader of a log has verified against the bytes. Without the quorum's high watermark,
committed is what a majority of the voters holds (`pipelines.voting`), or a snapshot or durable mark is of
(`pipelines.proofs`). What each replica is beside that, `pipelines.judging` says. Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines import proofs
from fastquorum.spark.pipelines.judging import LOST, NOBODY, differ, judge, judge_stale, reference_of
from fastquorum.spark.pipelines.remedies import OF_VERDICTS
from fastquorum.spark.pipelines.replicas import EMPTY, UNREADABLE, Ids, ReplicaLog, ReplicaVerdict, replicas_of
from fastquorum.spark.pipelines.voting import VoteResult, VoterKey, elect, node_of, nodes_of, seats_of
from fastquorum.spark.stored import arrow

BATCH_COLUMNS: Final = (
    *arrow.OWNER,
    "segment",
    "position",
    "base_offset",
    "last_offset",
    "epoch",
    "crc",
    "size_bytes",
    "error",
)
"""Columns that are read from table `batches`, damage set aside in `error`."""
VOTER_COLUMNS: Final = (*arrow.OWNER, "offset", "source", "voter_id", "directory_id")
"""Columns that are read from table `voters`."""
_KEPT_COLUMNS: Final = (
    "begin_offset",
    "durable_offset",
    "durable_segment",
    "durable_position",
    "committed_offset",
    "last_epoch_start",
    "is_mark_lost",
    "refused",
    "not_started",
    "own_directory_id",
)
DIRECTORY_COLUMNS: Final = (*VOTER_COLUMNS, "snapshot_offset", "snapshot_epoch", *_KEPT_COLUMNS)
"""Columns of rows that name directories, with what is known besides batches: a good snapshot, from table `checkpoints`;
where the log's files begin, up to where they were synced and known to be committed, and where the last epoch begins."""
PRESENT_COLUMNS: Final = (*arrow.OWNER, *_KEPT_COLUMNS)
"""Columns that are read from table `quorum_state`, which has a row for each directory, one without a batch, too."""
SNAPSHOT_COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "is_good")
"""Columns that are read from table `checkpoints`."""
SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        pa.field("is_voter", pa.bool_(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        *arrow.fields(pa.int64(), "committed_end", "start_offset", "end_offset", "offset"),
        pa.field("bytes", pa.int64(), nullable=False),
        *arrow.fields(pa.string(), "why", "no_vote", "not_started"),
    ]
)
"""One row for each replica. `offset`, `bytes`: where it differs or its tail begins, and how much follows from there.
`no_vote`: why a directory of a voter's node has no vote; null: it has one, or its node is no voter.
`not_started`: why its node would not start on what its directory has beside the log; null: it would, for that."""


NO_VOTE: Final = "{} has no vote: {}"
"""The note on a directory of a voter's node that has no vote, and why."""
_ACCUSATIONS: Final = frozenset({ReplicaVerdict.DIVERGENT, ReplicaVerdict.LACKING, ReplicaVerdict.UNDECIDED})


class Audited(NamedTuple):
    """The replicas of one cluster, judged."""

    offsets: Ids
    replicas: list[ReplicaLog]
    committed: int | None
    reach: Ids
    """By replica: up to where it holds what is committed, exclusive, whatever happened to it in between."""
    voters: frozenset[VoterKey]
    seats: frozenset[VoterKey | None]
    """Voters that have a directory here; None: other directories."""
    shortage: proofs.Shortage | None = None
    """Committed records that no majority holds any longer; None: there are none."""

    @property
    def is_missing_voters(self) -> bool:
        """Whether a majority of the voters has no directory here."""
        return len(self.voters & self.seats) <= len(self.voters) // 2


def audit_cluster(batches: pa.Table, directory_rows: pa.Table) -> pa.Table:
    """Judge all replicas of one cluster. `batches` has BATCH_COLUMNS, and `directory_rows` VOTER_COLUMNS or all of
    DIRECTORY_COLUMNS. A directory without batches is a replica that holds nothing; its row may have only its name."""
    audited = audit(batches, directory_rows)
    replicas = sorted(audited.replicas, key=lambda each: each.directory)
    rows = [_row(each, audited.offsets, audited.committed) for each in replicas]
    return pa.Table.from_pylist(rows, SCHEMA)


def audit(batches: pa.Table, directory_rows: pa.Table) -> Audited:
    """Judge all replicas as `audit_cluster` does, and return the details."""
    offsets, replicas = replicas_of(batches, directory_rows)
    if not replicas:
        return Audited(offsets, [], None, offsets, frozenset(), frozenset())
    known = directory_rows.to_pylist()
    nodes = nodes_of(replicas)
    won = elect(offsets, replicas, nodes, known)
    seats = _find_voters(replicas, nodes, won)
    for each in replicas:
        proofs.compare_own(each)
    shared = won.end
    right = reference_of(offsets, replicas, seats, won, shared or 0)
    proof = proofs.newest_proof(replicas, differ(replicas, right), won)
    if proof is not None:
        won, known_end = proofs.raised_by(proof, replicas, won)
        seats = _find_voters(replicas, nodes, won)
        right = reference_of(offsets, replicas, seats, won, known_end)
    for each in replicas:
        if each.unreadable is None:
            proofs.find_loss(each)
    voters = [(each, seat) for each, seat in zip(replicas, seats, strict=True) if each.is_voter]
    lost = {seat for each, seat in voters if each.has_lost}
    end = won.end
    holders = {seat for each, seat in voters if each.is_trusted and end is not None and each.end_offset > end}
    why_open = LOST if lost and len(lost | holders) >= won.majority else NOBODY if shared is None else None
    judge(offsets, replicas, won, right, won.end, why_open)
    if won.end is not None:
        proofs.compare_newest(replicas, won.end)
    for each in replicas:
        judge_stale(each, won.end)
        proofs.compare_epochs(each)
        proofs.compare_known(each)
        proofs.compare_mark(each)
    shortage = None if proof is None else proofs.find_lacking(replicas, seats, won, proof)
    return Audited(offsets, replicas, won.end, won.reach, won.voters, frozenset(seats), shortage)


def _find_voters(
    replicas: Sequence[ReplicaLog], nodes: Sequence[VoterKey | None], won: VoteResult
) -> list[VoterKey | None]:
    """Set for each replica whether it is a voter's; return the voter as which it votes, None if it has no vote."""
    votes_by = {each.id: each.directory_id for each in won.voters}
    for each, seat in zip(replicas, seats_of([node_of(each) for each in replicas], won.voters), strict=True):
        each.is_voter, each.no_vote = seat is not None, None
        if seat is None and each.node_id in votes_by:
            each.no_vote = (
                f"it was formatted under another directory id ({each.directory_id}) than the voters' record has of "
                f"node {each.node_id} ({votes_by[each.node_id]})"
            )
    return seats_of(nodes, won.voters)


def accuses(audited: pa.Table) -> bool:
    """Return whether a verdict is one that no healthy quorum shows, or is undecided. Such a verdict compares logs, or a
    log with its mark, which are read one after the other: a node may have gone on meanwhile."""
    return not _ACCUSATIONS.isdisjoint(audited["verdict"].to_pylist())


def joined(voters: pa.Table, present: pa.Table, snapshots: pa.Table) -> pa.Table:
    """Join what is known of directories besides batches: DIRECTORY_COLUMNS, and whatever else `present` has.
    `snapshots`: of SNAPSHOT_COLUMNS."""
    good = snapshots.filter(pc.and_(snapshots["is_good"], pc.greater(snapshots["offset"], 0)))
    named = good.rename_columns({"offset": "snapshot_offset", "epoch": "snapshot_epoch"}).drop_columns("is_good")
    return pa.concat_tables([voters, present, named], promote_options="default")


def as_report(audited: pa.Table) -> dict[str, Any]:
    """Return the report for programs: the replicas of each verdict but "same" over all clusters, and each cluster
    whole. Each row has `remedy`, what to do about it. `notes`: what to know about verdicts."""
    rows = [{**row, "remedy": OF_VERDICTS.get(ReplicaVerdict(row["verdict"]))} for row in audited.to_pylist()]

    def with_verdict(verdict: ReplicaVerdict) -> list[dict[str, Any]]:
        chosen = [row for row in rows if row["verdict"] == verdict]
        keys = ("cluster_id", "node_id", "directory", "offset", "bytes", "why", "remedy")
        return [{"replica": row["node_id"]} | {key: row[key] for key in keys if key != "node_id"} for row in chosen]

    return {
        "divergent": with_verdict(ReplicaVerdict.DIVERGENT),
        "lacking_committed": with_verdict(ReplicaVerdict.LACKING),
        "undecided": with_verdict(ReplicaVerdict.UNDECIDED),
        "stale_tails": with_verdict(ReplicaVerdict.STALE),
        "torn_ends": with_verdict(ReplicaVerdict.TORN),
        "uncommitted_tails": with_verdict(ReplicaVerdict.TAIL),
        "behind": with_verdict(ReplicaVerdict.BEHIND),
        "replicas": rows,
        "notes": [
            *_of_nameless([row for row in rows if row["cluster_id"] is None]),
            *_of_copies(rows),
            *_of_each(rows, "no_vote", NO_VOTE),
            *_of_each(rows, "not_started", "no node starts on {} as it is: {}"),
            *_of_nothing(rows),
        ],
    }


class Copies(NamedTuple):
    """Directories of one node that are copies of one another."""

    cluster_id: str | None
    node_id: int
    directories: list[str]

    @property
    def text(self) -> str:
        return f"{' and '.join(self.directories)} are of node {self.node_id}, which has one vote"


def copies_in(named: Iterable[tuple[str | None, int | None, str, str | None]]) -> Iterator[Copies]:
    """Yield the nodes that have several directories with a vote, from cluster, node, directory, and why it has none."""
    found: dict[tuple[str | None, int], list[str]] = {}
    for cluster_id, node_id, directory, no_vote in named:
        if node_id is not None and no_vote is None:
            found.setdefault((cluster_id, node_id), []).append(directory)
    for (cluster_id, node_id), directories in found.items():
        if len(directories) > 1:
            yield Copies(cluster_id, node_id, directories)


def _of_copies(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in copies_in((row["cluster_id"], row["node_id"], row["directory"], row["no_vote"]) for row in rows):
        yield {"cluster_id": each.cluster_id, "directories": len(each.directories), "text": each.text}


def _of_each(rows: Sequence[dict[str, Any]], column: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield a note for each directory that has a value in a column; `text` has both."""
    for row in rows:
        if row[column] is not None:
            note = text.format(row["directory"], row[column])
            yield {"cluster_id": row["cluster_id"], "directories": 1, "text": note}


def _of_nothing(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a note for each cluster whose directories hold no record."""
    by_cluster: dict[str | None, list[dict[str, Any]]] = {}
    for row in rows:
        by_cluster.setdefault(row["cluster_id"], []).append(row)
    for cluster_id, replicas in by_cluster.items():
        if all(row["why"] == EMPTY for row in replicas):
            which = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
            count = len(replicas)
            logs = (
                f"the logs of its {count} directories are empty" if count > 1 else "the log of its directory is empty"
            )
            text = f"of {which} nothing can be looked at: {logs}"
            yield {"cluster_id": cluster_id, "directories": count, "text": text}


def _of_nameless(nameless: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the note on readable directories without meta.properties. They are judged together."""
    nameless = [row for row in nameless if not str(row["why"]).startswith(UNREADABLE)]
    if not nameless:
        return []
    count = len(nameless)
    belong = f"{count} directories belong: they are compared as replicas of one"
    text = f"no meta.properties says to which cluster {belong if count > 1 else nameless[0]['directory'] + ' belongs'}"
    of_nobody = [row for row in nameless if row["node_id"] is None]
    standing = sum(row["is_voter"] for row in of_nobody)
    if standing:
        are = "is taken for a voter's" if standing == 1 else "are taken for as many voters'"
        text += f"; nor of which node {standing} of them {are}"
    if strangers := len(of_nobody) - standing:
        text += f"; nor of which node {strangers} of them {'is' if strangers == 1 else 'are'}: no voter's, then"
    return [{"cluster_id": None, "directories": count, "text": text}]


def _row(replica: ReplicaLog, offsets: Ids, committed: int | None) -> dict[str, Any]:
    behind = 0 if replica.offset is None else int(replica.sizes[offsets >= replica.offset].sum())
    found = {"verdict": replica.verdict.value, "committed_end": committed, "bytes": behind}
    return {name: found[name] if name in found else getattr(replica, name) for name in SCHEMA.names}
