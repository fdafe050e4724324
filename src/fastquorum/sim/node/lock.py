"""The lane lock: never contended in one thread, but each side of it is a point where other threads may have run."""

from types import TracebackType

from fastquorum.sim.hazards import Hazards


class SimLock:
    """Marks the critical sections of one process. Not reentrant."""

    def __init__(self, hazards: Hazards) -> None:
        self._hazards = hazards
        self.is_held = False

    def __enter__(self) -> None:
        assert not self.is_held, "the lane lock is not reentrant"
        self._hazards.other_threads()
        self.is_held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.is_held = False
        if error is None:
            self._hazards.other_threads()
