"""The file that Apache Kafka's own controllers are started with, said in this node's settings. Pure: values in, out.

Only a file with `process.roles` is one; any other is left as it is. What a controller here has no use for is named to
whoever asked; what it would have to heed and cannot, TLS for one, is refused. Source: KIP-631, KIP-853; Kafka
`KRaftConfigs`, `KafkaConfig`, config/controller.properties.
"""

import difflib
from collections.abc import Callable, Sequence
from typing import Final

from fastquorum.errors import ConfigError
from fastquorum.node.settings.settings import FILE_KEYS, WITHOUT_EFFECT, SettingsSource
from fastquorum.types import LISTENER_NAME

_ROLES: Final = "process.roles"
_CONTROLLER: Final = "controller"
_LISTENER_NAMES: Final = "controller.listener.names"
_PROTOCOLS: Final = "listener.security.protocol.map"
_PLAINTEXT: Final = "PLAINTEXT"
_REFUSED: Final = {
    "authorizer.class.name": "nobody is authorized here: every request is believed",
    "create.topic.policy.class.name": "no policy can be asked here: every topic is made",
    "alter.config.policy.class.name": "no policy can be asked here: every configuration is taken",
}
"""Whoever says these relies on being heeded."""
_DIRECTORIES: Final = ("metadata.log.dir", "log.dirs", "log.dir")
"""The first that is there says where the metadata is."""
_HEEDED: Final = frozenset((_LISTENER_NAMES, _PROTOCOLS))
"""Without effect in a file of our own: the controllers' listener is found by them in Kafka's."""
_STOCK: Final = frozenset(
    (
        # In the file that Kafka ships, and for brokers, or of Kafka's own sockets and threads.
        "socket.send.buffer.bytes",
        "socket.receive.buffer.bytes",
        "num.recovery.threads.per.data.dir",
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.retention.hours",
        "log.retention.bytes",
        "log.retention.check.interval.ms",
    )
)

_NEAR: Final = 0.9
"""From here on a key is rather a slip of the pen than another of Kafka's (`difflib`)."""

Ignored = Callable[[str, Sequence[str]], None]
"""Told the file's name and the keys in it that mean nothing here."""


def ignored_text(file: str, keys: Sequence[str]) -> str:
    """What a person is told of them: a key that is nearly one that is heeded may be meant as that."""
    return f"{file}: without effect here: {', '.join(map(_with_suggestion, keys))}"


def _with_suggestion(key: str) -> str:
    near = [] if key in FILE_KEYS | _STOCK else difflib.get_close_matches(key, FILE_KEYS, n=1, cutoff=_NEAR)
    return f"{key} (is {near[0]} meant?)" if near else key


def translated(source: SettingsSource, on_ignored: Ignored | None = None) -> SettingsSource:
    """The file as one of this node's own; itself, if it is no file of Kafka's.

    Args:
        on_ignored: hears of keys that have no effect here. None: those that are not known stay, to be refused as in any
            other file.
    Raises:
        ConfigError: the node is to be a broker, too; or what it asks for is not to be had here. Names the key.
    """
    if _ROLES not in source.values:
        _tell(on_ignored, source, [key for key in source.values if key in WITHOUT_EFFECT])
        return source
    values = dict(source.values)
    _check_roles(source.name, str(values.pop(_ROLES)))
    if str(values.setdefault("controller.enable", "true")).strip().lower() == "false":
        raise ConfigError(f"contradicts {_ROLES}", "keep one of the two", "controller.enable", source.name)
    for key, why in _REFUSED.items():
        if str(values.get(key, "")).strip():
            raise ConfigError(why, "", key, source.name)
    name = _listener_name(values)
    _check_protocol(source.name, values, name)
    _choose_listeners(source.name, values, name)
    _choose_directory(values)
    unknown = [key for key in values if key not in FILE_KEYS]
    _tell(on_ignored, source, [*unknown, *(key for key in values if key in WITHOUT_EFFECT - _HEEDED)])
    for key in unknown:
        if on_ignored is not None or key in _STOCK:
            del values[key]
    return SettingsSource(source.name, values)


def _tell(on_ignored: Ignored | None, source: SettingsSource, keys: Sequence[str]) -> None:
    if keys and on_ignored is not None:
        on_ignored(source.name, sorted(keys))


def _check_roles(source: str, text: str) -> None:
    roles = [role.strip() for role in text.split(",") if role.strip()]
    if "broker" in roles:
        raise ConfigError(
            "this node is not a broker",
            "run Apache Kafka's brokers in processes of their own, and only controllers here",
            _ROLES,
            source,
        )
    if roles != [_CONTROLLER]:
        raise ConfigError(f"{text!r} cannot be used: expected {_CONTROLLER}", "", _ROLES, source)


def _listener_name(values: dict[str, object]) -> str:
    """Return the name of the first of the controllers' listeners, which they use among each other."""
    return str(values.get(_LISTENER_NAMES, "")).split(",")[0].strip() or LISTENER_NAME


def _check_protocol(source: str, values: dict[str, object], name: str) -> None:
    protocols = dict(_pair(part) for part in str(values.get(_PROTOCOLS, "")).split(",") if part.strip())
    protocol = protocols.get(name.upper(), name.upper() if name.upper().startswith(("SSL", "SASL_")) else _PLAINTEXT)
    if protocol != _PLAINTEXT:
        raise ConfigError(
            f"listener {name} is to speak {protocol}",
            f"there is no TLS and no SASL here: {_PLAINTEXT} on a private network",
            _PROTOCOLS if name.upper() in protocols else _LISTENER_NAMES,
            source,
        )


def _pair(text: str) -> tuple[str, str]:
    name, _, protocol = text.partition(":")
    return name.strip().upper(), protocol.strip().upper()


def _choose_listeners(source: str, values: dict[str, object], name: str) -> None:
    """The controllers' own; brokers' may stand beside it in a file that several nodes share."""
    for key in ("listeners", "advertised.listeners"):
        if key not in values:
            continue
        listed = [part.strip() for part in str(values[key]).split(",")]
        own = [part for part in listed if part.partition("://")[0].upper() == name.upper()]
        if own:
            values[key] = own[0]
        elif key == "listeners":
            raise ConfigError(f"has no listener {name}, which is the controllers'", "", key, source)
        else:
            del values[key]


def _choose_directory(values: dict[str, object]) -> None:
    """A controller keeps the metadata and nothing else: the directories of a broker's partitions are not looked at."""
    given = [key for key in _DIRECTORIES if key in values]
    if not given:
        return
    chosen = str(values[given[0]]).split(",")[0].strip()
    for key in given:
        del values[key]
    values[given[0]] = chosen
