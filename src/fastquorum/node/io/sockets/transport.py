"""The Transport port over non-blocking TCP sockets and one epoll instance. No thread of its own.

`connect`, `send` and `close` are called with the lane lock held, by whichever thread holds it; so is every method here
that touches an outbox. `send` gives the socket what it takes at once - the steady state needs no other thread's turn -
and leaves the rest to the replica's thread, which is told by epoll. A socket that fails is shut down, so that epoll
reports it where it can be handled.
"""

import errno
import os
import select
import socket
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Final

from fastquorum.addresses import AddressError
from fastquorum.config import QuorumConfig
from fastquorum.errnos import reason
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.arrivals import SLICE_BYTES
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets.channel import NEVER, Channel
from fastquorum.node.io.sockets.dialing import Dialed, is_connected
from fastquorum.node.io.sockets.outgoing import Outgoing, begin_connect, dial_timeout_s, numeric_address
from fastquorum.node.io.sockets.receiving import RECEIVE_BYTES
from fastquorum.node.io.sockets.resolving import Address
from fastquorum.types import Endpoint, Micros

READ: Final = select.EPOLLIN
READ_WRITE: Final = select.EPOLLIN | select.EPOLLOUT
WRITE: Final = select.EPOLLOUT
OUTBOX_BYTES_MAX: Final = 24 * 1024 * 1024
"""What a connection may be owed beyond one frame; a peer that lets more pile up is closed. Two of the largest answers
leave at once where one waited for the other."""
PAUSE_BYTES: Final = 256 * 1024
"""A connection that is owed more than this is not read from, and no answer is made for it: there would only be more."""
CROWD_BYTES: Final = 64 * 1024 * 1024
"""Owed to all of them: beyond it no answer is made for one that is owed anything. And of frames that came: beyond it no
connection may have a second one."""
KEPT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Both, and frames that are not whole yet: beyond it a connection that has any such is not read from, and one that
would be owed more is closed, but for voters' and those that this node made."""
CROWDED_RECEIVE_BYTES: Final = 64 * 1024
"""Read at once beyond that."""
CROWDED_SLICE_BYTES: Final = 1024
"""Bytes read at once from a stranger's connection, but for the rest of a frame: so many bytes may be many frames."""
FRAME_OVERHEAD_BYTES: Final = 256
"""What a frame that waits takes beside its bytes, at most: many small ones are more than their bytes."""
WAITING_MAX: Final = 64
"""Frames of one connection that are not dealt with, beyond which it is not read from."""
WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
JOIN_BYTES_MAX: Final = 16 * 1024
"""Frames up to this size are copied behind their length; larger ones are sent as two parts."""


