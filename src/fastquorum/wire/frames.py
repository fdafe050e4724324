"""Whole frames: header and body, without the 4-byte length. Source: the Kafka protocol guide; KIP-482; KIP-511.

The functions of this module are those of the generated Python codecs; where speed counts, `frames_of` takes a kernel
set.
"""

import struct
from typing import Final, NamedTuple

from fastquorum.errors import WireError
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.messages import ANY_NUMBER, MessageCodec
from fastquorum.wire.api import Api, declared_api, find_api
from fastquorum.wire.codec.codec import GENERATED, Codec, codec_of
from fastquorum.wire.codec.generated import trailing_bytes
from fastquorum.wire.headers import RequestHeader, ResponseHeader
from fastquorum.wire.message import Message

_KEY_AND_VERSION: Final = struct.Struct(">hh")


class _Spoken(NamedTuple):
    """What one version of an API takes, looked up for every frame."""

    api: Api
    request_header: MessageCodec
    request: MessageCodec
    response_header: MessageCodec
    response: MessageCodec


class Frames:
    """Request and response frames, by one set of codecs."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._spoken: dict[tuple[int, int], _Spoken] = {}

    def encode_request(self, header: RequestHeader, body: Message) -> bytes:
        """A request frame. The header names API and version."""
        version = header.request_api_version
        spoken = self._find(header.request_api_key, version)
        if type(body) is not spoken.api.request:
            raise WireError(f"the header announces {spoken.api.request.__name__}", type(body).__qualname__)
        return spoken.request_header.encode(header) + spoken.request.encode(body)

    def decode_request_header(self, frame: Buffer, elements_max: int = ANY_NUMBER) -> tuple[RequestHeader, int]:
        """The header of a request frame and the position of its body. The version may be an unknown one.

        Raises:
            UnsupportedVersion: the API is unknown; not even the header's layout is known then.
            WireError: the header is malformed.
        """
        if len(frame) < 4:
            raise WireError(f"a frame of {len(frame)} bytes has no header", "RequestHeader", field="request_api_key")
        api_key, version = _KEY_AND_VERSION.unpack_from(frame)
        spoken = self._spoken.get((api_key, version))
        if spoken is not None:
            return spoken.request_header.decode_prefix(frame, 0, elements_max)
        header_version = declared_api(api_key, version).request_header_version(version)
        return self._codec.of(RequestHeader, header_version).decode_prefix(frame, 0, elements_max)

    def decode_request(self, frame: Buffer, elements_max: int = ANY_NUMBER) -> tuple[RequestHeader, Message]:
        """Header and body of a request frame; with more than `elements_max` elements in either it is malformed. Raises
        WireError or UnsupportedVersion."""
        header, position = self.decode_request_header(frame, elements_max)
        version = header.request_api_version
        spoken = self._find(header.request_api_key, version)
        body: Message
        body, end = spoken.request.decode_prefix(frame, position, elements_max)
        if end != len(frame):
            raise trailing_bytes(spoken.api.request, version, end, len(frame))
        return header, body

    def encode_response(self, correlation_id: int, api_key: int, version: int, body: Message) -> bytes:
        """A response frame."""
        spoken = self._find(api_key, version)
        if type(body) is not spoken.api.response:
            detail = f"the answer to {spoken.api.name} is {spoken.api.response.__name__}"
            raise WireError(detail, type(body).__qualname__, version)
        return spoken.response_header.encode(ResponseHeader(correlation_id=correlation_id)) + spoken.response.encode(
            body
        )

    def encode_answer(self, header: RequestHeader, body: Message) -> bytes:
        """The response frame to the request with this header."""
        return self.encode_response(header.correlation_id, header.request_api_key, header.request_api_version, body)

    def decode_response_header(self, frame: Buffer, api_key: int, version: int) -> tuple[ResponseHeader, int]:
        """The header of a response frame and the position of its body. Raises as `decode_response`."""
        return self._find(api_key, version).response_header.decode_prefix(frame)

    def decode_response(self, frame: Buffer, api_key: int, version: int) -> tuple[int, Message]:
        """Correlation id and body of the answer to a request of this version.

        Raises WireError or UnsupportedVersion.
        """
        spoken = self._find(api_key, version)
        header, position = spoken.response_header.decode_prefix(frame)
        body: Message
        body, end = spoken.response.decode_prefix(frame, position)
        if end != len(frame):
            raise trailing_bytes(spoken.api.response, version, end, len(frame))
        return header.correlation_id, body

    def _find(self, api_key: int, version: int) -> _Spoken:
        return self._spoken.get((api_key, version)) or self._speak(api_key, version)

    def _speak(self, api_key: int, version: int) -> _Spoken:
        api, of = find_api(api_key, version), self._codec.of
        spoken = _Spoken(
            api,
            of(RequestHeader, api.request_header_version(version)),
            of(api.request, version),
            of(ResponseHeader, api.response_header_version(version)),
            of(api.response, version),
        )
        return self._spoken.setdefault((api_key, version), spoken)


def frames_of(kernels: Kernels) -> Frames:
    """The one Frames of a kernel set."""
    return _FRAMES.get(kernels.NAME) or _FRAMES.setdefault(kernels.NAME, Frames(codec_of(kernels)))


def request_header(body: Message, version: int, correlation_id: int, client_id: str | None) -> RequestHeader:
    """The header for a request."""
    return RequestHeader(
        request_api_key=type(body).__wire__.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )


_FRAMES: Final[dict[str, Frames]] = {}
_GENERATED: Final = Frames(GENERATED)
encode_request: Final = _GENERATED.encode_request
decode_request: Final = _GENERATED.decode_request
decode_request_header: Final = _GENERATED.decode_request_header
encode_response: Final = _GENERATED.encode_response
decode_response: Final = _GENERATED.decode_response
decode_response_header: Final = _GENERATED.decode_response_header
