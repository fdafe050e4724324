"""What has to be so before a caller may come into a running node."""

from collections.abc import Callable

from fastquorum.errors import ClosedError, FastQuorumError, UsageError


class Gate:
    """Open until the node is to end; for appends never where a controller writes the log. For any thread."""

    def __init__(self, *, is_controlled: bool, error: Callable[[], FastQuorumError | None]) -> None:
        """`error` returns what stopped the node."""
        self.is_closed = False
        """The node was asked to stop, or is over."""
        self.refuses_appends = is_controlled
        self._error = error

    def close(self) -> None:
        self.is_closed = self.refuses_appends = True

    def check_open(self) -> None:
        """ClosedError if the node was closed, or the error that stopped it."""
        if self.is_closed:
            error = self._error()
            if error is not None:
                raise error
            raise ClosedError("the quorum is closed", "open it again")

    def check_appends(self) -> None:
        """Check like `check_open`; UsageError if a controller writes the log."""
        if self.refuses_appends:
            self.check_open()
            raise UsageError(
                "the controller of this cluster writes this log, and nobody else may",
                "ask the controller, as Kafka's tools do; or open the directory with controller=False",
            )
