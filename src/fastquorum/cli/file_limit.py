"""How many files and sockets this process may have open."""

import contextlib
import resource


def raise_file_limit() -> None:
    """As many as the system lets us without asking: shells often start programs with 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # a limit that cannot be raised is a limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
