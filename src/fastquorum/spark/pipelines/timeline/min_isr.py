"""The least ISR that writes need, per partition and over time, from the configurations in the log.

As a broker finds it (KIP-226): the topic's own min.insync.replicas, else that of the broker that leads, else every
broker's default, which the log has from KIP-966 on; else 1. Never more than the partition has replicas, as in Kafka's
metric UnderMinIsrPartitionCount. What brokers have in their properties files no log tells.
"""

from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.controller.definitions.checks import is_whole, trimmed
from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.state.controller_state import MIN_INSYNC_REPLICAS
from fastquorum.spark.pipelines.carrying import UNSET, Ints, ValueHistory
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.stored import arrow

CONFIG_FIELDS: Final = pa.schema(
    [pa.field("resourceType", pa.int32()), *arrow.fields(pa.string(), "resourceName", "name", "value")]
)
LEAST: Final = 1


class MinIsr(NamedTuple):
    """Settings of min.insync.replicas over time. Topics are the numbers that the caller gave their names."""

    topics: ValueHistory
    brokers: ValueHistory
    defaults: ValueHistory
    """Defaults of all brokers; their one owner is 0."""

    @classmethod
    def of(cls, history: History, names: pa.Array, removed: tuple[Ints, Ints]) -> Self:
        """`names`: of topics, each once. `removed`: names' numbers and the rows at which such a topic was removed, and
        its configuration with it."""
        rows, configs = history.records_of("CONFIG_RECORD", CONFIG_FIELDS)
        is_it = np.asarray(configs["name"].combine_chunks().fill_null("")) == MIN_INSYNC_REPLICAS
        rows, configs = rows[is_it], configs.filter(pa.array(is_it))
        kinds = np.asarray(configs["resourceType"].fill_null(0))
        values, owners = _values(configs["value"]), configs["resourceName"].combine_chunks()
        numbers = np.asarray(pc.index_in(owners, names).fill_null(-1), np.int64)
        of_topics = (kinds == ResourceType.TOPIC) & (numbers >= 0)
        topics = ValueHistory.of(
            np.concatenate([numbers[of_topics], removed[0]]),
            np.concatenate([rows[of_topics], removed[1]]),
            np.concatenate([values[of_topics], np.full(len(removed[0]), UNSET)]),
        )
        resource_names = np.asarray(owners.fill_null("?"))
        ids = np.array([int(each) if each.isdigit() else -1 for each in resource_names], np.int64)
        of_brokers = (kinds == ResourceType.BROKER) & (ids >= 0)
        of_all = (kinds == ResourceType.BROKER) & (resource_names == "")
        return cls(
            topics,
            ValueHistory.of(ids[of_brokers], rows[of_brokers], values[of_brokers]),
            ValueHistory.of(np.zeros(int(of_all.sum()), np.int64), rows[of_all], values[of_all]),
        )

    def at(self, topics: Ints, leaders: Ints, replicas: Ints, rows: Ints) -> Ints:
        """Return the least ISR of partitions with these topics, leaders and numbers of replicas, as of these rows."""
        found = self.topics.at(topics, rows)
        for more in (self.brokers.at(leaders, rows), self.defaults.at(np.zeros_like(rows), rows)):
            found = np.where(found == UNSET, more, found)
        return np.minimum(np.where(found == UNSET, LEAST, found), replicas)


def _values(texts: pa.ChunkedArray) -> Ints:
    """Return texts as numbers. Other text was written by another program, and stands for the least."""
    values = texts.dictionary_encode().combine_chunks()
    known = [int(trimmed(each)) if is_whole(each) else LEAST for each in values.dictionary.to_pylist()]
    found: Ints = np.array([*known, UNSET], np.int64)[np.asarray(values.indices.fill_null(len(known)))]
    return found
