"""kafka-metadata-shell, asked until it has read all of its file.

It may answer before that, or wait for ever for a batch that came before it looked: about Kafka's own files too.
"""

import subprocess
from pathlib import Path
from typing import Final

from .kafka import Kafka

SHELL_TRIES: Final = 20
SHELL_S: Final = 15
"""How long it is waited for: it answers within a few seconds, or never."""
READY: Final = "cat /image/provenance"
"""The first line that it is told: what it answers says how far it has read."""
PROMPT: Final = ">> "


def printed(kafka: Kafka, file: Path, *command: str, stdin: str = "") -> str | None:
    """Return what it prints for one command given by its words, or for those of `stdin`; None: nothing in time."""
    try:
        return kafka.shell(file, *command, stdin=stdin, timeout_s=SHELL_S)
    except subprocess.TimeoutExpired:
        return None


def answers(kafka: Kafka, file: Path, commands: tuple[str, ...], ready: str) -> list[str]:
    """What it prints for each, at its prompt. `ready`: how the provenance begins when it has read all of the file."""
    lines = "".join(f"{each}\n" for each in (READY, *commands))
    seen: list[str] = []
    while len(seen) < SHELL_TRIES:
        shown = printed(kafka, file, stdin=lines)
        if shown is None:
            seen.append("nothing")
            continue
        _, first, *found = shown.split(PROMPT)
        if first.startswith(ready):
            return found[: len(commands)]
        seen.append(first)
    raise AssertionError((file, seen))
