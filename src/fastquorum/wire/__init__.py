"""Kafka's protocol: every message declared once, as data; codec, JSON form and layout are derived from the
declaration.

Knows the field layouts of every API version; may not know who sends a message, or why. Sans-IO: bytes in, values out.
Messages live in modules by subject (`fastquorum.wire.messages.quorum`, `.fetch`, ...); what works on all of them is
exported here.
"""

from fastquorum.kernels import Buffer
from fastquorum.wire.api import API, Api, find_api, request_header_version, response_header_version
from fastquorum.wire.api_keys import READ_ONLY_APIS, ApiKey
from fastquorum.wire.codec.codec import Codec, codec_of, decode, decode_prefix, encode
from fastquorum.wire.codec.json_form import from_json, to_json
from fastquorum.wire.codec.layout import LayoutField, layout
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.frames import (
    Frames,
    decode_request,
    decode_request_header,
    decode_response,
    decode_response_header,
    encode_request,
    encode_response,
    frames_of,
    request_header,
)
from fastquorum.wire.headers import RequestHeader, ResponseHeader
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import Versions

__all__ = [
    "API",
    "READ_ONLY_APIS",
    "Api",
    "ApiKey",
    "Buffer",
    "Codec",
    "ErrorCode",
    "Frames",
    "LayoutField",
    "Message",
    "RequestHeader",
    "ResponseHeader",
    "Struct",
    "Versions",
    "codec_of",
    "decode",
    "decode_prefix",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "decode_response_header",
    "encode",
    "encode_request",
    "encode_response",
    "find_api",
    "frames_of",
    "from_json",
    "layout",
    "request_header",
    "request_header_version",
    "response_header_version",
    "to_json",
]
