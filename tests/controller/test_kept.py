"""The collector need not look through an image: all that a large one is made of is of classes that are named."""

import gc
from typing import Any

from fastquorum.controller.image import Image
from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.kept import KEPT
from fastquorum.controller.image.partition import DIRECTORY_MIGRATING
from fastquorum.kernels import load
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord


def records(count: int) -> list[Message]:
    made: list[Message] = []
    for number in range(count):
        topic_id = Uuid(number.to_bytes(16, "big"))
        made.append(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        made += [PartitionRecord(topic_id=topic_id, partition_id=at, replicas=[1], isr=[1]) for at in range(2)]
    return made


def test_of_a_large_image_nothing_is_left_to_look_through() -> None:
    kernels = load("native")
    gc.collect()
    gc.disable()
    try:
        wanted = records(3_000)
        editor = ImageEditor(Image(), kernels.untracked)
        for each in wanted:
            editor.apply(each)
        image = editor.finish()
        kernels.untrack_young(KEPT)
    finally:
        gc.enable()
    tracked = [each for each in parts(image.topics) if gc.is_tracked(each) and each is not DIRECTORY_MIGRATING]
    assert {type(each) for each in tracked} <= {tuple}, "but for tuples of ids, most of which are shared"
    assert image == Image().apply(wanted)


def parts(topics: Any) -> list[Any]:
    """All that the maps of topics are made of, down to numbers and texts."""
    found, left = [], [*gc.get_referents(topics.by_id), *gc.get_referents(topics.ids)]
    while left:
        each = left.pop()
        if not isinstance(each, type | int | str | None):
            found.append(each)
            left += gc.get_referents(each)
    return found
