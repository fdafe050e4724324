"""The options of `join`, for both twins: declared once, checked by the type checker and at run time. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, NamedTuple, NotRequired, Protocol, Required, TypedDict, runtime_checkable

from fastquorum.addresses import PORT_MAX, AddressError, check_reachable
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.config import MS
from fastquorum.controller.image.registrations import Listener
from fastquorum.errors import ConfigError
from fastquorum.node.settings.parsing import COUNT_MAX
from fastquorum.node.settings.settings import from_arguments
from fastquorum.types import NODE_ID_MAX, Endpoint, Uuid, is_text

LISTENER: Final = "PLAINTEXT"
RACK_BYTES_MAX: Final = 1024
"""Most bytes of a rack's name: no controller would read a registration with more."""
_NUMBERS: Final = tuple(each.name for each in fields(MemberConfig))
_REQUIRED: Final = ("bootstrap", "broker_id", "cluster_id")
_PLAIN: Final = ("host", "port", "listeners", "rack", "log_dirs", "metadata_dir", "ready", "kernels")


@runtime_checkable
class PathLike(Protocol):
    """A path-like object, as os.PathLike[str]."""

    def __fspath__(self) -> str: ...


_Check = tuple[Callable[[Any], bool], str]


def _whole(least: int, most: int) -> _Check:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
        f"a whole number from {least} to {most}",
    )


def _or_none(check: _Check) -> _Check:
    is_good, expected = check
    return lambda value: value is None or is_good(value), expected


def _is_path(value: Any) -> bool:
    text = _text_of(value) if isinstance(value, str | PathLike) else None
    return isinstance(text, str) and text.strip() != "" and "\0" not in text


def _text_of(path: "str | PathLike") -> str:
    return path if isinstance(path, str) else path.__fspath__()


def _are(kinds: tuple[type, ...]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, list | tuple) and all(isinstance(each, kinds) for each in values)


_TIME: Final = _whole(1, COUNT_MAX * MS)
"""A time in microseconds; the wire carries milliseconds."""
_SWITCH: Final[_Check] = (lambda value: isinstance(value, bool), "True or False")
_CHECKS: Final[Mapping[str, _Check]] = {
    "bootstrap": (lambda value: not isinstance(value, list | tuple) or len(value) > 0, "one address or more"),
    "broker_id": _whole(0, NODE_ID_MAX),
    "host": _or_none((lambda value: isinstance(value, str), "text")),
    "port": _or_none(_whole(0, PORT_MAX)),
    "listeners": (_are((Listener,)), "a list of Listener"),
    "rack": _or_none(
        (
            lambda value: isinstance(value, str) and is_text(value) and len(value.encode()) <= RACK_BYTES_MAX,
            f"text of at most {RACK_BYTES_MAX} bytes",
        )
    ),
    "log_dirs": _or_none((_are((str, Uuid)), "a list of directory ids")),
    "metadata_dir": _or_none((_is_path, "a path")),
    "ready": _SWITCH,
    "kernels": (lambda value: value in ("native", "pure"), "native or pure"),
    "heartbeat_interval_us": _TIME,
    "session_timeout_us": _TIME,
    "heartbeat_timeout_us": _or_none(_TIME),
    "request_timeout_us": _TIME,
    "retry_backoff_us": _TIME,
    "fetch_wait_us_max": _whole(0, COUNT_MAX * MS),
    "fetch_bytes_max": _whole(1, COUNT_MAX),
    "metadata_heartbeats": _SWITCH,
    "control_requests": _SWITCH,
}
"""For each option a check of its value, and a text that states what it has to be. The addresses in `bootstrap`, and
`cluster_id`, are read as a node's settings are."""


