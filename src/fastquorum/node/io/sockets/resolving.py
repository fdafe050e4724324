"""Host names to addresses, away from whoever needs them: a slow name server must not cost an election.

Each look-up has a thread of its own while it lasts, since getaddrinfo cannot be interrupted; a name is looked up once
at a time, however many wait for it, and there are at most LOOKUPS_MAX threads. So a name server that is silent for one
name holds up nobody else, and look-ups that are given up do not pile up. Every connection looks its name up anew,
because a voter may move; the addresses that the name had last are kept for when the name server is silent or fails.
Source: getaddrinfo(3), resolv.conf(5).
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fastquorum.addresses import AddressError, check_host, numeric

LOOKUPS_MAX: Final = 32
"""Most threads that look names up in this process."""
TROUBLED_MAX: Final = 16
"""Most of them that names get whose last look-up failed: however many those are, other names find a thread."""
ADDRESSES_MAX: Final = 16
"""Most addresses of a name that are tried."""
KEPT_MAX: Final = 1024
"""Most names whose addresses are kept."""

Token = object
"""A waiter's own mark of the name that it waits for."""


class Address(NamedTuple):
    """What socket(2) and connect(2) take."""

    family: int
    address: Any


class Resolution(NamedTuple):
    """The end of a look-up: addresses, or why there are none."""

    addresses: tuple[Address, ...]
    reason: str = ""


Report = Callable[[Any, Resolution], None]


def literal(host: str, port: int) -> Address | None:
    """Return the address that `host` is already; None for a name, which has to be looked up. Raises AddressError for a
    host that is neither."""
    check_host(host)
    if numeric(host) is None:
        return None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError as error:  # a scope that this machine does not have
        raise AddressError(f"host {host!r} is not an address here: {error.strerror}") from error
    return Address(found[0][0], found[0][4])


class Resolver:
    """Looks names up for one user of them. The threads, and what the names had last, are the process's."""

    def __init__(self, report: Report) -> None:
        """`report` is called with the token and what was found, once for each name submitted, in another thread."""
        self._report = report

    def submit(self, token: Any, host: str, port: int) -> None:
        """Look a name up."""
        _lookups.add(host, _Waiter(self, token, port))

    def withdraw(self, token: Any, host: str) -> None:
        """Nobody waits for it any more."""
        _lookups.withdraw(host, self, token)

    def found(self, waiter: "_Waiter", found: Resolution) -> None:
        """Called by the look-up."""
        addresses = tuple(_with_port(each, waiter.port) for each in found.addresses)
        self._report(waiter.token, found._replace(addresses=addresses))


def last_known(host: str, port: int) -> tuple[Address, ...]:
    """Return the addresses that a name had when it was last looked up with success; empty if it never was."""
    return tuple(_with_port(each, port) for each in _lookups.kept.get(host, ()))


def prefer(host: str, address: Address) -> None:
    """Try this address of a name first next time: somebody listens there."""
    bare = _with_port(address, 0)
    kept = _lookups.kept.get(host, ())
    if bare in kept[1:]:
        _lookups.kept[host] = (bare, *(each for each in kept if each != bare))


def look_up(hosts: Iterable[str], timeout_s: float) -> dict[str, Resolution]:
    """Look names up, all at once, and wait for them. One that takes longer has no addresses."""
    found: dict[str, Resolution] = {}
    changed = threading.Condition()

    def report(host: str, each: Resolution) -> None:
        with changed:
            found[host] = each
            changed.notify()

    resolver = Resolver(report)
    wanted = dict.fromkeys(hosts)
    for host in wanted:
        resolver.submit(host, host, 0)
    with changed:
        changed.wait_for(lambda: len(found) == len(wanted), timeout_s)
        late = Resolution((), f"no name server has answered within {timeout_s:g} s")
        result = {host: found.get(host, late) for host in wanted}
    for host in wanted:
        resolver.withdraw(host, host)
    return result


def try_elsewhere(host: str) -> bool:
    """Try another address of a name first next time: somebody listens at this one, and is of no use. False if there is
    no other."""
    kept = _lookups.kept.get(host, ())
    if len(kept) > 1:
        _lookups.kept[host] = (*kept[1:], kept[0])
    return len(kept) > 1


class _Waiter(NamedTuple):
    resolver: Resolver
    token: Token
    port: int


@dataclass(slots=True)
class _Lookup:
    host: str
    waiters: list[_Waiter] = field(default_factory=list)
    has_thread: bool = False


