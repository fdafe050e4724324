"""How long a caller is willing to wait: checked by every method that takes a timeout, before it does anything."""

from typing import Final

from fastquorum.errors import UsageError

LONGEST_S: Final = 50.0 * 365 * 24 * 3600
"""In place of what is longer: threads and timers of the system cannot be told every number."""


def wait_s(timeout: float | None) -> float | None:
    """Return how many seconds to wait: 0 where the time is over already, LONGEST_S at most; None to wait for good.

    Raises UsageError if that is not a time.
    """
    if timeout is None:
        return None
    try:
        if timeout > 0:
            return timeout if timeout < LONGEST_S else LONGEST_S
        if timeout <= 0:
            return 0
    except TypeError:
        pass  # text, or something else that is not a number
    raise UsageError(f"a timeout of {timeout!r} is not a time to wait", "give a number of seconds, or None")
