"""A cluster's layout as arrays, from the tables of its image."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.controller.definitions.checks import is_whole, trimmed
from fastquorum.controller.planning import NOBODY, Brokers, Layout
from fastquorum.controller.state.controller_state import MIN_INSYNC_REPLICAS

PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "leader",
    "replicas",
    "isr",
    "elr",
    "adding_replicas",
    "removing_replicas",
    "end_offset",
    "error",
)
"""Columns that are read from table `partitions`."""
BROKER_COLUMNS: Final = ("broker_id", "fenced", "in_controlled_shutdown", "rack", "error")
"""Columns that are read from table `brokers`."""
CONFIG_COLUMNS: Final = ("resource_type", "resource_name", "name", "value", "error")
"""Columns that are read from table `configs`; only rows of min.insync.replicas matter."""
_LEAST_ISR: Final = 1

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


class PlannedCluster(NamedTuple):
    """A cluster, as it is planned with."""

    layout: Layout
    topics: pa.Array
    """Topic of each partition of the layout; a dictionary."""
    numbers: Ints
    fenced: Flags
    """Whether each broker is fenced."""
    end_offset: int | None
    errors: tuple[str, ...]

    def dead(self, *, keep_fenced: bool) -> Flags:
        """Return the brokers that are not registered, and those that are fenced, unless they are kept."""
        is_gone = ~self.layout.brokers.is_registered
        return is_gone if keep_fenced else is_gone | self.fenced


def cluster_of(partitions: pa.Table, brokers: pa.Table, configs: pa.Table) -> PlannedCluster:
    """UsageError if a broker has two rows, or a partition a replica twice."""
    errors = sorted({each for table in (partitions, brokers, configs) for each in table["error"].to_pylist() if each})
    partitions, brokers, configs = (each.filter(each["error"].is_null()) for each in (partitions, brokers, configs))
    rows = brokers.select(["broker_id", "rack", "fenced", "in_controlled_shutdown"]).to_pylist()
    registered = [(row["broker_id"], row["rack"], not (row["fenced"] or row["in_controlled_shutdown"])) for row in rows]
    replicas = _matrix(partitions["replicas"])
    leaders = _numbers(partitions["leader"])
    held = np.unique(np.append(replicas, leaders))
    known = Brokers.of(registered, held[held != NOBODY])
    topics = partitions["topic"].combine_chunks().dictionary_encode()
    layout = Layout.of(
        known,
        known.places(replicas),
        leaders=known.places(leaders),
        in_sync=_are_among(replicas, partitions["isr"]),
        eligible=_are_among(replicas, partitions["elr"]),
        min_isr=_min_isr(topics, leaders, replicas, configs),
        is_moving=(_lengths(partitions["adding_replicas"]) > 0) | (_lengths(partitions["removing_replicas"]) > 0),
    )
    fenced = sorted(row["broker_id"] for row in rows if row["fenced"])
    ends = pc.max(partitions["end_offset"]).as_py()
    return PlannedCluster(
        layout,
        topics,
        _numbers(partitions["partition"]),
        np.isin(known.ids, np.array(fenced, np.int32)),
        ends,
        tuple(errors),
    )


def _numbers(column: pa.ChunkedArray) -> Ints:
    found: Ints = np.array(column, np.int32)
    return found


def _flat(column: pa.ChunkedArray) -> pa.ListArray:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _lengths(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(_flat(column)).fill_null(0), np.int64)


def _matrix(column: pa.ChunkedArray) -> Ints:
    """Lists of node ids side by side, NOBODY behind each."""
    lengths = _lengths(column)
    found = np.full((len(lengths), int(lengths.max(initial=0))), NOBODY, np.int32)
    found[np.arange(found.shape[1]) < lengths[:, None]] = np.asarray(_flat(column).flatten(), np.int32)
    return found


def _are_among(replicas: Ints, some: pa.ChunkedArray) -> Flags:
    """Return whether the partition's other list names each replica."""
    rows = np.repeat(np.arange(len(replicas)), _lengths(some))
    span = np.int64(1) << 32
    wanted = rows * span + np.asarray(_flat(some).flatten(), np.int64)
    have = np.arange(len(replicas))[:, None] * span + replicas
    found: Flags = np.isin(have, wanted) & (replicas != NOBODY)
    return found


def _min_isr(topics: Any, leaders: Ints, replicas: Ints, configs: pa.Table) -> Ints:
    """Return the min ISR of each partition, as a broker finds it: the topic's own, else its leader's, else every
    broker's default, else 1; never more than there are replicas."""
    rows = configs.filter(pc.equal(configs["name"], MIN_INSYNC_REPLICAS))
    values: dict[tuple[str, str], int] = {
        (row["resource_type"], row["resource_name"]): _value(row["value"]) for row in rows.to_pylist()
    }
    default = values.get(("broker", ""), _LEAST_ISR)
    own = np.array([values.get(("topic", name), NOBODY) for name in topics.dictionary.to_pylist()], np.int64)
    of_leaders = np.full(len(leaders), default, np.int64)
    for (kind, name), value in sorted(values.items()):
        if kind == "broker" and name.isdigit():
            of_leaders[leaders == int(name)] = value
    of_topics = own[np.asarray(topics.indices)] if len(own) else np.full(len(leaders), NOBODY)
    effective = np.where(of_topics == NOBODY, of_leaders, of_topics)
    found: Ints = np.minimum(effective, (replicas != NOBODY).sum(axis=1)).astype(np.int32)
    return found


def _value(text: str) -> int:
    """Return the number of a text. Other text was written by another program, and stands for the least."""
    return int(trimmed(text)) if is_whole(text) else _LEAST_ISR
