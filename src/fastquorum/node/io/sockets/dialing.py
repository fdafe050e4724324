"""From a host and a port to a connected socket: looked up, tried at all its addresses, all of it by one deadline.

Each address is tried a quarter of a second after the one before it, or as soon as that has failed; the first that
connects is taken. Where the name server says nothing for a while, or fails, the addresses that the name had last are
tried. Source: RFC 8305 (Happy Eyeballs), section 5.
"""

import errno
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from fastquorum.addresses import AddressError
from fastquorum.errnos import reason
from fastquorum.node.io.sockets.resolving import Address, Resolution, Resolver, last_known, literal, prefer
from fastquorum.node.io.sockets.waking import waking_epoll
from fastquorum.types import Endpoint, address_text

STAGGER_S: Final = 0.25
"""How long an address is tried alone before the next one is, too (RFC 8305: 250 ms)."""
NAME_SERVER_S: Final = 0.3
"""How long a name server may think before the addresses that the name had last are tried."""
JOIN_S: Final = 1.0
"""How long the end waits for the dialer's thread, which may have no turn for a while on a busy machine."""
_AGAIN: Final = (errno.EINPROGRESS, errno.EINTR)


class Dialed(NamedTuple):
    """How it ended: a connected, non-blocking socket, or why there is none."""

    sock: socket.socket | None
    reason: str = ""

    def close(self) -> None:
        """Nobody wants the socket, if there is one."""
        if self.sock is not None:
            self.sock.close()


class DialError(OSError):
    """Nobody could be reached there in time; `strerror` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EHOSTUNREACH, reason)


class _Dial:
    """One connection on its way. Times are in seconds of time.monotonic."""

    def __init__(self, endpoint: Endpoint, now_s: float, timeout_s: float) -> None:
        self.endpoint = endpoint
        self.ended: Dialed | None = None
        self.trying: dict[socket.socket, Address] = {}
        """Sockets that connect, and where to."""
        self.done_with: list[socket.socket] = []
        """To be closed, once they are watched no more."""
        self._timeout_s = timeout_s
        self._until_s = now_s + timeout_s
        self._name_server_until_s = now_s + NAME_SERVER_S
        self._next_s = now_s
        """When the next address is due."""
        self._is_found = False
        """The look-up is over."""
        self._untried: deque[Address] = deque()
        self._seen: set[Address] = set()
        self._reasons: list[str] = []

    @property
    def due_s(self) -> float:
        """When `on_time` has something to do."""
        if self._untried:
            return min(self._next_s, self._until_s)
        if not self._is_found and not self._seen:
            return min(max(self._name_server_until_s, self._next_s), self._until_s)
        return self._until_s

    def on_found(self, found: Resolution, now_s: float) -> None:
        """The name server has answered, or failed."""
        self._is_found = True
        if found.addresses:
            self._add(found.addresses)
        else:
            self._reasons.insert(0, found.reason)
            self._add(last_known(self.endpoint.host, self.endpoint.port))
        self.on_time(now_s)

    def on_time(self, now_s: float) -> None:
        """Try the next address if it is time for it; end it if it is over."""
        if self.ended is not None:
            return
        if not self._is_found and not self._seen and now_s >= self._name_server_until_s:
            self._add(last_known(self.endpoint.host, self.endpoint.port))
            self._next_s = max(self._next_s, now_s)
            self._name_server_until_s = self._until_s
        while self._untried and self.ended is None and (now_s >= self._next_s or not self.trying):
            self._next_s = now_s + STAGGER_S
            self._try(self._untried.popleft())
        if self.ended is None and (now_s >= self._until_s or (self._is_found and not self.trying)):
            self.end(Dialed(None, self._reason()))

    def on_ready(self, sock: socket.socket, now_s: float) -> None:
        """A socket has connected, or failed to."""
        address = self.trying.pop(sock, None)
        if address is None:
            return
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0 and is_connected(sock):
            prefer(self.endpoint.host, address)
            self.end(Dialed(sock))
            return
        self._came_to_nothing(sock, address, os.strerror(code or errno.ECONNREFUSED), now_s)

    def on_unwatched(self, sock: socket.socket, error: OSError, now_s: float) -> None:
        """The system has no room to watch a socket."""
        address = self.trying.pop(sock, None)
        if address is not None:
            self._came_to_nothing(sock, address, reason(error), now_s)

    def _came_to_nothing(self, sock: socket.socket, address: Address, why: str, now_s: float) -> None:
        """The next address is tried, if there is one."""
        self.done_with.append(sock)
        self._failed(address, why)
        self.on_time(now_s)

    def end(self, ended: Dialed) -> None:
        self.ended = ended
        self.done_with += self.trying
        self.trying.clear()
        self._untried.clear()

    def close(self) -> None:
        """Nobody watches its sockets any more."""
        for sock in (*self.trying, *self.done_with):
            sock.close()

    def _add(self, addresses: tuple[Address, ...]) -> None:
        self._untried.extend(each for each in addresses if each not in self._seen)
        self._seen.update(addresses)

    def _try(self, address: Address) -> None:
        try:
            sock = socket.socket(address.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:  # no descriptors left, or a family that this machine does not have
            self._failed(address, reason(error))
            return
        try:
            code = sock.connect_ex(address.address)
        except OSError as error:  # an address that does not fit its family
            code = error.errno or errno.EINVAL
        if code == 0 or code in _AGAIN:
            self.trying[sock] = address
        else:
            sock.close()
            self._failed(address, os.strerror(code))

    def _failed(self, address: Address, reason: str) -> None:
        self._reasons.append(self._failure_text(address, reason))

    def _failure_text(self, address: Address, reason: str) -> str:
        """The reason, with the address that it is about unless the endpoint is that address."""
        where = address_text(*address.address[:2])
        return reason if where == self.endpoint.address else f"{where}: {reason}"

    def _reason(self) -> str:
        """All that went wrong, each thing once, the name server's part first."""
        within = f"within {self._timeout_s:.1f} s"
        reasons = list(dict.fromkeys(self._reasons))
        reasons += [self._failure_text(at, f"no answer {within}") for at in self.trying.values()]
        if not self._is_found:
            reasons.insert(0, f"no name server has said {within} what {self.endpoint.host} is")
        return "; ".join(reasons)


