"""Every request of the controller can be refused, in each of its versions."""

import pytest

from fastquorum.controller.requests import ANSWERED_ANYWHERE, DECIDED, DECIDED_FOR_OLDER, refused
from fastquorum.wire import API, Message, decode, encode
from fastquorum.wire.error_codes import ErrorCode


@pytest.mark.parametrize("cls", [*DECIDED, *DECIDED_FOR_OLDER, *ANSWERED_ANYWHERE], ids=lambda cls: cls.__name__)
def test_a_refusal_can_be_written_in_every_version(cls: type[Message]) -> None:
    api = API[cls.__wire__.api_key]
    for version in range(api.versions.first, api.versions.last + 1):
        for text in ("", "why"):
            response = refused(cls(), version, ErrorCode.NOT_CONTROLLER, text)
            assert isinstance(decode(api.response, version, encode(response, version)), api.response)
