"""The collector of the interpreter, kept from looking while much is made that is kept and has no cycles: to look for
some in all of it, over and over, takes longer than to make it. For a turn's time.
"""

import gc
from types import TracebackType


class CollectorAtRest:
    """A `with` block in which nothing is collected; it may stand in another one."""

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._was_enabled:
            gc.enable()
