"""Starting threads where there may be no more: a container's pids limit, a user's limit of processes."""

import threading

from fastquorum.errors import FatalError


def start_thread(thread: threading.Thread) -> None:
    """Start it. FatalError if the system has no more threads for this process."""
    try:
        thread.start()
    except RuntimeError as error:  # Python's word for every errno of pthread_create
        raise too_few_threads(f"thread {thread.name}", str(error)) from error


def too_few_threads(what: str, why: str) -> FatalError:
    """Return the error that says what cannot be started, and what to do."""
    return FatalError(
        f"{what} cannot be started ({why}): raise the limit of processes (ulimit -u; pids.max or --pids-limit of a "
        "container; TasksMax= of systemd), or free memory"
    )
