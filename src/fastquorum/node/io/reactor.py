"""The replica's thread: one epoll loop that owns its timers, takes connections in and calls the replica.

All of raft/ runs here. It never runs a user's code, so a callback that computes for seconds in another thread costs it
no more than the interpreter's switch interval now and then (sys.setswitchinterval, 5 ms by default): no election comes
of it. Where bytes move is a subclass's business: `socket_reactor` (here, for the pure lane) or `native_reactor`.

A wake-up does as little as it can: one wait, no timer objects. Source: epoll(7).
"""

import errno
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from fastquorum.closing import end_all
from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, FatalError
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.native.errors import lacks_memory
from fastquorum.node.io.repeating import Repeating
from fastquorum.node.io.sockets.accepting import OUT_OF_DESCRIPTORS, shortage
from fastquorum.node.io.sockets.channel import NEVER
from fastquorum.node.io.sockets.dialing import Dialed
from fastquorum.node.io.sockets.outgoing import LastErrors
from fastquorum.node.ports import LaneLock, Transport
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.threads import start_thread
from fastquorum.types import Micros

READ: Final = select.EPOLLIN
ACCEPTS_MAX: Final = 16
"""Connections taken in at one wake-up, in less than a millisecond: a storm of them must not keep the quorum waiting."""
UPKEEP_US: Final = 100 * MS
"""How often the log is looked after while it changes."""
SWEEP_US_MIN: Final = 10 * MS
ACCEPT_PAUSE_US: Final = 100 * MS
"""After running out of descriptors, or at the limit of connections: look again then, instead of spinning."""
MAKE_ROOM_SILENT_US: Final = 1_000 * MS
"""At the limit, a connection silent for this long makes room: idle clients must not keep voters out."""

Command = Callable[[Replica, Micros], None]


class ReactorTransport(Transport, Protocol):
    """What the loop asks of a transport, beside the port."""

    epoll: select.epoll
    wake_fd: int
    lost: deque[Connection]
    drained: deque[Connection]
    dialed: deque[tuple[Connection, Dialed]]
    errors: LastErrors

    def __len__(self) -> int: ...
    def knows(self, connection: Connection) -> bool: ...
    def accept(self, sock: socket.socket) -> Connection: ...
    def take_over(self, connection: Connection, dialed: Dialed) -> None: ...
    def overdue(self, now: Micros) -> list[Connection]: ...
    def oldest_silent(self, now: Micros, silent_us_min: Micros) -> Connection | None: ...
    def close_all(self) -> None: ...


class ReactorFlusher(Protocol):
    """What the loop asks of a flush port."""

    has_stalled: bool

    def is_stalled(self, now_us: Micros, stall_us_max: Micros) -> bool: ...


