"""What a part of a log came to, as records that the next part can begin with: a long log is read part by part, and what
has to be kept in between is no more than there is of partitions."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.state.controller_state import MIN_INSYNC_REPLICAS
from fastquorum.spark.pipelines.carrying import UNSAID
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.min_isr import CONFIG_FIELDS
from fastquorum.spark.pipelines.timeline.partition_rows import (
    CONFIG_RECORD,
    CREATION_RECORD,
    FIELDS,
    TOPIC_FIELDS,
    TOPIC_RECORD,
    PartitionHistory,
    lengths,
    numbers,
)

LEADER_RECORD: Final = "LEADER_CHANGE"
LEADER_FIELDS: Final = pa.schema(
    [("leaderId", pa.int32()), ("grantingVoters", pa.list_(pa.struct([("voterId", pa.int32())])))]
)
_GONE: Final = -1


def carried(history: History, found: PartitionHistory) -> Mapping[str, pa.Table]:
    """Return records by type, for `History.after`; configurations first, so that they change nothing later."""
    return {
        CONFIG_RECORD: _configs(history, found),
        LEADER_RECORD: history.records_of(LEADER_RECORD, LEADER_FIELDS)[1][-1:],
        TOPIC_RECORD: _topics(found),
        CREATION_RECORD: _partitions(found),
    }


def _configs(history: History, found: PartitionHistory) -> pa.Table:
    """Return the last configuration of each owner, if it still counts."""
    rows, configs = history.records_of(CONFIG_RECORD, CONFIG_FIELDS)
    is_it = np.asarray(configs["name"].combine_chunks().fill_null("")) == MIN_INSYNC_REPLICAS
    rows, configs = rows[is_it], configs.filter(pa.array(is_it))
    owners = configs["resourceName"].combine_chunks().dictionary_encode()
    kinds = np.asarray(configs["resourceType"].fill_null(0), np.int64)
    keys = kinds * (len(owners.dictionary) + 1) + np.asarray(owners.indices.fill_null(len(owners.dictionary)))
    _, from_behind = np.unique(keys[::-1], return_index=True)
    last = np.sort(len(keys) - 1 - from_behind)
    went = np.full(len(found.topics.names) + 1, _GONE)  # the last one is nobody's
    topics, removed_rows = found.topics.removed
    np.maximum.at(went, found.topics.name_of[topics], removed_rows)
    names = np.asarray(pc.index_in(owners.dictionary_decode(), found.topics.names).fill_null(-1), np.int64)
    is_gone = (kinds == ResourceType.TOPIC) & (names >= 0) & (went[names] > rows)
    return configs.take(pa.array(last)).filter(pa.array(~is_gone[last]))


def _topics(found: PartitionHistory) -> pa.Table:
    """Return the topics that are there, and named."""
    count = len(found.topics.ids)
    is_there = np.ones(count, np.bool_)
    is_there[found.topics.removed[0]] = False
    names = found.topics.names_of(np.arange(count))
    topics = pa.table([found.topics.ids, names], schema=TOPIC_FIELDS)
    return topics.filter(pc.and_(pa.array(is_there), names.is_valid()))


def _partitions(found: PartitionHistory) -> pa.Table:
    """Return the partitions that are not removed, as far as they are known."""
    last = np.append(found.starts[1:], len(found.rows))[: len(found.starts)] - 1
    last = last[~found.is_gone()[last]]
    owners = found.owners[last]
    partition_epochs, leader_epochs = found.epochs()
    leaders = found.filled(numbers(found.records["leader"]))
    columns: dict[str, pa.Array] = {
        "partitionId": pa.array(found.partitions.numbers[owners], pa.int32()),
        "topicId": found.topics.ids.take(pa.array(found.partitions.topics[owners])),
    }
    for name, values in (("leader", leaders), ("leaderEpoch", leader_epochs), ("partitionEpoch", partition_epochs)):
        columns[name] = pa.array(values[last], pa.int32(), mask=values[last] == UNSAID)
    for name in ("replicas", "isr", "addingReplicas"):
        at = found.last_stated_in(lengths(found.records[name]))[last]
        columns[name] = found.records[name].combine_chunks().take(pa.array(at, mask=at == UNSAID))
    return pa.table([columns[name] for name in FIELDS.names], schema=FIELDS)
