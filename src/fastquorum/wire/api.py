"""The APIs that are spoken here, and whole frames: header and body, without the 4-byte length.

Which header version goes with which API version is decided here and nowhere else. Source: the Kafka protocol guide;
KIP-482; KIP-511.
"""

import struct
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.wire.api_keys import ApiKey
from fastquorum.wire.codec import Buffer, decode_prefix, encode, trailing_bytes
from fastquorum.wire.headers import RequestHeader, ResponseHeader
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
                assert by_kind.setdefault(value.__wire__.api_key, value) is value, f"two {value.__wire__}"
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
    "brokers",
    "cluster",
    "configs",
    "controller_heartbeat",
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
    "snapshot",
    "topics",
)
API: Final = _registry(import_module(f"fastquorum.wire.{name}") for name in _MODULES)
"""Every declared API by its key."""
_KNOWN: Final = {
    (key, version): (api, api.request_header_version(version), api.response_header_version(version))
    for key, api in API.items()
    for version in range(api.versions.first, api.versions.last + 1)
}
"""(API, request and response header version) by key and version: decided once, looked up for every frame."""


def _find(api_key: int, version: int) -> tuple[Api, int, int]:
    known = _KNOWN.get((api_key, version))
    if known is None:
        api = _declared(api_key, version)
        raise UnsupportedVersion(f"only versions {api.versions} exist", api.name, version, api_key=api_key)
    return known


def _declared(api_key: int, version: int) -> Api:
    api = API.get(api_key)
    if api is None:
        raise UnsupportedVersion(f"nobody here speaks the API with key {api_key}", version=version, api_key=api_key)
    return api


def find_api(api_key: int, version: int) -> Api:
    """The API, if it is declared and has this version; UnsupportedVersion otherwise."""
    return _find(api_key, version)[0]


def request_header_version(api_key: int, version: int) -> int:
    """The version of the request header in front of this API version, which need not exist: its header can be read."""
    return _declared(api_key, version).request_header_version(version)


def response_header_version(api_key: int, version: int) -> int:
    """The version of the response header in front of this API version."""
    return _find(api_key, version)[2]


def request_header(body: Message, version: int, correlation_id: int, client_id: str | None) -> RequestHeader:
    """The header for a request."""
    return RequestHeader(
        request_api_key=type(body).__wire__.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )


def encode_request(header: RequestHeader, body: Message) -> bytes:
    """A request frame, without its 4-byte length. The header names API and version."""
    version = header.request_api_version
    api, header_version, _ = _find(header.request_api_key, version)
    if type(body) is not api.request:
        raise WireError(f"the header announces {api.request.__name__}", type(body).__qualname__)
    return encode(header, header_version) + encode(body, version)


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request frame and the position of its body. The version may be one that nobody here speaks.

    Raises:
        UnsupportedVersion: the API is unknown; not even the header's layout is known then.
        WireError: the header is malformed.
    """
    if len(frame) < 4:
        raise WireError(f"a frame of {len(frame)} bytes has no header", "RequestHeader", field="request_api_key")
    api_key, version = struct.unpack_from(">hh", frame)
    known = _KNOWN.get((api_key, version))
    return decode_prefix(RequestHeader, known[1] if known else request_header_version(api_key, version), frame)


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Header and body of a request frame. Raises WireError or UnsupportedVersion."""
    header, position = decode_request_header(frame)
    version = header.request_api_version
    api, _, _ = _find(header.request_api_key, version)
    return header, _decode_body(api.request, version, frame, position)


def encode_response(correlation_id: int, api_key: int, version: int, body: Message) -> bytes:
    """A response frame, without its 4-byte length."""
    api, _, header_version = _find(api_key, version)
    if type(body) is not api.response:
        raise WireError(f"the answer to {api.name} is {api.response.__name__}", type(body).__qualname__, version)
    return encode(ResponseHeader(correlation_id=correlation_id), header_version) + encode(body, version)


def decode_response_header(frame: Buffer, api_key: int, version: int) -> tuple[ResponseHeader, int]:
    """The header of a response frame and the position of its body. Raises as `decode_response`."""
    return decode_prefix(ResponseHeader, _find(api_key, version)[2], frame)


def decode_response(frame: Buffer, api_key: int, version: int) -> tuple[int, Message]:
    """Correlation id and body of the answer to a request of this version. Raises WireError or UnsupportedVersion."""
    api, _, header_version = _find(api_key, version)
    header, position = decode_prefix(ResponseHeader, header_version, frame)
    return header.correlation_id, _decode_body(api.response, version, frame, position)


def _decode_body(cls: type[Message], version: int, frame: Buffer, position: int) -> Message:
    body, end = decode_prefix(cls, version, frame, position)
    if end != len(frame):
        raise trailing_bytes(cls, version, end, len(frame))
    return body