class _Lookups:
    """All look-ups of the process."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Address, ...]] = {}
        """The addresses that each name had last, the one that was of use in front; port 0."""
        self.begin()

    def begin(self) -> None:
        """Without any thread: at first, and in a forked child, where those of the parent are not."""
        self._guard = threading.Lock()
        self._by_host: dict[str, _Lookup] = {}
        self._without_thread: deque[str] = deque()
        self._troubled: set[str] = set()
        """Names whose last look-up failed, and are likely to hold a thread for long."""
        self._threads = 0
        self._troubled_threads = 0

    def add(self, host: str, waiter: _Waiter) -> None:
        with self._guard:
            lookup = self._by_host.get(host)
            if lookup is None:
                lookup = self._by_host[host] = _Lookup(host)
                self._without_thread.append(host)
            lookup.waiters.append(waiter)
            started = self._next()
        if started is not None:
            self._start(started)

    def withdraw(self, host: str, resolver: Resolver, token: Token) -> None:
        with self._guard:
            lookup = self._by_host.get(host)
            if lookup is None:
                return
            lookup.waiters = [each for each in lookup.waiters if (each.resolver, each.token) != (resolver, token)]
            if not lookup.waiters and not lookup.has_thread:
                del self._by_host[host]
                self._without_thread.remove(host)

    def _next(self) -> _Lookup | None:
        """Guard held. The next name that may have a thread, counted as having one."""
        if self._threads >= LOOKUPS_MAX:
            return None
        for host in self._without_thread:
            is_troubled = host in self._troubled
            if is_troubled and self._troubled_threads >= TROUBLED_MAX:
                continue
            self._without_thread.remove(host)
            self._threads += 1
            self._troubled_threads += is_troubled
            lookup = self._by_host[host]
            lookup.has_thread = True
            return lookup
        return None

    def _start(self, lookup: _Lookup) -> None:
        following: _Lookup | None = lookup
        while following is not None:
            # A daemon: a stop must not wait for a name server.
            thread = threading.Thread(target=self._run, args=(following,), name="fastquorum-resolver", daemon=True)
            try:
                thread.start()
                return
            except RuntimeError as error:  # the system gives no more threads
                following = self._finish(following, Resolution((), f"{following.host} cannot be resolved: {error}"))

    def _run(self, lookup: _Lookup) -> None:
        following: _Lookup | None = lookup
        while following is not None:
            following = self._finish(following, _look_up(following.host))

    def _finish(self, lookup: _Lookup, found: Resolution) -> _Lookup | None:
        """Tell whoever waits; the next name for this thread, if there is one."""
        with self._guard:
            was_troubled = lookup.host in self._troubled
            self._threads -= 1
            self._troubled_threads -= was_troubled
            if found.addresses:
                self._troubled.discard(lookup.host)
                self._keep(lookup.host, found.addresses)
                found = Resolution(self.kept[lookup.host])
            elif len(self._troubled) < KEPT_MAX:
                self._troubled.add(lookup.host)
            del self._by_host[lookup.host]
            waiters = lookup.waiters
            following = self._next()
        for waiter in waiters:
            waiter.resolver.found(waiter, found)
        return following

    def _keep(self, host: str, addresses: tuple[Address, ...]) -> None:
        """Guard held."""
        before = self.kept.pop(host, ())
        if before and before[0] in addresses:
            addresses = (before[0], *(each for each in addresses if each != before[0]))
        self.kept[host] = addresses
        if len(self.kept) > KEPT_MAX:
            self.kept.pop(next(iter(self.kept)))


def _look_up(host: str) -> Resolution:
    try:
        listed = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Resolution((), f"{host} cannot be resolved: {reason}")
    different = dict.fromkeys(_with_port(Address(family, address), 0) for family, _, _, _, address in listed)
    return Resolution(_in_turn(tuple(different)))


def _in_turn(addresses: tuple[Address, ...]) -> tuple[Address, ...]:
    """One of each family after the other, so that a family that goes nowhere costs one attempt (RFC 8305)."""
    first = [each for each in addresses if each.family == addresses[0].family]
    other = [each for each in addresses if each.family != addresses[0].family]
    mixed: list[Address] = []
    for at in range(max(len(first), len(other))):
        mixed += first[at : at + 1] + other[at : at + 1]
    return tuple(mixed[:ADDRESSES_MAX])


def _with_port(address: Address, port: int) -> Address:
    host, _, *rest = address.address
    return Address(address.family, (host, port, *rest))


_lookups = _Lookups()
os.register_at_fork(after_in_child=_lookups.begin)
