"""A set of descriptors to wait for that other threads can end the wait of."""

import os
import select
from contextlib import ExitStack, closing


def waking_epoll() -> tuple[select.epoll, int]:
    """Return an epoll set, and an eventfd that it waits for. OSError; nothing is left open then."""
    with ExitStack() as made:
        epoll = made.enter_context(closing(select.epoll(flags=select.EPOLL_CLOEXEC)))
        wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        made.callback(os.close, wake_fd)
        epoll.register(wake_fd, select.EPOLLIN)
        made.pop_all()
    return epoll, wake_fd
