"""SaslHandshake, SaslAuthenticate: who somebody is, before anything else. Source: KIP-43, KIP-152, KIP-368."""

from fastquorum.wire.message import Message
from fastquorum.wire.types import BYTES, INT16, INT64, STRING, array, field


class SaslHandshakeRequest(Message, api_key=17, kind="request", versions="0-1", flexible="none"):
    """Choose a mechanism."""

    mechanism: str = field(STRING, "0+")


class SaslHandshakeResponse(Message, api_key=17, kind="response", versions="0-1", flexible="none"):
    """The mechanisms that there are."""

    error_code: int = field(INT16, "0+")
    mechanisms: list[str] = field(array(STRING), "0+")


class SaslAuthenticateRequest(Message, api_key=36, kind="request", versions="0-2", flexible="2+"):
    """One step of the mechanism."""

    auth_bytes: bytes = field(BYTES, "0+")


class SaslAuthenticateResponse(Message, api_key=36, kind="response", versions="0-2", flexible="2+"):
    """The other side's step."""

    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    auth_bytes: bytes = field(BYTES, "0+")
    session_lifetime_ms: int = field(INT64, "1+", ignorable=True)
