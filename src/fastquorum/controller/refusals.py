"""Refusals of a request, or of a part of it, and the length of their texts."""

from typing import Final

from fastquorum.wire.error_codes import ErrorCode

TEXT_MAX: Final = 1_000
"""Most characters of an error text: it may quote what the client sent, which may be as long as a string can be."""


class Refused(Exception):
    """A request, or one part of it, gets this error and changes nothing. It never leaves the controller."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code: Final = code
        self.text: Final = brief(text)


class TopicFault(Exception):
    """One topic, or partition, is not created, changed or deleted; the others may be."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(brief(text))
        self.code: Final = code


def brief(text: str) -> str:
    """Return the text, cut to TEXT_MAX characters."""
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"
