"""One cluster's log as anomalies are looked for in it: the replica that counts, in order, times never back."""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.carrying import Flags, Ints, ints
from fastquorum.spark.pipelines.choosing import ChosenReplica, chosen_of

_NO_TIME = np.iinfo(np.int64).min


class AnomalyLog(NamedTuple):
    """n records, shape (n,); aborted ones are among them."""

    replica: ChosenReplica
    table: pa.Table
    """Rows of `signals.SCHEMA`."""
    offsets: Ints
    epochs: Ints
    times_ms: Ints
    types: pa.Array
    """Types of records as indices of a dictionary; see `is_of`."""
    names: dict[str, str]
    """Names of topics, by id."""
    checkpoints: pa.Table

    @classmethod
    def of(cls, rows: pa.Table, committed_end: int | None = None) -> Self:
        """Choose one replica from the signals of a cluster's logs. `committed_end`, UsageError: as of `chosen_of`."""
        is_checkpoint = pc.equal(rows["type"], signals.CHECKPOINT)
        table, replica = chosen_of(rows.filter(pc.invert(is_checkpoint)), committed_end)
        topics = rows.filter(pc.equal(rows["type"], "TOPIC_RECORD"))
        names = {
            key: name for key, name in zip(topics["id"].to_pylist(), topics["name"].to_pylist(), strict=True) if key
        }
        times = np.asarray(table["time_ms"].fill_null(_NO_TIME), np.int64)
        known = times[times != _NO_TIME]
        times = np.maximum(np.maximum.accumulate(times), known.min() if len(known) else 0) if len(times) else times
        types = table["type"].combine_chunks().dictionary_encode()
        return cls(
            replica, table, ints(table["offset"]), ints(table["epoch"]), times, types, names, rows.filter(is_checkpoint)
        )

    @property
    def lasted_ms(self) -> int:
        return int(self.times_ms[-1] - self.times_ms[0]) if len(self.times_ms) else 0

    @property
    def end_ms(self) -> int:
        return int(self.times_ms[-1]) if len(self.times_ms) else 0

    def is_of(self, *kinds: str) -> Flags:
        known = self.types.dictionary.to_pylist()
        return np.isin(np.asarray(self.types.indices), [known.index(each) for each in kinds if each in known])

    def column(self, name: str, at: Ints, unsaid: int) -> Ints:
        """Return a column's values in these rows; `unsaid` stands for null."""
        return np.asarray(self.table[name].take(pa.array(at)).fill_null(unsaid), np.int64)