class JoinOptions(TypedDict, total=False):
    """Everything `join` takes; of `MemberConfig` any field, times in microseconds."""

    bootstrap: Required[str | Endpoint | Sequence[str | Endpoint]]
    """HOST:PORT,... of controllers, ours or Kafka's, to ask for the leader."""
    broker_id: Required[int]
    """0 or above; not a controller's. Of all members of one id only one is admitted at a time, so it can name a
    lock."""
    cluster_id: Required[str]
    host: NotRequired[str | None]
    """Where others reach this program, if they do: the host of a listener named PLAINTEXT."""
    port: NotRequired[int | None]
    listeners: NotRequired[Sequence[Listener]]
    """The listeners, in place of host and port."""
    rack: NotRequired[str | None]
    """The rack; an empty text means none."""
    log_dirs: NotRequired[Sequence[str | Uuid] | None]
    """Directory ids (KIP-858). Not given: a random one, for a program that stores nothing."""
    metadata_dir: NotRequired[str | PathLike | None]
    """The member's own directory, made if missing: it stores the metadata there, and starts from it again."""
    ready: NotRequired[bool]
    """False: it stays fenced until `set_ready()`."""
    kernels: NotRequired[Literal["native", "pure"]]
    heartbeat_interval_us: NotRequired[int]
    session_timeout_us: NotRequired[int]
    heartbeat_timeout_us: NotRequired[int | None]
    request_timeout_us: NotRequired[int]
    retry_backoff_us: NotRequired[int]
    fetch_wait_us_max: NotRequired[int]
    fetch_bytes_max: NotRequired[int]
    metadata_heartbeats: NotRequired[bool]
    control_requests: NotRequired[bool]
    """True: host and port are where it listens itself; with port 0, at any that is free."""


class Joining(NamedTuple):
    """The options of `join`, parsed."""

    settings: MemberSettings
    config: MemberConfig
    is_ready: bool
    kernels: Literal["native", "pure"]
    metadata_dir: str | None


def joining(options: Mapping[str, Any], incarnation_id: Uuid, directory_id: Uuid) -> Joining:
    """Parse the options. ConfigError names the missing or wrong one.

    `incarnation_id` is this process's; `directory_id` is taken if the program names no directories.
    """
    for name in _REQUIRED:
        if options.get(name) is None:
            raise ConfigError("is needed", "give it", name)
    for name in options:
        if name not in (*_REQUIRED, *_PLAIN, *_NUMBERS):
            raise ConfigError("there is no such option", "", name)
    for name, (is_good, expected) in _CHECKS.items():
        if name in options and not is_good(options[name]):
            raise ConfigError(f"{options[name]!r} is not {expected}", "", name)
    read: dict[str, Any] = from_arguments({name: options[name] for name in ("bootstrap", "cluster_id")})
    settings = MemberSettings(
        broker_id=options["broker_id"],
        cluster_id=read["cluster_id"],
        bootstrap=read["bootstrap"],
        incarnation_id=incarnation_id,
        log_dirs=_directories(options.get("log_dirs"), directory_id),
        listeners=_listeners(options),
        rack=options.get("rack") or None,
    )
    config = MemberConfig(**{name: options[name] for name in _NUMBERS if name in options})
    if config.control_requests and options.get("host") is None:
        raise ConfigError("is needed with control_requests", "give an address of this machine", "host")
    if config.control_requests and options.get("metadata_dir") is not None:
        raise ConfigError("cannot be used with control_requests", "leave it out", "metadata_dir")
    is_ready, kernels, place = options.get("ready", True), options.get("kernels", "native"), options.get("metadata_dir")
    return Joining(settings, config, is_ready, kernels, None if place is None else _text_of(place))


def _listeners(options: Mapping[str, Any]) -> tuple[Listener, ...]:
    listeners = _given_listeners(options)
    for each in listeners:
        try:
            check_reachable(each.host)
        except AddressError as error:
            raise ConfigError(str(error), "give an address that clients and controllers reach", "host") from error
    return listeners


def _given_listeners(options: Mapping[str, Any]) -> tuple[Listener, ...]:
    host, port = options.get("host"), options.get("port")
    if (host is None) != (port is None):
        raise ConfigError("is needed with the other of host and port", "give both, or neither", "port")
    if host is None or port is None:
        return tuple(options.get("listeners", ()))
    if options.get("listeners"):
        raise ConfigError("host and port are given, too", "give one of the two", "listeners")
    if port == 0 and not options.get("control_requests"):
        raise ConfigError("0 is not a port that others can reach", "give the one that this program listens on", "port")
    return (Listener(LISTENER, host, port, 0),)


def _directories(given: Sequence[str | Uuid] | None, drawn: Uuid) -> tuple[Uuid, ...]:
    if given is None:
        return (drawn,)
    try:
        found = tuple(each if isinstance(each, Uuid) else Uuid.parse(each) for each in given)
    except ValueError as error:
        raise ConfigError(
            str(error), "give directory ids, as `fastquorum random-uuid` makes them", "log_dirs"
        ) from error
    if not found or len(set(found)) < len(found):
        raise ConfigError("expected at least one directory id, and each once", "", "log_dirs")
    return found
