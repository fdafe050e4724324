"""A metadata image as a tree of directories and files, by the names that Kafka's shell gives them.

Nodes are made when they are visited: of a million partitions only those that a command shows. Source: Kafka
`RootShellNode`, `LocalShellNode`, and the nodes in `org.apache.kafka.image.node`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fastquorum.cli.shell.text import (
    acl_text,
    broker_text,
    controller_text,
    optional,
    partition_text,
    place_text,
    scram_text,
    token_text,
)
from fastquorum.cli.terminal.json_text import java_double
from fastquorum.controller.image import Image
from fastquorum.controller.image import view as views
from fastquorum.controller.image.access import DelegationToken
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.features import Features
from fastquorum.controller.image.fold import Place
from fastquorum.controller.image.quotas import Entity
from fastquorum.controller.image.topics import Topic, Topics
from fastquorum.types import Uuid
from fastquorum.version import __version__

K = TypeVar("K")
V = TypeVar("V")
_FINALIZED: Final = "finalized_"
_QUOTA_KINDS: Final = {"client-id": "clientId", "ip": "ip", "user": "user"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A file; both are made when they are asked for."""

    text: Callable[[], str]
    """What `cat` prints."""
    value: Callable[[], Any]
    """The same for JSON, without what is secret."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory."""

    list_names: Callable[[], Iterable[str]]
    child: Callable[[str], "Leaf | Directory | None"]
    """None: there is none such."""

    def names(self) -> list[str]:
        """In the order of Java's strings."""
        return sorted(self.list_names(), key=_utf16)

    def children(self) -> "list[tuple[str, Node]]":
        return [(name, child) for name in self.names() if (child := self.child(name)) is not None]


Node = Leaf | Directory


def tree_of(image: Image, place: Place) -> Directory:
    """The root: `local`, which is about this program, and `image`."""
    return _fixed({"local": _local, "image": lambda: _image(image, place)})


def _local() -> Directory:
    return _fixed({"version": lambda: _plain(__version__), "commitId": lambda: _plain("unknown")})


def _image(image: Image, place: Place) -> Directory:
    return _fixed(
        {
            "provenance": lambda: Leaf(lambda: place_text(place), lambda: _place_view(place)),
            "features": lambda: _features(image.features),
            "cluster": lambda: _cluster(image),
            "topics": lambda: _topics(image.topics),
            "configs": lambda: _named({_config_name(key): each for key, each in image.configs.items()}, _settings),
            "clientQuotas": lambda: _named({_quota_name(key): each for key, each in image.quotas.items()}, _limits),
            "producerIds": lambda: _fixed({"nextProducerId": lambda: _plain(image.next_producer_id)}),
            "acls": lambda: _fixed({"byId": lambda: _acls(image)}),
            "scram": lambda: _fixed(
                {name: _scram_users(image, number) for number, name in views.SCRAM_MECHANISMS.items()}
            ),
            "delegationToken": lambda: _named({key: (key, each) for key, each in image.tokens.items()}, _token),
        }
    )


def _features(features: Features) -> Directory:
    def child(name: str) -> Leaf | None:
        if name == "metadataVersion":
            version = features.metadata_version
            return Leaf(lambda: optional(version), lambda: None if version is None else str(version))
        if name.startswith(_FINALIZED):
            return _plain(features.levels.get(name.removeprefix(_FINALIZED), 0))  # 0: not finalized
        return None

    return Directory(lambda: ["metadataVersion", *(f"{_FINALIZED}{name}" for name in features.levels)], child)


def _cluster(image: Image) -> Directory:
    return _fixed(
        {
            "brokers": lambda: _keyed(
                image.brokers, int, lambda each: Leaf(lambda: broker_text(each), lambda: views.broker_view(each))
            ),
            "controllers": lambda: _keyed(
                image.controllers,
                int,
                lambda each: Leaf(lambda: controller_text(each), lambda: views.controller_view(each)),
            ),
        }
    )


def _topics(topics: Topics) -> Directory:
    def named(name: str) -> Directory | None:
        topic = topics.named(name)
        return None if topic is None else _topic(topic)

    return _fixed(
        {
            "byName": lambda: Directory(lambda: topics.ids, named),
            "byId": lambda: _keyed(topics.by_id, Uuid.parse, _topic),
        }
    )


def _topic(topic: Topic) -> Directory:
    def child(name: str) -> Leaf | None:
        if name == "name":
            return _plain(topic.name)
        if name == "id":
            return _plain(str(topic.id))
        number = _canonical(name, int)
        partition = None if number is None else topic.partitions.get(number)
        if partition is None:
            return None
        return Leaf(lambda: partition_text(partition), lambda: views.partition_view(partition))

    return Directory(lambda: ["name", "id", *(str(number) for number, _ in topic.partitions.items())], child)


def _settings(values: Mapping[str, str]) -> Directory:
    return _named(values, _plain)


def _limits(values: Mapping[str, float]) -> Directory:
    return _named(values, lambda value: Leaf(lambda: java_double(value).strip('"'), lambda: value))


def _acls(image: Image) -> Directory:
    return _keyed(image.acls, Uuid.parse, lambda acl: Leaf(lambda: acl_text(acl), lambda: views.acl_view(acl)))


def _scram_users(image: Image, mechanism: int) -> Callable[[], Directory]:
    def users() -> Directory:
        of_it = {user: each for (number, user), each in image.scram.items() if number == mechanism}
        return _named(of_it, lambda each: Leaf(lambda: scram_text(each), lambda: views.scram_view(each)))

    return users


def _token(named: tuple[str, DelegationToken]) -> Leaf:
    return Leaf(lambda: token_text(*named), lambda: views.token_view(named[1]))


def _place_view(place: Place) -> dict[str, int]:
    return {"offset": place.end_offset - 1, "epoch": place.epoch, "timestampMs": place.timestamp_ms}


def _config_name(resource: Resource) -> str:
    """`TOPIC:t`, `BROKER:1`; `BROKER` for the default of all."""
    kind = ResourceType(resource.type).name
    return f"{kind}:{resource.name}" if resource.name else kind


def _quota_name(entity: Entity) -> str:
    """`clientId(c)_user(u)`. A default, for which Kafka's shell has no name, is empty: no client has that name."""
    return "_".join(f"{_QUOTA_KINDS.get(kind, kind)}({_escaped(name or '')})" for kind, name in entity)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _plain(value: str | int) -> Leaf:
    return Leaf(lambda: str(value), lambda: value)


def _fixed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    return Directory(lambda: children, lambda name: children[name]() if name in children else None)


def _named(things: Mapping[str, V], node: Callable[[V], Node]) -> Directory:
    return Directory(lambda: things, lambda name: node(things[name]) if name in things else None)


def _keyed(things: Mapping[K, V], parse: Callable[[str], K], node: Callable[[V], Node]) -> Directory:
    """Return the directory of a mapping whose keys have a text form."""

    def child(name: str) -> Node | None:
        key = _canonical(name, parse)
        return None if key is None or key not in things else node(things[key])

    return Directory(lambda: map(str, things), child)


def _canonical(name: str, parse: Callable[[str], K]) -> K | None:
    """The key that is written so; None for any other text."""
    try:
        key = parse(name)
    except ValueError:
        return None
    return key if str(key) == name else None


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")
