"""Host names and addresses as people write them, and what makes one usable.

Pure: nothing is looked up here (`io.sockets.resolving` does that). Every option, setting, properties file and command
line that names a host is read by this module, so that a bad one is refused where it comes in, by the part that is
wrong.
Sources: RFC 1123 section 2.1 (labels), RFC 1035 section 2.3.4 (lengths), RFC 3986 section 3.2.2 (brackets), RFC 6874
(scope ids).
"""

import ipaddress
from typing import Final

from fastquorum.types import Endpoint, is_whole

LABEL_MAX: Final = 63
"""Most characters of a label, the part of a name between two dots."""
NAME_MAX: Final = 253
"""Most characters of a name, without a dot at its end."""
PORT_MAX: Final = 65535
_SHOWN_MAX: Final = 80
"""Most characters of a bad host that an error repeats."""
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
"""Characters of a host name. RFC 1123 has no `_`, but the names that container tools give do."""

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


class AddressError(ValueError):
    """A host or port that cannot be used; the message says which part is wrong."""


def parse_address(text: str, *, port_min: int = 1, may_be_everywhere: bool = True) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; an IPv6 host stands in brackets.

    With `port_min` 0 the address is one to listen on: its host may be empty, which means every address. Without
    `may_be_everywhere` it is one that others are told. Raises AddressError.
    """
    host, port = _split(text.strip())
    if not is_whole(port) or not port_min <= int(port) <= PORT_MAX:
        shown = repr(_cut(port)) if port else "''"
        raise AddressError(f"port {shown} is not a number from {port_min} to {PORT_MAX}")
    if host or port_min > 0:
        (check_host if may_be_everywhere else check_reachable)(host)
    if is_of_many(host):
        raise AddressError(f"no node can be at {host}: it is the address of many machines")
    return host, int(port)


def is_address(text: str) -> bool:
    """Is it `HOST:PORT` of a node, by its form?"""
    try:
        parse_address(text)
    except AddressError:
        return False
    return True


def check_host(host: str) -> None:
    """Raise AddressError unless `host` is an IP address or a name that can be looked up."""
    if not host or host == ".":
        raise AddressError("the host is empty")
    if ":" in host:
        if numeric(host) is None:
            raise AddressError(f"host {_cut(host)!r} is not an IPv6 address")
        return
    if not host.isascii():
        raise AddressError(f"host {_cut(host)!r} is not ASCII{_in_ascii(host)}")
    for character in host:
        if character not in _NAME_CHARACTERS:
            raise AddressError(f"host {_cut(host)!r} has a {character!r}, which host names cannot have")
    name = host.removesuffix(".")
    labels = name.split(".")
    if "" in labels:
        raise AddressError(f"host {_cut(host)!r} has an empty label (two dots in a row, or one in front)")
    if any(each.startswith("-") or each.endswith("-") for each in labels):
        raise AddressError(f"host {_cut(host)!r} has a label that begins or ends with '-'")
    longest = max(map(len, labels))
    if longest > LABEL_MAX:
        raise AddressError(f"host {_cut(host)!r} has a label of {longest} characters, {LABEL_MAX} is the most")
    if len(name) > NAME_MAX:
        raise AddressError(f"host {_cut(host)!r} has {len(name)} characters, {NAME_MAX} is the most")
    if _is_number(labels[-1]) and numeric(host) is None:
        # The system would take such a name for an address all the same: 1 for 0.0.0.1, 010.0.0.1 for 8.0.0.1.
        raise AddressError(f"host {_cut(host)!r} is not an IPv4 address: it does not have four numbers from 0 to 255")


def check_reachable(host: str) -> None:
    """Raise AddressError unless others can be told that `host` is where a node is: of a voter, or advertised."""
    check_host(host)
    if is_everywhere(host):
        raise AddressError(f"no other machine can reach {host}: it means every address of this machine")
    if is_of_many(host):
        raise AddressError(f"no node can be reached at {host}: it is the address of many machines")
    if "%" in host:
        raise AddressError(f"host {_cut(host)!r} has a scope id, which means something on one machine only")


def numeric(host: str) -> IPAddress | None:
    """Return the IP address that `host` is, without a look-up; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_everywhere(host: str) -> bool:
    """Does it mean every address of the machine? As an empty host, 0.0.0.0 and :: do."""
    address = numeric(host)
    return not host if address is None else _plain(address).is_unspecified


def is_of_many(host: str) -> bool:
    """Does it stand for many machines? Multicast and broadcast addresses do."""
    address = numeric(host)
    return address is not None and (_plain(address).is_multicast or _plain(address) == _BROADCAST)


def is_loopback(host: str) -> bool:
    """Is it, without a look-up, an address or a name that only its own machine reaches?"""
    address = numeric(host)
    if address is None:
        return host.removesuffix(".").lower().rpartition(".")[2] == "localhost"  # RFC 6761: localhost and all below it
    return _plain(address).is_loopback


def place(endpoint: Endpoint) -> tuple[str, int]:
    """Return host and port in one spelling, to tell whether two endpoints are the same."""
    address = numeric(endpoint.host)
    host = endpoint.host.removesuffix(".").lower() if address is None else str(_plain(address))
    return host, endpoint.port


def _split(text: str) -> tuple[str, str]:
    """Host, without brackets, and port as text."""
    scheme, is_url, _ = text.partition("://")
    if is_url:
        raise AddressError(f"{_cut(scheme)!r} in front of it is not allowed: write HOST:PORT only")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise AddressError("the bracket of an IPv6 address is not closed")
        if ":" not in host:
            raise AddressError(f"{_cut(host)!r} in brackets is not an IPv6 address")
    else:
        host, colon, port = text.rpartition(":")
        host, rest = (host, colon + port) if colon else (text, "")
        if ":" in host or (text.startswith(":") and text.count(":") > 1):
            raise AddressError("write an IPv6 address in brackets, as in [::1]:9093")
    if not rest:
        missing = "the host and a colon are missing before the port" if is_whole(host) else "the port is missing"
        raise AddressError(missing)
    if not rest.startswith(":"):
        raise AddressError(f"there is {_cut(rest)!r} between the host and the port")
    return host, rest[1:]


def _plain(address: IPAddress) -> IPAddress:
    """An IPv4 address that is written as IPv6 is meant as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_number(label: str) -> bool:
    return label.isdecimal() or label[:2].lower() == "0x"


def _in_ascii(host: str) -> str:
    try:
        return f": write it as {host.encode('idna').decode('ascii')}"
    except UnicodeError:
        return ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."
