"""How the text of a node's settings is read. Pure: text in, values out; a value of the right type already is taken."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from fastquorum.addresses import AddressError, parse_address
from fastquorum.config import MS
from fastquorum.storage.identity import LogKind, parse_voters
from fastquorum.types import LISTENER_NAME, NODE_ID_MAX, Endpoint, VoterSet, is_whole

Value = object
Parse = Callable[[object], Value]


def plain_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    if not value.strip():
        raise ValueError("it is empty")
    return value.strip()


COUNT_MAX: Final = 2**31 - 1
"""The largest count of records, bytes of a segment or frame, and other numbers that disks and wires hold in 32 bits."""
TIME_MAX_US: Final = 2**60
"""Some 36,000 years: what is longer counts as this, so that times can be added up within 64 bits."""

_HTTP_PORT: Final = 80


def whole(value: object) -> int:
    if isinstance(value, str):
        digits = value.strip().replace("_", "")
        if not is_whole(digits.removeprefix("-").removeprefix("+")):
            raise ValueError("expected a whole number")
        value = int(digits)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("expected a whole number")
    return value


def node_id(value: object) -> int:
    number = whole(value)
    if not 0 <= number <= NODE_ID_MAX:
        raise ValueError(f"expected 0..{NODE_ID_MAX}")
    return number


def positive(value: object) -> int:
    number = whole(value)
    if number <= 0:
        raise ValueError("expected a whole number above 0")
    if number >= 2**63:
        raise ValueError(f"expected at most {2**63 - 1}")
    return number


def count(value: object) -> int:
    number = positive(value)
    if number > COUNT_MAX:
        raise ValueError(f"expected at most {COUNT_MAX}")
    return number


def replication_factor(value: object) -> int:
    """Parse a count of replicas, which Kafka's records hold in 16 bits."""
    number = positive(value)
    if number >= 2**15:
        raise ValueError(f"expected 1..{2**15 - 1}")
    return number


def not_negative(value: object) -> int:
    number = whole(value)
    if number < 0:
        raise ValueError("expected a whole number, 0 or above")
    return positive(number) if number else 0


def part_of_a_second(value: object) -> int:
    """In microseconds."""
    number = not_negative(value)
    if number > 1000 * MS:
        raise ValueError("expected at most a second")
    return number


def microseconds(value: object) -> int:
    return _time_us(positive(value), 1)


def milliseconds(value: object) -> int:
    return _time_us(positive(value), MS)


def seconds(value: object) -> int:
    return _time_us(positive(value), 1000 * MS)


def microseconds_or_never(value: object) -> int:
    return _time_us(not_negative(value), 1)


def milliseconds_or_never(value: object) -> int:
    return _time_us(not_negative(value), MS)


def _time_us(number: int, unit_us: int) -> int:
    return min(number * unit_us, TIME_MAX_US)


def bytes_or_all(value: object) -> int:
    """Kafka's -1 is our 0: no limit."""
    number = whole(value)
    return 0 if number == -1 else not_negative(number)


def microseconds_or_all(value: object) -> int:
    return _time_us(bytes_or_all(value), 1)


def milliseconds_or_all(value: object) -> int:
    return _time_us(bytes_or_all(value), MS)


IN_MICROSECONDS: Final[Mapping[Parse, Parse]] = {
    milliseconds: microseconds,
    seconds: microseconds,
    milliseconds_or_never: microseconds_or_never,
    milliseconds_or_all: microseconds_or_all,
}
"""How times are read whose text is not in milliseconds."""


def voters(value: object) -> VoterSet:
    if isinstance(value, VoterSet):
        return value
    parts = list(value) if isinstance(value, list | tuple) else [value]
    return parse_voters(",".join(plain_text(part) for part in parts))


def endpoint(value: object) -> Endpoint:
    """HOST:PORT or NAME://HOST:PORT to listen on; the host may be empty, for every address, and the port 0."""
    return _endpoint(value, port_min=0)


def _endpoint(value: object, *, port_min: int) -> Endpoint:
    text = value.address if isinstance(value, Endpoint) else plain_text(value)
    name, scheme, address = text.rpartition("://")
    try:
        host, port = parse_address(address, port_min=port_min)
    except AddressError as error:
        raise ValueError(f"expected HOST:PORT; {error}") from error
    return value if isinstance(value, Endpoint) else Endpoint(name if scheme else LISTENER_NAME, host, port)


def listener(value: object) -> Endpoint:
    """The CONTROLLER listener of Kafka's list, or the only one."""
    return _listener(value, endpoint)


def advertised(value: object) -> Endpoint:
    """Parse like `listener`, for an address that others connect to: its port is not 0."""
    return _listener(value, lambda part: _endpoint(part, port_min=1))


def _listener(value: object, parse: Callable[[object], Endpoint]) -> Endpoint:
    """Parse our listener; of the others only the names are read."""
    if isinstance(value, Endpoint):
        return parse(value)
    listed = plain_text(value).split(",")
    for part in listed:
        name, scheme, _ = part.strip().rpartition("://")
        if len(listed) == 1 or (name if scheme else LISTENER_NAME) == LISTENER_NAME:
            return parse(part)
    raise ValueError(f"expected one listener named {LISTENER_NAME}")


def endpoints(value: object) -> tuple[Endpoint, ...]:
    """HOST:PORT of other nodes, to be asked."""
    if isinstance(value, Endpoint):
        return (value,)
    parts = list(value) if isinstance(value, list | tuple) else plain_text(value).split(",")
    return tuple(_endpoint(part, port_min=1) for part in parts)


def directory(value: object) -> str:
    """Kafka's key may list several."""
    text = plain_text(value)
    if "," in text:
        raise ValueError("expected one directory: a quorum's log has no second place")
    return text


def log_kind(value: object) -> LogKind:
    text = plain_text(value)
    if text not in {*LogKind}:
        raise ValueError(f"expected {' or '.join(LogKind)}")
    return LogKind(text)


def kernels(value: object) -> str:
    text = plain_text(value)
    if text not in ("native", "pure"):
        raise ValueError("expected native or pure")
    return text


def flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = plain_text(value).lower()
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def url(value: object) -> str:
    """Empty where the exporter's own variables decide."""
    if not isinstance(value, str):
        raise ValueError("expected a URL")
    text = value.strip()
    if not text:
        return text
    if not text.startswith(("http://", "https://")):
        raise ValueError("expected a URL that begins with http:// or https://")
    if not text.isprintable() or " " in text:
        raise ValueError("expected a URL, in which no blanks are")
    authority = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
    has_port = ":" in authority.rpartition("]")[2]
    try:
        parse_address(authority if has_port else f"{authority}:{_HTTP_PORT}")
    except AddressError as error:
        raise ValueError(f"expected http://HOST:PORT; {error}") from error
    return text