class SocketTransport(Outgoing):
    """All connections of one replica."""

    def __init__(self, config: QuorumConfig, kernels: Kernels) -> None:
        super().__init__()
        with ExitStack() as made:
            made.callback(os.close, self.wake_fd)
            made.enter_context(closing(self.epoll))
            self.strangers = made.enter_context(closing(select.epoll(flags=select.EPOLL_CLOEXEC)))
            """The epoll of connections that others made, but for voters'; those are in `epoll`, and this in it, too."""
            self.epoll.register(self.strangers.fileno(), READ)
            made.pop_all()
        self.by_fd: dict[int, Channel] = {}
        self._config = config
        self._kernels = kernels
        self._channels: dict[Connection, Channel] = {}
        self._owed_bytes = 0
        """In all outboxes."""
        self._partial_bytes = 0
        """Bytes of all frames that are not whole yet."""
        self._waiting_bytes = 0
        """Bytes of all frames that are not dealt with yet."""
        self._is_crowded = False
        """They were more than KEPT_BYTES_MAX, and are not much fewer yet."""
        self._next_number: Connection = 1

    # --- the port -----------------------------------------------------------------------------------------------------

    def connect(self, endpoint: Endpoint) -> Connection:
        """Begin to connect; `Replica.on_connected` or `on_disconnected` follows."""
        channel = self._new_channel(None, accepted=False)
        try:
            self.errors.begin(channel.number, endpoint)
            address = numeric_address(endpoint)
        except AddressError as error:
            self._came_to_nothing(channel.number, str(error))
            return channel.number
        if address is None:
            self._dialer.dial(channel.number, endpoint, dial_timeout_s(self._config))
        else:
            self._begin_connect(channel, address)
        return channel.number

    def send(self, connection: Connection, frame: Buffer) -> None:
        """Send one frame, or what the socket takes of it; the rest follows when it takes more."""
        channel = self._channels.get(connection)
        if channel is None or channel.broken:
            return
        length = len(frame).to_bytes(4, "big")
        if channel.outbox or not channel.connected:
            self._put(channel, b"".join((length, frame)))
            return
        assert channel.sock is not None
        try:
            if len(frame) <= JOIN_BYTES_MAX:
                data = b"".join((length, frame))
                sent = channel.sock.send(data, socket.MSG_NOSIGNAL)
                if sent == len(data):
                    return
                self._put(channel, data[sent:])
            else:
                sent = channel.sock.sendmsg((length, frame), (), socket.MSG_NOSIGNAL)
                if sent < 4 + len(frame):
                    self._put(channel, b"".join((length, frame))[sent:])
        except (BlockingIOError, InterruptedError):
            self._put(channel, b"".join((length, frame)))
        except OSError:
            self._break(channel)

    def close(self, connection: Connection) -> None:
        """Close; no report follows."""
        channel = self._channels.pop(connection, None)
        if channel is not None:
            channel.broken = True
            self._owed_bytes -= channel.outbox_bytes
            self._partial_bytes -= channel.partial_bytes
            self._waiting_bytes -= channel.waiting_bytes
            if channel.sock is None:
                self._dialer.cancel(connection)
            else:
                self.by_fd.pop(channel.fd, None)
                # While a forked child has a copy of it, closing alone takes no socket out of an epoll set.
                self.end(channel)
                channel.sock.close()
            self.errors.forget(connection)  # whoever waits for that goes on when nothing is sent any more
            self._regard_crowd()

    def favour(self, connection: Connection) -> None:
        """It is a voter's: it is served before others', or as they are where the system has no room to watch it so."""
        channel = self._channels.get(connection)
        if channel is not None and channel.yields:
            if not channel.has_ended:
                try:
                    self.epoll.register(channel.fd, self._interest(channel))
                except OSError:
                    return
                self.strangers.unregister(channel.fd)
            channel.is_favoured = True

    def needs_drain(self, connection: Connection) -> bool:
        channel = self._channels.get(connection)
        if channel is not None:
            channel.drain_wanted = self._owes_enough(channel)
        return channel is not None and channel.drain_wanted

    def is_crowded(self) -> bool:
        return self._owed_bytes > CROWD_BYTES

    # --- for the reactor, on the replica's thread ---------------------------------------------------------------------

    def channels(self) -> list[Channel]:
        return list(self._channels.values())

    def __len__(self) -> int:
        return len(self._channels)

    def channel(self, connection: Connection) -> Channel | None:
        return self._channels.get(connection)

    def poll(self, wait_s: float) -> list[tuple[int, int]]:
        """Return what is ready, in epoll(7)'s form, strangers' connections too: for a loop that serves all alike."""
        ready = self.epoll.poll(wait_s)
        set_fd = self.strangers.fileno()
        others = [each for each in ready if each[0] != set_fd]
        return others if len(others) == len(ready) else others + self.strangers.poll(0)

    def knows(self, connection: Connection) -> bool:
        return connection in self._channels

    def is_broken(self, connection: Connection) -> bool:
        """Nothing can be sent on it any more, though its end has not been told yet."""
        channel = self._channels.get(connection)
        return channel is not None and channel.broken

    def is_accepted(self, connection: Connection) -> bool:
        channel = self._channels.get(connection)
        return channel is not None and channel.accepted

    def overdue(self, now: Micros) -> list[Connection]:
        """Return the connections that have not done in time what they began."""
        config = self._config
        return [
            channel.number
            for channel in self.channels()
            if channel.is_overdue(
                now,
                partial_us_max=config.partial_frame_us_max,
                idle_us_max=config.connection_idle_us_max,
                connect_us_max=config.request_timeout_us,
            )
        ]

    def oldest_silent(self, now: Micros, silent_us_min: Micros) -> Connection | None:
        """The accepted connection that has been silent longest, if for long enough: it makes room for another. No
        voter's."""
        silent = [each for each in self.channels() if each.yields and now - each.contact_us >= silent_us_min]
        return min(silent, key=lambda channel: channel.contact_us).number if silent else None

    def accept(self, sock: socket.socket) -> Connection:
        """Take over an accepted socket. One that the system has no room to watch is closed."""
        channel = self._new_channel(sock, accepted=True)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.strangers.register(channel.fd, READ)
        except OSError:
            del self._channels[channel.number]
            sock.close()
        else:
            self.by_fd[channel.fd] = channel
        return channel.number

    def receive_bytes(self, channel: Channel) -> int:
        """How much may be read of it at once. Strangers' frames may be small, and many."""
        most = CROWDED_RECEIVE_BYTES if self._is_crowded else RECEIVE_BYTES
        slice_bytes = CROWDED_SLICE_BYTES if self._is_crowded else SLICE_BYTES
        return min(most, max(slice_bytes, channel.missing_bytes)) if channel.yields else most

    def received(self, channel: Channel, frames: Sequence[bytes], partial_bytes_before: int) -> None:
        """Lock held. What came was split: these are to be dealt with, and so much of a frame was there before."""
        size_bytes = sum(map(len, frames)) + len(frames) * FRAME_OVERHEAD_BYTES
        channel.waiting += len(frames)
        channel.waiting_bytes += size_bytes
        self._waiting_bytes += size_bytes
        self._partial_bytes += channel.partial_bytes - partial_bytes_before
        self._regard_crowd()
        if self._is_paused(channel) is not channel.is_paused:
            self._set_interest(channel)

    def dealt_with(self, connection: Connection, frame_bytes: int) -> None:
        """Lock held. So is one of them, of this size."""
        size_bytes = frame_bytes + FRAME_OVERHEAD_BYTES
        channel = self._channels.get(connection)
        if channel is None:
            return
        channel.waiting -= 1
        channel.waiting_bytes -= size_bytes
        self._waiting_bytes -= size_bytes
        self._regard_crowd()
        if channel.is_paused and not self._is_paused(channel):
            self._set_interest(channel)

    def end(self, channel: Channel) -> None:
        """Lock held. Nothing more comes on it; it is to be closed when what came has been dealt with."""
        if not channel.has_ended:
            channel.has_ended = True
            self._set_of(channel).unregister(channel.fd)

    def take_over(self, connection: Connection, dialed: Dialed) -> None:
        """Lock held. A connection to a name was made, or came to nothing."""
        channel = self._channels.get(connection)
        if channel is None:  # closed meanwhile
            if dialed.sock is not None:
                dialed.sock.close()
            return
        if dialed.sock is None:
            self._came_to_nothing(channel.number, dialed.reason)
            return
        self._await_connected(channel, dialed.sock)

    def finish_connect(self, channel: Channel) -> bool:
        """Lock held. The socket is writable: True if that means connected."""
        sock = channel.sock
        assert sock is not None
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code or not is_connected(sock):
            self.errors.failed(channel.number, os.strerror(code or errno.ECONNREFUSED))
            return False
        self.errors.connected(channel.number)
        channel.connected = True
        channel.contact_us = now_us()
        self._set_interest(channel)
        return True

    def flush(self, channel: Channel) -> None:
        """Lock held. The socket takes more: give it what waits."""
        if channel.broken or channel.sock is None or not channel.connected:
            return
        outbox = channel.outbox
        try:
            while outbox:
                sent = channel.sock.send(outbox[0], socket.MSG_NOSIGNAL)
                channel.outbox_bytes -= sent
                self._owed_bytes -= sent
                channel.unsent_since_us = now_us()
                if sent < len(outbox[0]):
                    outbox[0] = outbox[0][sent:]
                    break
                outbox.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._break(channel)
            return
        if not outbox:
            channel.unsent_since_us = NEVER
        self._set_interest(channel)
        self._regard_crowd()
        if channel.drain_wanted and not self._owes_enough(channel):
            channel.drain_wanted = False
            self.drained.append(channel.number)
            self.wake()

    def break_off(self, connection: Connection) -> None:
        """Lock held. Give a connection up and have its end reported."""
        channel = self._channels.get(connection)
        if channel is not None:
            self._break(channel)

    def _close_connections(self) -> None:
        for channel in self.channels():
            self.flush(channel)
            self.close(channel.number)
        self.strangers.close()

    def before_fork(self) -> None:
        """Nothing: only Python's threads touch it, and they stand still in a fork."""

    after_fork = before_fork

    def _abandon_connections(self) -> None:
        for channel in self.channels():
            channel.broken = True
            if channel.sock is not None:
                channel.sock.close()
        self.strangers.close()

    # --- inner --------------------------------------------------------------------------------------------------------

    def _new_channel(self, sock: socket.socket | None, *, accepted: bool) -> Channel:
        splitter = self._kernels.FrameSplitter(self._config.frame_bytes_max)
        channel = Channel(self._next_number, sock, splitter, accepted, now_us())
        self._next_number += 1
        self._channels[channel.number] = channel
        return channel

    def _put(self, channel: Channel, data: bytes) -> None:
        is_too_much = channel.outbox and channel.outbox_bytes + len(data) > OUTBOX_BYTES_MAX
        if is_too_much or (self._is_crowded and channel.yields):
            self._break(channel)
            return
        if not channel.outbox:
            channel.unsent_since_us = now_us() if channel.connected else NEVER
        channel.outbox.append(memoryview(data))
        channel.outbox_bytes += len(data)
        self._owed_bytes += len(data)
        self._regard_crowd()
        if channel.connected:
            self._set_interest(channel)

    def _owes_enough(self, channel: Channel) -> bool:
        return channel.outbox_bytes > (PAUSE_BYTES if self._owed_bytes <= CROWD_BYTES else 0)

    def _regard_crowd(self) -> None:
        """Decide again whether it is crowded: the number of kept bytes has changed."""
        kept_bytes = self._owed_bytes + self._partial_bytes + self._waiting_bytes
        is_crowded = kept_bytes > (KEPT_BYTES_MAX * 3 // 4 if self._is_crowded else KEPT_BYTES_MAX)
        if is_crowded is not self._is_crowded:
            self._is_crowded = is_crowded
            for each in self.by_fd.values():
                if each.connected and not each.broken:
                    self._set_interest(each)

    def _set_interest(self, channel: Channel) -> None:
        channel.is_paused = self._is_paused(channel)
        if not channel.has_ended:
            self._set_of(channel).modify(channel.fd, self._interest(channel))

    def _is_paused(self, channel: Channel) -> bool:
        """Is it not to be read from?"""
        if self._is_crowded and channel.yields and (channel.outbox or channel.partial_bytes or channel.waiting):
            return True
        waiting_max = WAITING_MAX if self._waiting_bytes < CROWD_BYTES else 1
        return (
            channel.outbox_bytes > PAUSE_BYTES
            or channel.waiting >= waiting_max
            or channel.waiting_bytes >= WAITING_BYTES_MAX
        )

    def _interest(self, channel: Channel) -> int:
        if channel.is_paused:
            return WRITE if channel.outbox else 0
        return READ_WRITE if channel.outbox else READ

    def _set_of(self, channel: Channel) -> select.epoll:
        return self.strangers if channel.yields else self.epoll

    def _break(self, channel: Channel) -> None:
        """Nothing is sent on it any more; epoll reports the hang-up to the replica's thread."""
        channel.broken = True
        self._owed_bytes -= channel.outbox_bytes
        channel.outbox.clear()
        channel.outbox_bytes = 0
        channel.unsent_since_us = NEVER
        self._regard_crowd()
        self._report_lost(channel.number)

    def _begin_connect(self, channel: Channel, address: Address) -> None:
        try:
            sock = begin_connect(address)
        except OSError as error:  # or no descriptors are left; the link tries again later
            self._came_to_nothing(channel.number, reason(error))
            return
        self._await_connected(channel, sock)

    def _await_connected(self, channel: Channel, sock: socket.socket) -> None:
        """Its end is awaited, unless the system has no room to watch it."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.epoll.register(sock.fileno(), WRITE)
        except OSError as error:
            sock.close()
            self._came_to_nothing(channel.number, reason(error))
            return
        channel.sock, channel.fd = sock, sock.fileno()
        self.by_fd[channel.fd] = channel
