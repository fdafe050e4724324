"""The classes of an image's objects that cannot have cycles: none changes once it is made, so it refers only to older
objects. The garbage collector need not scan them.
"""

import gc
from collections.abc import Iterable, Iterator
from typing import Any, Final

from immutables import Map

from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.image.vector import Vector
from fastquorum.types import Uuid

_MANY: Final = 2_000
"""Items of a map that has nodes of every kind: a few branches, many branches."""


def _nodes(of: Iterable[Any]) -> Iterator[Any]:
    for each in of:
        if not isinstance(each, int):
            yield each
            yield from _nodes(gc.get_referents(each))


def _map_nodes() -> tuple[type, ...]:
    """Return the classes of a Map's nodes, which have no public names."""
    whole: Map[int, int] = Map({number: number for number in range(_MANY)})
    return tuple(dict.fromkeys(type(each) for each in _nodes(gc.get_referents(whole)) if not isinstance(each, type)))


KEPT: Final[tuple[type, ...]] = (*_map_nodes(), Topic, Partition, Vector, Uuid)
