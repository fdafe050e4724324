"""`image`: everything that the image at an offset holds, section by section, as JSON; or what changed of it.

The sections, the keys and the JSON are those of `fastquorum image --format json`, which leaves secrets out. Of changes
a section `partitions` tells single partitions, by topic-number, of topics that were there before and after.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import differences
from fastquorum.controller.image.view import sections_view
from fastquorum.spark.stored.image_sections import BARE, SECTIONS, compact
from fastquorum.spark.tables.columns import plain
from fastquorum.spark.tables.images import ImageTable

_Key = tuple[str, str]


def _things(image: Image) -> Iterator[tuple[_Key, str]]:
    for section, things in sections_view(image):
        for key, shown in things:
            yield (section, key), compact(shown)


def _changes(before: Image, after: Image) -> Iterator[tuple[Any, ...]]:
    for each in differences(before, after):
        bare = BARE.get(each.kind)
        sides = (side if side is None or bare is None else side[bare] for side in (each.before, each.after))
        yield (SECTIONS[each.kind], each.name), *(None if side is None else compact(side) for side in sides)


IMAGE: Final = ImageTable(
    "image",
    {
        "section": plain(pa.string(), lambda key: key[0]),
        "key": plain(pa.string(), lambda key: key[1] or None),
    },
    {"data": plain(pa.string(), lambda data: data)},
    _things,
    _changes,
)
"""`key` is null where a section is one value."""