class Reactor:
    """Runs one replica. `start` once, `post` from any thread, `join`."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        transport: ReactorTransport,
        flusher: ReactorFlusher,
        lock: LaneLock,
        listening: socket.socket,
        name: str,
        on_end: Callable[[FastQuorumError | None], None],
    ) -> None:
        """`on_end` is called in the replica's thread when nothing runs any more: it closes log, state and flusher."""
        self._config = config
        self._transport = transport
        self._flusher = flusher
        self._lock = lock
        self._listening = listening
        self._listening_fd = listening.fileno()
        self._on_end = on_end
        self._commands: deque[Command] = deque()
        self._replica: Replica | None = None
        self._over = False
        self._accepting = False
        self._accept_at_us: Micros = NEVER
        self._shortage = Repeating()
        self.accepted = 0
        """Connections taken in."""
        self._upkeep_at_us: Micros = NEVER
        self._sweep_at_us: Micros = 0
        limits = (config.partial_frame_us_max, config.request_timeout_us, config.disk_stall_us_max)
        self._sweep_every_us = max(SWEEP_US_MIN, min(limits) // 4)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # --- from any thread ----------------------------------------------------------------------------------------------

    def start(self, replica: Replica) -> None:
        self._replica = replica
        start_thread(self._thread)

    def post(self, command: Command) -> None:
        """Have the replica's thread do this soon; dropped if the thread is over."""
        self._commands.append(command)
        self._transport.wake()

    def join(self, timeout_s: float) -> bool:
        """True if the thread is over."""
        if self._thread is threading.current_thread():
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def on_stopped(self, error: FastQuorumError | None) -> None:
        """The replica is over: the loop ends with this turn."""
        self._over = True

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        replica = self._replica
        assert replica is not None
        try:
            self._loop(replica)
        except (FatalError, CorruptionError, DirectoryError) as error:  # the last: what lies there now is no file
            replica.halt(error, now_us())
        except MemoryError:
            replica.halt(lacks_memory(), now_us())
        except BaseException as error:
            # A bug of ours: nothing is claimed any more, and everybody who waits is told before it is shown.
            replica.halt(FatalError(f"internal error in the replica's thread: {error!r}"), now_us())
            raise
        finally:
            try:
                self._close()
            finally:
                self._on_end(replica.error)

    def _loop(self, replica: Replica) -> None:
        self._watch_sources()
        self._watch_listening(True)
        replica.start(now_us())
        deadline = replica.deadline_us
        while not self._over:
            if not self._serve(replica, self._poll(self._wait_s(replica, deadline, now_us()))):
                return
            now, deadline = now_us(), replica.deadline_us  # once a turn: it is put together from many
            if not self._is_due(deadline, now):
                continue
            # A poll may tell what was there long ago: the process was stopped, or another thread computed. What came
            # meanwhile is looked at before anybody is held to a deadline (lane rule 6).
            if not self._serve(replica, self._poll(0.0)):
                return
            now, deadline = now_us(), replica.deadline_us
            if 0 <= deadline <= now or 0 <= self._upkeep_at_us <= now:
                self._upkeep_at_us = NEVER
                replica.on_tick(now)
                deadline = replica.deadline_us
            if self._sweep_at_us <= now:
                self._sweep(replica, now)
                deadline = replica.deadline_us

    def _poll(self, wait_s: float) -> list[tuple[int, int]]:
        return self._transport.epoll.poll(wait_s)

    def _is_due(self, deadline: Micros, now: Micros) -> bool:
        return 0 <= deadline <= now or 0 <= self._upkeep_at_us <= now or self._sweep_at_us <= now

    def _serve(self, replica: Replica, ready: list[tuple[int, int]]) -> bool:
        """False as soon as the replica is over: the flusher's last report is for whoever closes the log."""
        transport = self._transport
        for fd, mask in ready:
            if self._over:
                return False
            now = now_us()
            if fd == transport.wake_fd:
                self._on_wake(replica, now)
            elif fd == self._listening_fd:
                self._accept(now)
            else:
                self._on_source(replica, fd, mask, now)
        self._catch_up(replica)
        return not self._over

    # --- a subclass's -------------------------------------------------------------------------------------------------

    def _watch_sources(self) -> None:
        """Register what the loop has to wait for, beside what is registered already."""
        raise NotImplementedError

    def _on_source(self, replica: Replica, fd: int, mask: int, now: Micros) -> None:
        """One of those is ready."""
        raise NotImplementedError

    def _catch_up(self, replica: Replica) -> None:
        """The end of a turn: what has come meanwhile, whoever noticed it."""

    def _is_behind(self, replica: Replica) -> bool:
        """Is there something for `_catch_up`? Then nothing is waited for."""
        return False

    def _wait_s(self, replica: Replica, deadline: Micros, now: Micros) -> float:
        """How long to wait for events at most; the kernel rounds up to milliseconds."""
        if self._is_behind(replica):
            return 0.0
        end_offset, mark = replica.log.end_offset, replica.log.durable_mark
        if self._upkeep_at_us < 0 and (mark.at.offset, mark.committed) != (end_offset, end_offset):
            self._upkeep_at_us = now + UPKEEP_US
        due = self._sweep_at_us
        if 0 <= self._upkeep_at_us < due:
            due = self._upkeep_at_us
        if 0 <= deadline < due:
            due = deadline
        return (due - now) / 1_000_000 if due > now else 0.0

    def _disk_is_back(self, replica: Replica, now: Micros) -> None:
        """A sync has ended."""
        if self._flusher.has_stalled:
            self._flusher.has_stalled = False
            replica.request(ev.DiskRecovered(), now)

    def _on_wake(self, replica: Replica, now: Micros) -> None:
        transport = self._transport
        os.eventfd_read(transport.wake_fd)
        while self._commands and not self._over:
            self._commands.popleft()(replica, now)
        while transport.dialed:
            connection, dialed = transport.dialed.popleft()
            with self._lock:
                transport.take_over(connection, dialed)
        while transport.drained:
            replica.on_drained(transport.drained.popleft(), now)
        while transport.lost:
            self._lose(replica, transport.lost.popleft(), now)
        replica.work(now)

    # --- connections --------------------------------------------------------------------------------------------------

    def _lose(self, replica: Replica, connection: Connection, now: Micros) -> None:
        with self._lock:
            self._transport.close(connection)
        replica.on_disconnected(connection, now)

    # --- accepting ----------------------------------------------------------------------------------------------------

    def _watch_listening(self, wanted: bool) -> None:
        if wanted is not self._accepting:
            if wanted:
                self._transport.epoll.register(self._listening_fd, READ)
            else:
                self._transport.epoll.unregister(self._listening_fd)
            self._accepting = wanted

    def _accept(self, now: Micros) -> None:
        for _ in range(ACCEPTS_MAX):
            if len(self._transport) >= self._config.connections_max and not self._make_room(now):
                self._pause_accepting(now)
                return
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in OUT_OF_DESCRIPTORS:
                    self._pause_accepting(now)
                    self._shortage.say(shortage(self._listening, error))
                # Anything else befell the connection that was to be accepted, not this socket.
                return
            self._transport.accept(sock)
            self.accepted += 1

    def _pause_accepting(self, now: Micros) -> None:
        self._watch_listening(False)
        self._accept_at_us = now + ACCEPT_PAUSE_US
        self._sweep_at_us = min(self._sweep_at_us, self._accept_at_us)

    def _make_room(self, now: Micros) -> bool:
        silent = self._transport.oldest_silent(now, MAKE_ROOM_SILENT_US)
        if silent is not None:
            assert self._replica is not None
            self._lose(self._replica, silent, now)
        return silent is not None

    # --- now and then -------------------------------------------------------------------------------------------------

    def _sweep(self, replica: Replica, now: Micros) -> None:
        """Deadlines that need no precision: overdue connections, a disk that does not answer, accepting again."""
        late_us, self._sweep_at_us = now - self._sweep_at_us, now + self._sweep_every_us
        for connection in self._transport.overdue(now):
            self._transport.errors.failed(connection, os.strerror(errno.ETIMEDOUT))
            self._lose(replica, connection, now)
        stall_us_max = self._config.disk_stall_us_max
        # While this thread was held up, so may have been what reports a sync's end: the disk is judged next time.
        if late_us < stall_us_max // 2 and self._flusher.is_stalled(now, stall_us_max):
            replica.request(ev.DiskStalled(), now)
        if 0 <= self._accept_at_us <= now:
            self._accept_at_us = NEVER
            try:
                self._watch_listening(True)
            except OSError:  # no memory, or too many are watched: as if there were no descriptor
                self._pause_accepting(now)

    def _close(self) -> None:
        """Sockets go, with what they still take at once: the last words of a leader that resigned are in there."""
        with self._lock:
            end_all((self._listening.close, self._transport.close_all))
