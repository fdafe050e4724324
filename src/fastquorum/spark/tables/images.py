"""Tables of the image at an offset: one row for each thing of a kind, or for each that changed between two offsets.

A row says what the thing is at `end_offset`, exclusive, which is where the image stands: while a transaction is open,
before it. With `diffFrom` there are rows only of things that came (`change` is "added"), went ("removed") or differ
("changed"). The columns tell what the thing is now, or was, if it is gone; `before` has the same columns, but for its
name, as they were, of what changed: `SELECT leader, before.leader`. What came and went in between leaves no trace.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from immutables import Map

from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.topics import Topics
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.columns import Columns, chunks, fields, record, spread
from fastquorum.spark.tables.folding import Folded, folded, guarded_batches, metadata_tasks
from fastquorum.spark.tables.table import Task, owner_columns


class Thing(NamedTuple):
    """One of an image, or of two."""

    key: Any
    before: Any | None
    """None: it was not there, or nobody asks."""
    after: Any | None
    """None: it is gone."""

    @property
    def shown(self) -> Any:
        return self.before if self.after is None else self.after

    @property
    def change(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def former(self) -> Any | None:
        """What it was, if it is something else now."""
        return None if self.after is None else self.before


class ImageTable:
    """Things of one kind, told by their keys and values."""

    def __init__(
        self,
        name: str,
        keys: Columns,
        values: Columns,
        things: Callable[[Image], Iterable[tuple[Any, Any]]],
        changes: Callable[[Image, Image], Iterable[tuple[Any, Any | None, Any | None]]],
        *,
        has_topics: bool = True,
    ) -> None:
        """`things`: key and value of each; `changes`: key and both values of each that differs."""
        self.name = name
        self._keys, self._values = keys, values
        self._things, self._changes = things, changes
        self._has_topics = has_topics
        self._before: Final = record(values)
        self.schema = pa.schema(
            [
                *arrow.OWNER_FIELDS,
                pa.field("end_offset", pa.int64()),
                pa.field("epoch", pa.int32()),
                *fields(keys),
                *fields(values),
                pa.field("change", pa.string()),
                pa.field("before", self._before.kind),
                pa.field("error", pa.string()),
            ]
        )

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        return metadata_tasks(logs, options, table=self.name, has_topics=self._has_topics)

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return guarded_batches(task.logs, options, arrow.pruned(self.schema, columns), self._read)

    def _read(self, log: FoundLog, options: ReadOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        state = folded(log, options)
        for things in chunks(self._of(state, options.topic)):
            columns = [self._column(field, things, log, state) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _of(self, state: Folded, topic: str | None) -> Iterator[Thing]:
        image, before = (None if each is None else of_topic(each, topic) for each in (state.image, state.before))
        assert image is not None
        if before is None:
            return (Thing(key, None, value) for key, value in self._things(image))
        return (Thing(*each) for each in self._changes(before, image))

    def _column(self, field: pa.Field, things: list[Thing], log: FoundLog, state: Folded) -> pa.Array:
        name, count = field.name, len(things)
        if name in self._keys:
            return self._keys[name].make([each.key for each in things])
        if name in self._values:
            return self._values[name].make([each.shown for each in things])
        if state.before is not None and name == "change":
            return pa.array([each.change for each in things], field.type)
        if state.before is not None and name == "before":
            return spread(self._before, [each.former for each in things])
        same = owner_columns(log) | {"end_offset": state.place.end_offset, "epoch": state.place.epoch}
        return arrow.same(same.get(name), field.type, count)


def of_topic(image: Image, name: str | None) -> Image:
    """Only that topic and its configuration, if one is named."""
    if name is None:
        return image
    topic, resource = image.topics.named(name), Resource(ResourceType.TOPIC, name)
    values = image.configs.get(resource)
    return Image(
        topics=Topics() if topic is None else Topics(Map({topic.id: topic}), Map({name: topic.id})),
        configs=Map() if values is None else Map({resource: values}),
    )
