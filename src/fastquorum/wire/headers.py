"""The headers in front of every request and response body.

Which version goes with which API version is the registry's business (`fastquorum.wire.api`). Source: KIP-482;
RequestHeader, ResponseHeader.
"""

from fastquorum.wire.message import Message
from fastquorum.wire.types import INT16, INT32, STRING, field


class RequestHeader(Message, kind="header", versions="1-2", flexible="2+"):
    """Version 2 has a tag section; the client id keeps its int16 length in every version."""

    request_api_key: int = field(INT16, "0+")
    request_api_version: int = field(INT16, "0+")
    correlation_id: int = field(INT32, "0+")
    client_id: str | None = field(STRING, "1+", nullable="1+", flexible=False)


class ResponseHeader(Message, kind="header", versions="0-1", flexible="1+"):
    """The correlation id of the request it answers."""

    correlation_id: int = field(INT32, "0+")
