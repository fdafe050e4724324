"""The changes between two images, thing by thing: as words for people, as values for programs.

Parts that both share are skipped: comparing two images of one log, a few records apart, costs those records and a look
at each topic.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from fastquorum.controller.image import view
from fastquorum.controller.image.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topic, Topics
from fastquorum.controller.image.vector import Vector
from fastquorum.controller.image.view import View

K = TypeVar("K")
V = TypeVar("V")


class Difference(NamedTuple):
    """One thing that came, went, or changed."""

    kind: str
    """feature, broker, controller, topic, partition, config, client quota, producer ids, acl, scram, delegation token.
    """
    name: str
    """`3`, `my-topic`, `my-topic-0`, `topic my-topic`."""
    before: View | None
    """The thing before; None: it was not there."""
    after: View | None
    """The thing after; None: it is gone."""

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Return each field that differs, before and after; empty for a thing that came or went."""
        if self.before is None or self.after is None:
            return {}
        keys = [*self.before, *(key for key in self.after if key not in self.before)]
        pairs = ((key, (self.before.get(key), self.after.get(key))) for key in keys)
        return {key: (was, now) for key, (was, now) in pairs if was != now}

    @property
    def words(self) -> str:
        """`partition t-0: leader 1 -> 2, isr [1, 2] -> [2]`."""
        subject = f"{self.kind} {self.name}".rstrip()
        if self.before is None or self.after is None:
            there = self.after if self.before is None else self.before
            assert there is not None
            return f"{subject} {'created' if self.before is None else 'gone'}{_gist(self.kind, there)}"
        return f"{subject}: " + ", ".join(
            f"{key} {_text(was)} -> {_text(now)}" for key, (was, now) in self.changes.items()
        )

    def as_view(self) -> View:
        """Return the change as a plain value for JSON."""
        shown: View = {"kind": self.kind, "name": self.name}
        if self.before is None:
            return shown | {"change": "created", "after": self.after}
        if self.after is None:
            return shown | {"change": "gone", "before": self.before}
        changes = {key: {"before": was, "after": now} for key, (was, now) in self.changes.items()}
        return shown | {"change": "changed", "fields": changes}


def differences(before: Image, after: Image) -> Iterator[Difference]:
    """Yield everything that differs, kind by kind, each sorted."""
    features = before.features.by_name(), after.features.by_name()
    yield from _of_maps("feature", *features, str, lambda level: {"level": level})
    yield from _of_maps("broker", before.brokers, after.brokers, str, view.broker_view)
    yield from _of_maps("controller", before.controllers, after.controllers, str, view.controller_view)
    yield from _of_topics(before.topics, after.topics)
    yield from _of_maps("config", before.configs, after.configs, view.resource_name, _sorted)
    yield from _of_maps("client quota", before.quotas, after.quotas, view.entity_name, _sorted)
    if before.next_producer_id != after.next_producer_id:
        ids = before.next_producer_id, after.next_producer_id
        yield Difference("producer ids", "", *({"next": each} for each in ids))
    yield from _of_maps("acl", before.acls, after.acls, str, view.acl_view)
    yield from _of_maps("scram", before.scram, after.scram, view.scram_name, view.scram_view)
    yield from _of_maps("delegation token", before.tokens, after.tokens, str, view.token_view)


# --- the same as values -----------------------------------------------------------------------------------------------


def map_changes(
    before: Mapping[K, V], after: Mapping[K, V], name: Callable[[K], str] = str
) -> Iterator[tuple[K, V | None, V | None]]:
    """Yield each key whose value differs, with both values; None: it was not, or is not there."""
    if before is after:
        return
    names = {key: name(key) for key in {*before, *after}}
    for key in sorted(names, key=lambda each: (_order(each), names[each])):
        was, now = before.get(key), after.get(key)
        if was is not now and was != now:
            yield key, was, now


def topic_changes(before: Topics, after: Topics) -> Iterator[tuple[Topic | None, Topic | None]]:
    """Yield topics that came, went or have changed partitions. A topic that was recreated under its name is first
    deleted, then created."""
    if before is after:
        return
    for name in sorted({*before.ids, *after.ids}):
        was, now = before.named(name), after.named(name)
        if was is now:
            continue
        if was is not None and now is not None and was.id != now.id:
            yield was, None
            yield None, now
        else:
            yield was, now


def partition_changes(before: Topics, after: Topics) -> Iterator[tuple[Topic, int, Partition | None, Partition | None]]:
    """Yield changed partitions, also those of topics that came or went: the topic, the number, before and after."""
    for was, now in topic_changes(before, after):
        there = now or was
        assert there is not None
        old, new = (Vector[Partition]() if each is None else each.partitions for each in (was, now))
        for number, had, has in old.changes_to(new):
            yield there, number, had, has


def _of_maps(
    kind: str,
    before: Mapping[K, V],
    after: Mapping[K, V],
    name: Callable[[K], str],
    show: Callable[[V], View],
) -> Iterator[Difference]:
    for key, was, now in map_changes(before, after, name):
        yield Difference(kind, name(key), None if was is None else show(was), None if now is None else show(now))


def _of_topics(before: Topics, after: Topics) -> Iterator[Difference]:
    for was, now in topic_changes(before, after):
        if now is None or was is None:
            gone, made = (None if each is None else view.topic_view(each) for each in (was, now))
            there = now or was
            assert there is not None
            yield Difference("topic", there.name, gone, made)
            continue
        for number, *pair in was.partitions.changes_to(now.partitions):
            old, new = (None if each is None else view.partition_view(each) for each in pair)
            yield Difference("partition", f"{now.name}-{number}", old, new)


def _order(key: Any) -> int:
    """Return a sort key: node ids by number, all else by name."""
    return key if isinstance(key, int) else 0


def _sorted(values: Mapping[str, Any]) -> View:
    return dict(sorted(values.items()))


def _gist(kind: str, there: View) -> str:
    """Return the most important fields of a thing that came or went."""
    match kind:
        case "topic":
            return f": {len(there['partitions'])} partitions, id {there['id']}"
        case "partition":
            return f": leader {there['leader']}, replicas {there['replicas']}"
        case "broker":
            return f": epoch {there['epoch']}{', fenced' if there['fenced'] else ''}"
        case "feature" | "config" | "client quota":
            return ": " + ", ".join(f"{key} {_text(value)}" for key, value in there.items())
        case _:
            return ""


def _text(value: Any) -> str:
    """Return a value as in JSON, but "-" for None, and without quotes."""
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