def is_connected(sock: socket.socket) -> bool:
    """The same name at both ends: TCP connected the socket to itself, as it may on a free ephemeral port."""
    try:
        return bool(sock.getsockname() != sock.getpeername())
    except OSError:  # it has been reset meanwhile
        return False


class _Loop:
    """Drives connections on their way, in one thread. `dial`, `cancel` and `stop` may be called from any thread."""

    def __init__(self, report: Callable[[int, Dialed], None]) -> None:
        self._report = report
        self._guard = threading.Lock()
        """Guards the three below."""
        self._new: dict[int, tuple[Endpoint, float, float]] = {}
        self._found: deque[tuple[int, Resolution]] = deque()
        self._cancelled: set[int] = set()
        self._resolver = Resolver(self._on_found)
        self._dials: dict[int, _Dial] = {}
        self._by_descriptor: dict[int, tuple[int, socket.socket]] = {}
        """Sockets that are waited for, and for whom."""
        self._epoll, self._wake_fd = waking_epoll()
        self._is_over = False

    def dial(self, number: int, endpoint: Endpoint, timeout_s: float) -> None:
        with self._guard:
            self._new[number] = endpoint, time.monotonic(), timeout_s
            self._wake()

    def cancel(self, number: int) -> None:
        """No report follows, unless it is under way."""
        with self._guard:
            if self._new.pop(number, None) is None:
                self._cancelled.add(number)
                self._wake()

    def stop(self) -> None:
        with self._guard:
            self._is_over = True
            self._wake()

    def close(self) -> None:
        """In the loop's thread, or, after a fork, in the child, where there is none."""
        for number, each in self._dials.items():
            self._resolver.withdraw(number, each.endpoint.host)
            each.close()
        self._dials.clear()
        with self._guard:
            self._is_over = True
            os.close(self._wake_fd)
            self._wake_fd = -1
        self._epoll.close()

    def abandon_in_child(self) -> None:
        """After fork, in the child: let go of the descriptors. No lock is taken, a thread that is gone may hold it."""
        for each in self._dials.values():
            each.close()
        if self._wake_fd >= 0:
            os.close(self._wake_fd)
            self._wake_fd = -1
        self._epoll.close()

    def run(self, is_wanted: Callable[[], bool]) -> None:
        """Until it is stopped, or nobody wants it any more."""
        while not self._is_over and is_wanted():
            due_s = min((each.due_s for each in self._dials.values()), default=-1.0)
            wait_s = -1 if due_s < 0 else max(due_s - time.monotonic(), 0.0)
            ready = [descriptor for descriptor, _ in self._epoll.poll(wait_s)]
            if self._wake_fd in ready:
                os.eventfd_read(self._wake_fd)
            # Found beforehand: a descriptor that is closed in this turn may be another socket's by its end.
            for number, sock in [self._by_descriptor[each] for each in ready if each != self._wake_fd]:
                self._step(number, partial(_Dial.on_ready, sock=sock))
            self._take_in()
            now_s = time.monotonic()
            for number in [number for number, each in self._dials.items() if each.due_s <= now_s]:
                self._step(number, _Dial.on_time)

    def _take_in(self) -> None:
        """What other threads have left here."""
        with self._guard:
            new, self._new = self._new, {}
            cancelled, self._cancelled = self._cancelled, set()
            found, self._found = self._found, deque()
        for number, (endpoint, began_s, timeout_s) in new.items():
            self._dials[number] = _Dial(endpoint, began_s, timeout_s)
            self._resolver.submit(number, endpoint.host, endpoint.port)
        for number, each in found:
            if number in self._dials:
                self._step(number, partial(_Dial.on_found, found=each))
        for number in cancelled & self._dials.keys():
            self._dials[number].end(Dialed(None))
            self._settle(number)

    def _step(self, number: int, do: Callable[..., None]) -> None:
        dial = self._dials.get(number)
        if dial is None:  # it ended in this turn
            return
        do(dial, now_s=time.monotonic())
        self._settle(number)
        if dial.ended is not None:
            self._report(number, dial.ended)

    def _settle(self, number: int) -> None:
        """Watch the sockets that connect, and no other; forget what has ended."""
        dial = self._dials[number]
        while unwatched := [sock for sock in dial.trying if sock.fileno() not in self._by_descriptor]:
            for sock in unwatched:
                self._watch(number, sock)
        for sock in dial.done_with:
            self._watch_no_more(sock)
            sock.close()
        dial.done_with.clear()
        if dial.ended is not None:
            if dial.ended.sock is not None:
                self._watch_no_more(dial.ended.sock)
            del self._dials[number]
            self._resolver.withdraw(number, dial.endpoint.host)

    def _watch(self, number: int, sock: socket.socket) -> None:
        try:
            self._epoll.register(sock, select.EPOLLOUT)
        except OSError as error:
            self._dials[number].on_unwatched(sock, error, time.monotonic())
        else:
            self._by_descriptor[sock.fileno()] = number, sock

    def _watch_no_more(self, sock: socket.socket) -> None:
        """Before it is closed: while a forked child has a copy, closing alone takes no socket out of an epoll set."""
        if self._by_descriptor.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock)

    def _on_found(self, number: int, found: Resolution) -> None:
        """In a thread of the resolver's."""
        with self._guard:
            self._found.append((number, found))
            self._wake()

    def _wake(self) -> None:
        """Guard held."""
        if self._wake_fd >= 0:
            os.eventfd_write(self._wake_fd, 1)


