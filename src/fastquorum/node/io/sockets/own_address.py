"""Where a node listens, and where it says that it is reached, if only a part of that was said.

Voters are told what the voter set says of a node. Where it listens is its own affair: behind a proxy, in a container or
on a machine whose hosts file takes its own name for a loopback address (Debian's installer writes `127.0.1.1 NAME`) the
two differ.
"""

import socket
from contextlib import suppress
from typing import Final

from fastquorum.addresses import AddressError, check_reachable, is_everywhere, is_loopback, numeric
from fastquorum.node.io.sockets.listening import NAME_SERVER_S
from fastquorum.node.io.sockets.resolving import look_up
from fastquorum.types import LISTENER_NAME, Endpoint, NodeId, VoterSet

LOOPBACK: Final = Endpoint(LISTENER_NAME, "127.0.0.1", 0)
OTHERS_S: Final = 2.0
"""How long name servers may think about the other voters' names, before those count as other machines."""
WARNING_S: Final = 0.5
"""The same limit where only a warning depends on it: a start does not wait for that."""
OWN_NAME_S: Final = 1.0
_SOMEWHERE_ELSE: Final = ("192.0.2.1", 9)
"""An address that nobody has (RFC 5737). Nothing is sent there."""


def where_to_listen(wanted: Endpoint | None, node_id: NodeId, voters: VoterSet) -> tuple[Endpoint, str]:
    """Return the endpoint to bind, and what people have to be told of it; mostly nothing.

    `wanted` is what was said. If nothing was, it is where the voters know the node; that is every address instead if
    the name is unknown here, or a loopback address here while other voters are on other machines.
    """
    own = _endpoint_of(node_id, voters)
    if wanted is not None:
        return wanted, _deafness(wanted, node_id, voters)
    if own is None:
        return LOOPBACK, ""
    everywhere = own._replace(host="")
    if is_everywhere(own.host):
        return everywhere, ""
    if numeric(own.host) is not None:
        return own, _deafness(own, node_id, voters)
    found = look_up([own.host], NAME_SERVER_S)[own.host]
    choice = f"it listens on every address of this machine; --listen HOST:{own.port} chooses one"
    if not found.addresses:
        return everywhere, f"{own.host}, where the voters expect this node, is unknown here ({found.reason}): {choice}"
    addresses = [each.address[0] for each in found.addresses]
    if not all(map(is_loopback, addresses)) or not _others_elsewhere(node_id, voters, if_unknown=True):
        return own, ""
    return everywhere, (
        f"{own.host} is {addresses[0]} on this machine (see /etc/hosts), a loopback address that no other host "
        f"reaches, and other voters are on other hosts: {choice}"
    )


def where_it_is_reached(
    advertised: Endpoint | None, bound: Endpoint, node_id: NodeId, voters: VoterSet, *, is_drawn: bool = False
) -> Endpoint:
    """Return what others are told: what was said, else what the voter set says, else where it listens.

    The only voter's address may have been drawn for it, port or host (`is_drawn`, or a loopback one): nobody else
    relies on it, and there it is where it listens.
    """
    if advertised is not None:
        return advertised
    own = _endpoint_of(node_id, voters)
    is_drawn = is_drawn or (own is not None and len(voters) == 1 and is_loopback(own.host))
    if own is not None and not is_drawn and _is_usable(own.host):
        return own._replace(name=bound.name)
    return bound if not is_everywhere(bound.host) else bound._replace(host=_own_host())


def _endpoint_of(node_id: NodeId, voters: VoterSet) -> Endpoint | None:
    voter = voters.get(node_id)
    return voter.endpoints[0] if voter is not None and voter.endpoints else None


def _deafness(listening: Endpoint, node_id: NodeId, voters: VoterSet) -> str:
    """What to say of a node that listens on loopback only, while other voters are on other machines."""
    if not is_loopback(listening.host) or not _others_elsewhere(node_id, voters, if_unknown=False):
        return ""
    return (
        f"it listens on the loopback address {listening.host} only, and other voters are on other hosts: they reach it "
        f"through a proxy on this host, or not at all (--listen :{listening.port} takes every address)"
    )


def _others_elsewhere(node_id: NodeId, voters: VoterSet, *, if_unknown: bool) -> bool:
    """Is another voter on another machine? `if_unknown` is the answer for one whose name nobody knows."""
    hosts = {each.host for voter in voters if voter.key.id != node_id for each in voter.endpoints[:1]}
    if any(numeric(host) is not None and not is_loopback(host) for host in hosts):
        return True
    names = [host for host in hosts if numeric(host) is None and not is_loopback(host) and _is_usable(host)]
    return any(
        not all(is_loopback(each.address[0]) for each in found.addresses) if found.addresses else if_unknown
        for found in look_up(names, OTHERS_S if if_unknown else WARNING_S).values()
    )


def _is_usable(host: str) -> bool:
    try:
        check_reachable(host)
    except AddressError:
        return False
    return True


def _own_host() -> str:
    """A name or address of this machine that others may know: nobody has said one."""
    name = socket.gethostname()
    if _is_usable(name) and look_up([name], OWN_NAME_S)[name].addresses:
        return name
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(_SOMEWHERE_ELSE if family == socket.AF_INET else ("2001:db8::1", 9))
            return str(sock.getsockname()[0])
    return LOOPBACK.host
