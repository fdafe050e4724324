"""How many files and sockets this process may have open."""

import contextlib
import resource
from typing import Final

FILES_MIN: Final = 32
"""With fewer, Python itself may not get at the modules of a command."""


def is_enough_to_start() -> bool:
    """May this process open as many as any command needs?"""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit == resource.RLIM_INFINITY or limit >= FILES_MIN


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one: shells often start programs with 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # a limit that cannot be raised is a limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
