"""Requests to the controller on a connection: a client's own, or a client's, passed on by a broker.

A broker wraps what a client asked of it into an Envelope, header and all, and so is it answered. Nobody is
authenticated yet, so the principal in it is not looked at. Sans-IO. Source: KIP-590; Kafka `EnvelopeUtils`.
"""

from typing import Final

from fastquorum.controller.requests import ANSWERED_ANYWHERE, DECIDED, DECIDED_FOR_OLDER, refused
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.errors import WireError
from fastquorum.node.network.request_reader import CONTROLLER_ELEMENTS_MAX
from fastquorum.node.network.requests import Request
from fastquorum.wire import ApiKey, ErrorCode, Message, RequestHeader
from fastquorum.wire.messages.cluster import EnvelopeRequest, EnvelopeResponse

CONTROLLER_APIS: Final = frozenset(
    (ApiKey.ENVELOPE, *(ApiKey(each.__wire__.api_key) for each in (*DECIDED, *ANSWERED_ANYWHERE)))
)
OLDER_APIS: Final = frozenset(ApiKey(each.__wire__.api_key) for each in DECIDED_FOR_OLDER)
"""APIs of brokers of KIP-343 and KIP-380: served where the settings say so, and never advertised."""
FORWARDABLE: Final = frozenset(
    (
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
    )
)
"""What a broker passes on for clients."""


def controller_apis(settings: ControllerSettings) -> frozenset[ApiKey]:
    """What a controller with these settings can be asked."""
    return CONTROLLER_APIS | (OLDER_APIS if settings.older_brokers else frozenset())


class ControllerRequest:
    """Something to decide, and whoever waits for the answer."""

    is_forwarded = False
    """By a broker, which knows the client, and has looked at what is asked."""

    def __init__(self, request: Request, message: Message, version: int) -> None:
        self.token: Final = request.token
        self.message: Final = message
        self.version: Final = version
        self._request = request

    def answer(self, message: Message) -> None:
        try:
            self._request.reply(message)
        except WireError:  # it does not fit the layout: a fault of ours, which must not be the node's end
            self._request.reply(refused(self.message, self.version, ErrorCode.UNKNOWN_SERVER_ERROR))

    def refuse(self, code: ErrorCode, text: str = "") -> None:
        """Nothing comes of it."""
        self.answer(refused(self.message, self.version, code, text))


class _Forwarded(ControllerRequest):
    """A client's, in a broker's envelope."""

    is_forwarded = True

    def __init__(self, request: Request, header: RequestHeader, message: Message) -> None:
        super().__init__(request, message, header.request_api_version)
        self._header = header

    def answer(self, message: Message) -> None:
        frames = self._request.frames
        try:
            inner = frames.encode_answer(self._header, message)
        except WireError:
            message = refused(self.message, self.version, ErrorCode.UNKNOWN_SERVER_ERROR)
            inner = frames.encode_answer(self._header, message)
        self._request.reply(EnvelopeResponse(response_data=inner))

    def refuse(self, code: ErrorCode, text: str = "") -> None:
        """By the broker it is asked again if this is not the controller; everything else is the client's to hear."""
        if code is ErrorCode.NOT_CONTROLLER:
            self._request.reply(EnvelopeResponse(error_code=code))
        else:
            super().refuse(code, text)


def read(request: Request) -> ControllerRequest | None:
    """Read a request. None if it cannot be read, or is not one for the controller: then it is answered already."""
    message = request.message
    if not isinstance(message, EnvelopeRequest):
        return ControllerRequest(request, message, request.header.request_api_version)
    if len(message.client_host_address) not in (4, 16):
        request.reply(EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST))
        return None
    try:
        header, inner = request.frames.decode_request(message.request_data, CONTROLLER_ELEMENTS_MAX)
    except WireError:
        request.reply(EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return None
    if header.request_api_key not in FORWARDABLE:
        request.reply(EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST))
        return None
    return _Forwarded(request, header, inner)
