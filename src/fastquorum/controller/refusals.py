"""A request, or a part of it, that is refused, and how much of the reason is told."""

from typing import Final

from fastquorum.wire.error_codes import ErrorCode

TEXT_MAX: Final = 1_000
"""Characters of what a client is told: what it sent may be quoted in it, and that may be as long as a string can be."""


class Refused(Exception):
    """The request, or one part of it, is answered with this error, and changes nothing. Never leaves the controller."""

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
