"""What happened to the quorum and to brokers, in order. Source: KIP-595, KIP-853 for the quorum's own records."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.lives import Event, Happening
from fastquorum.spark.stored import arrow

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("timestamp", arrow.TIMESTAMP, nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("node_id", pa.int32()),
        pa.field("why", pa.string()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""`epoch`: of the quorum. `node_id`: the broker, or the quorum's leader or voter. `why`: as far as the log tells."""
_VOTER: Final = pa.struct([("voterId", pa.int32()), ("voterDirectoryId", pa.string())])
_LEADER_FIELDS: Final = pa.schema([("leaderId", pa.int32()), ("grantingVoters", pa.list_(_VOTER))])
_VOTERS_FIELDS: Final = pa.schema([("voters", pa.list_(_VOTER))])


def events(history: History, of_brokers: list[Happening]) -> pa.Table:
    """All that happened after the image before the log, of SCHEMA; `of_brokers` as of `lives_of`."""
    happened = [*_leaders(history), *_voters(history), *of_brokers]
    happened = sorted((each for each in happened if each.row >= history.image_count), key=lambda each: each.row)
    rows = np.array([each.row for each in happened], np.int64)
    columns = [
        pa.array(history.offsets[rows]),
        pa.array(history.epochs[rows], pa.int32()),
        arrow.timestamps(history.times_ms[rows]),
        pa.array([each.event.value for each in happened], pa.string()),
        pa.array([each.node_id for each in happened], pa.int32()),
        pa.array([each.why for each in happened], pa.string()),
        pa.array([each.text for each in happened], pa.string()),
    ]
    return pa.table(columns, schema=SCHEMA)


def _leaders(history: History) -> list[Happening]:
    """Return the elections. A leader that is elected again, in a later epoch, is one more."""
    rows, records = history.records_of("LEADER_CHANGE", _LEADER_FIELDS)
    happened, before = [], None
    for row, record in zip(rows.tolist(), records.to_pylist(), strict=True):
        leader, epoch = record["leaderId"], int(history.epochs[row])
        after = "" if before is None else f", after {before}"
        granting = _named(record["grantingVoters"] or [])
        text = f"controller {leader} leads the quorum in epoch {epoch}{after}; elected by {granting}"
        happened.append(Happening(row, Event.LEADER, leader, text))
        before = leader
    return happened


def _voters(history: History) -> list[Happening]:
    """Return what each set of voters adds to the one before, and lacks. A voter on another disk is another voter."""
    rows, records = history.records_of("KRAFT_VOTERS", _VOTERS_FIELDS)
    happened: list[Happening] = []
    before: set[tuple[int, str]] | None = None
    for row, record in zip(rows.tolist(), records.to_pylist(), strict=True):
        voters = {(each["voterId"], each["voterDirectoryId"]) for each in record["voters"] or []}
        if before is None:
            text = f"the voters are {_named(record['voters'] or [])}"
            happened.append(Happening(row, Event.VOTERS, None, text))
        else:
            for event, changed in ((Event.VOTER_REMOVED, before - voters), (Event.VOTER_ADDED, voters - before)):
                for voter_id, directory in sorted(changed):
                    text = f"{event}: {voter_id}, directory {directory}"
                    happened.append(Happening(row, event, voter_id, text))
        before = voters
    return happened


def _named(voters: list[dict[str, Any]]) -> str:
    return ", ".join(str(each["voterId"]) for each in voters) or "no voter that the log names"
