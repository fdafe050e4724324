"""The replica's thread: one epoll loop that owns sockets, the flusher's reports and the timers, and calls the replica.

All of raft/ runs here, and everything of the lane that callers do not do themselves. It never runs a user's code, so a
callback that computes for seconds in another thread costs it no more than the interpreter's switch interval now and
then (sys.setswitchinterval, 5 ms by default): no election comes of it.

A wake-up does as little as it can: one wait, one receive a connection, no timer objects. Source: epoll(7).
"""

import errno
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, FrameError
from fastquorum.node.io.channel import NEVER, Channel
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedFlusher, InjectedTransport
from fastquorum.node.io.transport import READ, SocketTransport, oldest_silent
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.ports import LaneLock
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.types import Micros

RECEIVE_BYTES: Final = 1024 * 1024
ACCEPTS_MAX: Final = 64
"""Connections taken in at one wake-up: a storm of them must not keep the quorum waiting."""
UPKEEP_US: Final = 100 * MS
"""How often the log is looked after while it changes."""
SWEEP_US_MIN: Final = 10 * MS
ACCEPT_PAUSE_US: Final = 100 * MS
"""After running out of descriptors, or at the limit of connections: look again then, instead of spinning."""
MAKE_ROOM_SILENT_US: Final = 1_000 * MS
"""At the limit, a connection silent for this long makes room: idle clients must not keep voters out."""
_HANG_UP: Final = select.EPOLLHUP | select.EPOLLERR
_READABLE: Final = select.EPOLLIN | _HANG_UP
_OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Command = Callable[[Replica, Micros], None]


