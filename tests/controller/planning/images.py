"""A cluster's layout from its image, for tests of what is planned of a layout."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.controller.image.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.planning.layout import NOBODY, Brokers, Flags, Layout, Numbers
from fastquorum.types import NodeId


class OfImage(NamedTuple):
    """A layout, and what its rows are called."""

    layout: Layout
    topics: tuple[Topic, ...]
    """By name; the layout's rows are theirs, one topic after the other."""
    topic_of: npt.NDArray[np.int64]
    """For each row, the place of its topic."""
    numbers: Numbers
    """For each row, the partition's number in its topic."""

    def targets(self, rows: Sequence[int], after: Numbers) -> list[tuple[Topic, int, tuple[NodeId, ...]]]:
        """What a plan's rows are to become: topic, partition, and the replicas' brokers."""
        ids = self.layout.brokers.ids
        return [
            (
                self.topics[self.topic_of[row]],
                int(self.numbers[row]),
                tuple(int(ids[each]) for each in places if each != NOBODY),
            )
            for row, places in zip(rows, after, strict=True)
        ]


def layout_of(image: Image, min_isr: Callable[[Topic], int]) -> OfImage:
    """`min_isr`: of a topic's partitions, as `ControllerState.min_isr` tells it."""
    topics = tuple(image.topics.sorted())
    counts = np.array([len(topic.partitions) for topic in topics], np.int64)
    partitions: list[Partition] = [each for topic in topics for each in topic.partitions]
    replicas = _matrix([each.replicas for each in partitions])
    leaders = np.fromiter((each.leader for each in partitions), np.int32, len(partitions))
    held = np.unique(np.append(replicas, leaders))
    registered = [
        (each.id, each.rack, not (each.fenced or each.in_controlled_shutdown)) for each in image.brokers.values()
    ]
    brokers = Brokers.of(registered, held[held != NOBODY])
    least = np.array([min_isr(topic) for topic in topics], np.int32)
    layout = Layout.of(
        brokers,
        brokers.places(replicas),
        leaders=brokers.places(leaders),
        in_sync=_are_among(replicas, [each.isr for each in partitions]),
        eligible=_are_among(replicas, [each.elr for each in partitions]),
        min_isr=np.minimum(np.repeat(least, counts), (replicas != NOBODY).sum(axis=1)).astype(np.int32),
        is_moving=np.fromiter((each.is_reassigning for each in partitions), np.bool_, len(partitions)),
    )
    numbers = (number for topic in topics for number, _ in topic.partitions.items())
    return OfImage(
        layout,
        topics,
        np.repeat(np.arange(len(topics)), counts),
        np.fromiter(numbers, np.int32, len(partitions)),
    )


def _matrix(lists: Sequence[Sequence[NodeId]]) -> Numbers:
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    found = np.full((len(lists), int(lengths.max(initial=0))), NOBODY, np.int32)
    found[np.arange(found.shape[1]) < lengths[:, None]] = _flat(lists, int(lengths.sum()))
    return found


def _are_among(replicas: Numbers, lists: Sequence[Sequence[NodeId]]) -> Flags:
    some = _matrix(lists)
    found = np.zeros(replicas.shape, np.bool_)
    for column in range(some.shape[1]):
        found |= replicas == some[:, column, None]
    found &= replicas != NOBODY
    return found


def _flat(lists: Iterable[Sequence[NodeId]], count: int) -> Numbers:
    return np.fromiter(itertools.chain.from_iterable(lists), np.int32, count)
