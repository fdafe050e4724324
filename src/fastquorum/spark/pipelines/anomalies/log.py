"""One cluster's log as anomalies are looked for in it: the replica that counts, in order, times never back."""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.choosing import Replica, chosen_of, ints

_NO_TIME = np.iinfo(np.int64).min


class Log(NamedTuple):
    """n records, shape (n,); what was aborted is among them."""

    replica: Replica
    table: pa.Table
    """Of `signals.SCHEMA`."""
    offsets: Ints
    epochs: Ints
    times_ms: Ints
    types: pa.Array
    """As a dictionary's indices; see `is_of`."""
    names: dict[str, str]
    """Of topics, by id."""
    checkpoints: pa.Table

    @classmethod
    def of(cls, said: pa.Table, committed_end: int | None = None) -> Self:
        """Of the signals of one cluster's logs. `committed_end`, UsageError: as of `chosen_of`."""
        is_checkpoint = pc.equal(said["type"], signals.CHECKPOINT)
        table, replica = chosen_of(said.filter(pc.invert(is_checkpoint)), committed_end)
        topics = said.filter(pc.equal(said["type"], "TOPIC_RECORD"))
        names = {
            key: name for key, name in zip(topics["id"].to_pylist(), topics["name"].to_pylist(), strict=True) if key
        }
        times = np.asarray(table["time_ms"].fill_null(_NO_TIME), np.int64)
        known = times[times != _NO_TIME]
        times = np.maximum(np.maximum.accumulate(times), known.min() if len(known) else 0) if len(times) else times
        types = table["type"].combine_chunks().dictionary_encode()
        return cls(
            replica, table, ints(table["offset"]), ints(table["epoch"]), times, types, names, said.filter(is_checkpoint)
        )

    @property
    def lasted_ms(self) -> int:
        return int(self.times_ms[-1] - self.times_ms[0]) if len(self.times_ms) else 0

    @property
    def end_ms(self) -> int:
        return int(self.times_ms[-1]) if len(self.times_ms) else 0

    def is_of(self, *kinds: str) -> Flags:
        """Which records are of these types?"""
        known = self.types.dictionary.to_pylist()
        return np.isin(np.asarray(self.types.indices), [known.index(each) for each in kinds if each in known])

    def column(self, name: str, at: Ints, unsaid: int) -> Ints:
        """Of these rows."""
        return np.asarray(self.table[name].take(pa.array(at)).fill_null(unsaid), np.int64)
