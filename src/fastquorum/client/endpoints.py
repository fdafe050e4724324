"""Where nodes are reached, as people write it."""

from fastquorum.addresses import AddressError, parse_address
from fastquorum.errors import UsageError
from fastquorum.types import LISTENER_NAME, Endpoint


def parse_endpoints(option: str, text: str) -> tuple[Endpoint, ...]:
    """`HOST:PORT,...`; an IPv6 host stands in brackets. UsageError naming the option and the part."""
    return tuple(parse_endpoint(option, part) for part in text.split(","))


def parse_endpoint(option: str, text: str, *, port_min: int = 1) -> Endpoint:
    """`HOST:PORT`; an IPv6 host stands in brackets. UsageError naming the option."""
    try:
        host, port = parse_address(text, port_min=port_min)
    except AddressError as error:
        raise UsageError(f"{option}: {text.strip()!r} is not HOST:PORT: {error}") from error
    return Endpoint(LISTENER_NAME, host, port)
