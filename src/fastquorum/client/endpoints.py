"""Where nodes are reached, as people write it."""

from fastquorum.errors import UsageError
from fastquorum.types import LISTENER_NAME, Endpoint, is_whole


def parse_endpoints(option: str, text: str) -> tuple[Endpoint, ...]:
    """`HOST:PORT,...`; an IPv6 host stands in brackets. UsageError naming the option and the part."""
    return tuple(parse_endpoint(option, part) for part in text.split(","))


def parse_endpoint(option: str, text: str, *, port_min: int = 1) -> Endpoint:
    """`HOST:PORT`; an IPv6 host stands in brackets. UsageError naming the option."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and is_whole(port) and port_min <= int(port) < 65536):
        raise UsageError(f"{option}: {text.strip()!r} is not HOST:PORT")
    return Endpoint(LISTENER_NAME, host, int(port))


def endpoint_text(endpoint: Endpoint) -> str:
    """As `parse_endpoint` reads it."""
    return f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
