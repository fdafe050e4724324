"""Taking connections in at a listening socket, for what runs in an asyncio loop. Sources: accept(2), EMFILE.

asyncio's own server, when the process may open no more files, asks the kernel a hundred times over and prints a
traceback each time, faster and faster. This one waits a moment, and says so once a minute.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Final

from fastquorum.node.io.repeating import Repeating
from fastquorum.types import address_text

OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What accept(2) fails with for want of something of this process or machine; all else befell the connection."""
PAUSE_S: Final = 0.1
ACCEPTS_MAX: Final = 16
"""Taken in at one wake-up."""
OnConnected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


def shortage(listening: socket.socket, error: OSError) -> str:
    """Say why connections cannot be taken in, and what to do."""
    where = address_text(*listening.getsockname()[:2])
    return (
        f"no connection can be taken in at {where}: {os.strerror(error.errno or 0)}; if it stays so, raise the limit "
        "of open files (`ulimit -n`, or LimitNOFILE= of its service)"
    )


class Acceptor:
    """Accepts the connections of one listening socket, which stays its owner's."""

    def __init__(self, listening: socket.socket, on_connected: OnConnected, limit: int) -> None:
        """`on_connected` is told of each connection, in the loop; `limit`: bytes that its reader looks through for a
        separator."""
        self._listening = listening
        self._on_connected = on_connected
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[object]] = set()
        self._resuming: asyncio.TimerHandle | None = None
        self._shortage = Repeating()
        listening.setblocking(False)
        self._resume()

    async def stop(self) -> None:
        """Take no more in. `on_connected` has been told of all that were when this returns."""
        self._loop.remove_reader(self._listening.fileno())
        if self._resuming is not None:
            self._resuming.cancel()
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _resume(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in OUT_OF_DESCRIPTORS:
                    self._loop.remove_reader(self._listening.fileno())
                    self._resuming = self._loop.call_later(PAUSE_S, self._resume)
                    self._shortage.say(shortage(self._listening, error))
                return
            task: asyncio.Task[object] = self._loop.create_task(self._begin(sock))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, sock: socket.socket) -> None:
        reader = asyncio.StreamReader(limit=self._limit, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, self._on_connected, loop=self._loop)
        await self._loop.connect_accepted_socket(lambda: protocol, sock)