class Dialer:
    """Connects to names for one replica or member, in a thread of its own that the first name starts."""

    def __init__(self, report: Callable[[int, Dialed], None]) -> None:
        """`report` is called in the dialer's thread; what it is given belongs to whoever it tells. It takes no lock
        that is held while this is closed."""
        self._report = report
        self._ending = threading.Lock()
        """Guards the next one."""
        self._is_over = False
        self._loop: _Loop | None = None
        self._thread: threading.Thread | None = None

    def dial(self, number: int, endpoint: Endpoint, timeout_s: float) -> None:
        """Begin to connect; a report follows, in about `timeout_s` seconds at most."""
        if self._loop is None:
            try:
                self._loop = self._begin()
            except (OSError, RuntimeError) as error:  # no descriptors, or no threads left: it is tried again next time
                self._report(number, Dialed(None, f"{endpoint.host} cannot be looked up: {error}"))
                return
        self._loop.dial(number, endpoint, timeout_s)

    def cancel(self, number: int) -> None:
        """Give it up."""
        if self._loop is not None:
            self._loop.cancel(number)

    def close(self) -> None:
        """Give all up; nothing is reported any more, and the thread ends."""
        with self._ending:
            self._is_over = True
        if self._loop is not None and self._thread is not None:
            self._loop.stop()
            self._thread.join(JOIN_S)

    def abandon_in_child(self) -> None:
        if self._loop is not None:
            self._loop.abandon_in_child()

    def _tell(self, number: int, dialed: Dialed) -> None:
        with self._ending:
            if not self._is_over:
                self._report(number, dialed)
                return
        dialed.close()

    def _begin(self) -> _Loop:
        loop = _Loop(self._tell)
        thread = threading.Thread(target=self._run, args=(loop,), name="fastquorum-dialer", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            loop.close()
            raise
        self._thread = thread
        return loop

    @staticmethod
    def _run(loop: _Loop) -> None:
        try:
            loop.run(lambda: True)
        finally:
            loop.close()


def dial(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to `endpoint`, blocking. Raises OSError, a DialError as a rule, within
    `timeout_s` seconds."""
    try:
        address = literal(endpoint.host, endpoint.port)
    except AddressError as error:
        raise DialError(str(error)) from error
    if address is not None:
        return _connect(address, timeout_s)
    reports: list[Dialed] = []
    loop = _Loop(lambda _, dialed: reports.append(dialed))
    try:
        loop.dial(0, endpoint, timeout_s)
        loop.run(lambda: not reports)
    finally:
        loop.close()
    sock, reason = reports[0]
    if sock is None:
        raise DialError(reason)
    sock.setblocking(True)
    return sock


def _connect(address: Address, timeout_s: float) -> socket.socket:
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(timeout_s, 0.001))
        sock.connect(address.address)
        if not is_connected(sock):
            raise DialError(os.strerror(errno.ECONNREFUSED))
        sock.settimeout(None)
    except TimeoutError as error:
        sock.close()
        raise DialError(f"no answer within {timeout_s:.1f} s") from error
    except OSError as error:
        sock.close()
        raise DialError(reason(error)) from error
    return sock
