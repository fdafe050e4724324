"""What both transports keep of the connections that they make: where to, and why one came to nothing."""

import threading
from typing import Final

from fastquorum.kernels.lane import Connection
from fastquorum.types import Endpoint

ERRORS_MAX: Final = 256
"""Most endpoints of which the last error is kept."""


class LastErrors:
    """Why endpoints could not be reached when that was last tried."""

    def __init__(self) -> None:
        self._endpoints: dict[Connection, Endpoint] = {}
        """Of connections that were begun here and are not closed."""
        self._errors: dict[Endpoint, str] = {}
        self._guard = threading.Lock()
        """Of both: connections are begun in one thread and may end in another."""

    def begin(self, connection: Connection, endpoint: Endpoint) -> None:
        """A connection is to be made."""
        with self._guard:
            self._endpoints[connection] = endpoint

    def failed(self, connection: Connection, reason: str) -> None:
        """It came to nothing. Nothing is kept of one that was accepted."""
        with self._guard:
            endpoint = self._endpoints.get(connection)
            if endpoint is None:
                return
            self._errors.pop(endpoint, None)
            self._errors[endpoint] = reason
            if len(self._errors) > ERRORS_MAX:
                del self._errors[next(iter(self._errors))]

    def connected(self, connection: Connection) -> None:
        """It was made."""
        with self._guard:
            endpoint = self._endpoints.get(connection)
            if endpoint is not None:
                self._errors.pop(endpoint, None)

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        with self._guard:
            self._endpoints.pop(connection, None)

    def of(self, endpoint: Endpoint) -> str:
        """The last error; empty if there is none."""
        return self._errors.get(endpoint, "")
