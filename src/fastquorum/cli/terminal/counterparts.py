"""Which command reads a directory where another asks a running quorum, and the other way round."""

from collections.abc import Mapping
from typing import Final

_OFFLINE: Final = {
    "broker": "image",
    "quorum": "log verify",
    "read": "log dump",
    "top": "log verify",
    "topic": "image",
}
_ONLINE: Final = {
    "audit": "quorum describe --status",
    "image": "image",
    "log": "quorum describe --status",
    "log dump": "read",
    "log export": "read",
    "report": "image",
    "report anomalies": "quorum describe --status",
    "shell": "shell",
    "spark": "image",
    "spark anomalies": "quorum describe --status",
    "spark audit-invariants": "quorum describe --status",
    "spark audit-replicas": "quorum describe --status",
}


def offline_command(words: tuple[str, ...]) -> str:
    """Return the command that reads a directory, of one that asks a running quorum; "" if there is none."""
    return _found(_OFFLINE, words)


def online_command(words: tuple[str, ...]) -> str:
    """Return the command that asks a running quorum, but for its --bootstrap, of one that reads directories; "" if
    there is none."""
    return _found(_ONLINE, words)


def _found(table: Mapping[str, str], words: tuple[str, ...]) -> str:
    """What stands there for the command, else for its group."""
    return table.get(" ".join(words), table.get(words[0], ""))
