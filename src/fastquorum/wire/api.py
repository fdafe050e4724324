"""The APIs that are spoken here, and their versions.

Which header version goes with which API version is decided here and nowhere else. Source: the Kafka protocol guide;
KIP-482; KIP-511.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

from fastquorum.errors import UnsupportedVersion
from fastquorum.wire.api_keys import ApiKey
from fastquorum.wire.message import Message
from fastquorum.wire.types import NO_VERSIONS, Versions


class Api(NamedTuple):
    """One API: its number, its classes, and the versions declared for it."""

    key: ApiKey
    name: str
    request: type[Message]
    response: type[Message]
    versions: Versions
    advertised: Versions
    """What goes into an ApiVersions response where the API is served: Kafka 4.3's range, which differs for Produce and
    InitProducerId. NO_VERSIONS where Kafka has no such API (any more): peers must not learn of it unasked."""
    flexible: Versions

    @property
    def is_advertised(self) -> bool:
        return self.advertised != NO_VERSIONS

    def request_header_version(self, version: int) -> int:
        return 2 if self.flexible.has(version) else 1

    def response_header_version(self, version: int) -> int:
        """ApiVersions is answered with header v0 always: the asker does not know yet what the node speaks."""
        return 1 if self.flexible.has(version) and self.key is not ApiKey.API_VERSIONS else 0


_ADVERTISED: Final = {
    # Versions 0-2 are gone, but librdkafka judges by them what a broker can do (KAFKA-18659).
    ApiKey.PRODUCE: Versions(0, 13),
    ApiKey.INIT_PRODUCER_ID: Versions(0, 5),  # version 6 is not stable yet
    ApiKey.LEADER_AND_ISR: NO_VERSIONS,
    ApiKey.STOP_REPLICA: NO_VERSIONS,
    ApiKey.UPDATE_METADATA: NO_VERSIONS,
    ApiKey.CONTROLLED_SHUTDOWN: NO_VERSIONS,
    ApiKey.METADATA_HEARTBEAT: NO_VERSIONS,
    ApiKey.ISR_CHANGE: NO_VERSIONS,
}


def _registry(modules: Iterable[object]) -> Mapping[int, Api]:
    requests: dict[int, type[Message]] = {}
    responses: dict[int, type[Message]] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__wire__.api_key >= 0:
                by_kind = requests if value.__wire__.kind == "request" else responses
                held = by_kind.setdefault(value.__wire__.api_key, value)
                assert held is value, f"two {value.__wire__}"
    assert requests.keys() == responses.keys()
    apis = {}
    for key in sorted(requests):
        request, response = requests[key].__wire__, responses[key].__wire__
        assert (request.versions, request.flexible) == (response.versions, response.flexible), request.name
        api_key = ApiKey(key)
        apis[key] = Api(
            key=api_key,
            name=request.name.removesuffix("Request"),
            request=requests[key],
            response=responses[key],
            versions=request.versions,
            advertised=_ADVERTISED.get(api_key, request.versions),
            flexible=request.flexible,
        )
    return MappingProxyType(apis)


_MODULES: Final = (
    "acls",
    "brokers",
    "cluster",
    "configs",
    "controller_heartbeat",
    "credentials",
    "fetch",
    "handshake",
    "inter_broker",
    "list_offsets",
    "log_dirs",
    "metadata",
    "partitions",
    "produce",
    "producers",
    "quorum",
    "quorum_admin",
    "quotas",
    "sasl",
    "snapshot",
    "topics",
)
API: Final = _registry(import_module(f"fastquorum.wire.messages.{name}") for name in _MODULES)
"""Every declared API by its key."""


def find_api(api_key: int, version: int) -> Api:
    """The API, if it is declared and has this version; UnsupportedVersion otherwise."""
    api = API.get(api_key)
    if api is None or not api.versions.has(version):
        api = declared_api(api_key, version)
        raise UnsupportedVersion(f"only versions {api.versions} exist", api.name, version, api_key=api_key)
    return api


def declared_api(api_key: int, version: int) -> Api:
    """The API, if it is declared; UnsupportedVersion, which names the version asked for, otherwise."""
    api = API.get(api_key)
    if api is None:
        raise UnsupportedVersion(
            f"this node does not support the API with key {api_key}", version=version, api_key=api_key
        )
    return api


def request_header_version(api_key: int, version: int) -> int:
    """The version of the request header in front of this API version, which need not exist: its header can be read."""
    return declared_api(api_key, version).request_header_version(version)


def response_header_version(api_key: int, version: int) -> int:
    """The version of the response header in front of this API version."""
    return find_api(api_key, version).response_header_version(version)
