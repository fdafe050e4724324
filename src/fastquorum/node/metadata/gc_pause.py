"""The collector of the interpreter, kept from looking while much is made that is kept and has no cycles: to look for
some in all of it, over and over, takes longer than to make it. For a turn's time.
"""

import gc
from typing import Final

from fastquorum.controller.image.kept import KEPT
from fastquorum.kernels import Kernels

MANY_YOUNG: Final = 500
"""Objects: with some more the collector would look through them."""


class CollectorAtRest:
    """A `with` block in which nothing is collected; it may stand in another one."""

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()


def spare_images(kernels: Kernels) -> None:
    """In a turn in which the collector rests: have it never look through what images are made of. A node of a large
    map refers to dozens of others, all over the memory: to look through those that one change makes anew takes longer
    than the change."""
    if gc.get_count()[0] > MANY_YOUNG:
        kernels.untrack_young(KEPT)