class Reactor:
    """Runs one replica. `start` once, `post` from any thread, `join`."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        transport: SocketTransport,
        flusher: WatchedFlusher,
        lock: LaneLock,
        listening: socket.socket,
        name: str,
        on_end: Callable[[FastQuorumError | None], None],
    ) -> None:
        """`on_end` is called in the replica's thread when nothing runs any more: it closes log, state and flusher."""
        self._config = config
        self._transport = transport
        self._flusher = flusher
        self._flusher_fd = flusher.fileno()
        self._lock = lock
        self._listening = listening
        self._on_end = on_end
        self._commands: deque[Command] = deque()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._replica: Replica | None = None
        self._over = False
        self._accepting = False
        self._accept_at_us: Micros = NEVER
        self._accepted_count = 0
        self._upkeep_at_us: Micros = NEVER
        self._sweep_at_us: Micros = 0
        limits = (config.partial_frame_us_max, config.request_timeout_us, config.disk_stall_us_max)
        self._sweep_every_us = max(SWEEP_US_MIN, min(limits) // 4)
        self._note = transport.note_request if isinstance(transport, InjectedTransport) else None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # --- from any thread ----------------------------------------------------------------------------------------------

    def start(self, replica: Replica) -> None:
        self._replica = replica
        self._thread.start()

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
        except (FatalError, CorruptionError) as error:
            replica.halt(error, now_us())
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
        poll = self._transport.epoll.poll
        self._transport.epoll.register(self._flusher.fileno(), READ)
        self._watch_listening(True)
        replica.start(now_us())
        deadline = replica.deadline_us
        while not self._over:
            if not self._serve(replica, poll(self._wait_s(replica, deadline, now_us()))):
                return
            now, deadline = now_us(), replica.deadline_us  # once a turn: it is put together from many
            if not self._is_due(deadline, now):
                continue
            # A poll may tell what was there long ago: the process was stopped, or another thread computed. What came
            # meanwhile is looked at before anybody is held to a deadline (lane rule 6).
            if not self._serve(replica, poll(0)):
                return
            now, deadline = now_us(), replica.deadline_us
            if 0 <= deadline <= now or 0 <= self._upkeep_at_us <= now:
                self._upkeep_at_us = NEVER
                replica.on_tick(now)
                deadline = replica.deadline_us
            if self._sweep_at_us <= now:
                self._sweep(replica, now)
                deadline = replica.deadline_us

    def _is_due(self, deadline: Micros, now: Micros) -> bool:
        return 0 <= deadline <= now or 0 <= self._upkeep_at_us <= now or self._sweep_at_us <= now

    def _serve(self, replica: Replica, ready: list[tuple[int, int]]) -> bool:
        """False as soon as the replica is over: the flusher's last report is for whoever closes the log."""
        transport = self._transport
        for fd, mask in ready:
            if self._over:
                return False
            now = now_us()
            channel = transport.by_fd.get(fd)
            if channel is not None:
                self._on_channel(replica, channel, mask, now)
            elif fd == self._flusher_fd:
                self._on_flusher(replica, now)
            elif fd == transport.wake_fd:
                self._on_wake(replica, now)
            else:
                self._accept(now)
        return not self._over

    def _wait_s(self, replica: Replica, deadline: Micros, now: Micros) -> float:
        """How long to wait for events at most; the kernel rounds up to milliseconds."""
        log = replica.log
        if self._upkeep_at_us < 0 and log.durable_mark.at.offset != log.end_offset:
            self._upkeep_at_us = now + UPKEEP_US
        due = self._sweep_at_us
        if 0 <= self._upkeep_at_us < due:
            due = self._upkeep_at_us
        if 0 <= deadline < due:
            due = deadline
        return (due - now) / 1_000_000 if due > now else 0.0

    def _on_flusher(self, replica: Replica, now: Micros) -> None:
        for token, code in self._flusher.completions():
            replica.on_flush(token, code, now)
        if isinstance(self._flusher.inner, InjectedFlusher):
            self._flusher.inner.counted()
        if self._flusher.has_stalled:
            self._flusher.has_stalled = False
            replica.request(ev.DiskRecovered(), now)

    def _on_wake(self, replica: Replica, now: Micros) -> None:
        transport = self._transport
        os.eventfd_read(transport.wake_fd)
        while self._commands and not self._over:
            self._commands.popleft()(replica, now)
        while transport.resolved:
            connection, address = transport.resolved.popleft()
            with self._lock:
                transport.begin_connect(connection, address)
        while transport.lost:
            channel = transport.channel(transport.lost.popleft())
            if channel is not None:
                self._lose(replica, channel, now)
        replica.work(now)

    # --- connections --------------------------------------------------------------------------------------------------

    def _on_channel(self, replica: Replica, channel: Channel, mask: int, now: Micros) -> None:
        if not channel.connected:
            with self._lock:
                connected = self._transport.finish_connect(channel)
            if connected:
                replica.on_connected(channel.number, now)
            else:
                self._lose(replica, channel, now)
            return
        if mask & select.EPOLLOUT:
            with self._lock:
                self._transport.flush(channel)
        if mask & _READABLE:
            self._receive(replica, channel, now)

    def _receive(self, replica: Replica, channel: Channel, now: Micros) -> None:
        sock = channel.sock
        assert sock is not None
        try:
            size = sock.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            size = 0
        if size == 0:
            # The end of the stream, in the middle of a frame or not. What was begun is not acted upon.
            self._lose(replica, channel, now)
            return
        channel.heard_us = now
        view = self._view
        if channel.partial_since_us == NEVER and int.from_bytes(view[:4], "big", signed=True) == size - 4 >= 0:
            # One whole frame, as in the steady state: it needs no splitting.
            self._frame(replica, channel, bytes(view[4:size]), now)
            return
        try:
            frames = channel.splitter.feed(view[:size])
        except FrameError:
            self._lose(replica, channel, now)
            return
        if not channel.splitter.pending_bytes:
            channel.partial_since_us = NEVER
        elif frames or channel.partial_since_us == NEVER:
            channel.partial_since_us = now
        for frame in frames:
            if channel.broken or self._over:
                return
            self._frame(replica, channel, frame, now)

    def _frame(self, replica: Replica, channel: Channel, frame: bytes, now: Micros) -> None:
        channel.seen_frame = True
        if self._note is not None and channel.accepted:
            self._note(channel.number, frame)
        replica.on_frame(channel.number, frame, now)

    def _lose(self, replica: Replica, channel: Channel, now: Micros) -> None:
        with self._lock:
            self._transport.close(channel.number)
        replica.on_disconnected(channel.number, now)

    # --- accepting ----------------------------------------------------------------------------------------------------

    def _watch_listening(self, wanted: bool) -> None:
        if wanted is not self._accepting:
            self._accepting = wanted
            if wanted:
                self._transport.epoll.register(self._listening.fileno(), READ)
            else:
                self._transport.epoll.unregister(self._listening.fileno())

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
                if error.errno in _OUT_OF_DESCRIPTORS:
                    self._pause_accepting(now)
                # Anything else befell the connection that was to be accepted, not this socket.
                return
            self._transport.accept(sock)

    def _pause_accepting(self, now: Micros) -> None:
        self._watch_listening(False)
        self._accept_at_us = now + ACCEPT_PAUSE_US
        self._sweep_at_us = min(self._sweep_at_us, self._accept_at_us)

    def _make_room(self, now: Micros) -> bool:
        silent = oldest_silent(self._transport.channels(), now, MAKE_ROOM_SILENT_US)
        if silent is not None:
            assert self._replica is not None
            self._lose(self._replica, silent, now)
        return silent is not None

    # --- now and then -------------------------------------------------------------------------------------------------

    def _sweep(self, replica: Replica, now: Micros) -> None:
        """Deadlines that need no precision: overdue connections, a disk that does not answer, accepting again."""
        self._sweep_at_us = now + self._sweep_every_us
        config = self._config
        for channel in self._transport.channels():
            if channel.is_overdue(
                now,
                partial_us_max=config.partial_frame_us_max,
                idle_us_max=config.connection_idle_us_max,
                connect_us_max=config.request_timeout_us,
            ):
                self._lose(replica, channel, now)
        if self._flusher.is_stalled(now, config.disk_stall_us_max):
            replica.request(ev.DiskStalled(), now)
        if 0 <= self._accept_at_us <= now:
            self._accept_at_us = NEVER
            self._watch_listening(True)

    def _close(self) -> None:
        """Sockets go, with what they still take at once: the last words of a leader that resigned are in there."""
        with self._lock:
            for channel in self._transport.channels():
                self._transport.flush(channel)
            self._listening.close()
            self._transport.close_all()
