"""Where a demo is played: a directory that goes when it is over, unless it is to be kept or shows what went wrong."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fastquorum.cli.demo.screen import DemoEnded, Screen
from fastquorum.errnos import reason
from fastquorum.errors import DirectoryError

EXIT_RED: Final = 1
LEDGER: Final = "acknowledged.jsonl"


def on_stage(keep: str | None, screen: Screen, act: Callable[[str], DemoEnded]) -> int:
    """Play `act` in a directory: `keep`, or a temporary one; 0 if the verdict is green, else 1. DirectoryError."""
    root = _directory(keep)
    try:
        ended = act(root)
    except BaseException:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)
        raise
    # What went wrong is worth looking at.
    is_left = keep is not None or bool(ended.problems)
    screen.verdict(ended, root if is_left else None)
    if not is_left:
        shutil.rmtree(root, ignore_errors=True)
    return EXIT_RED if ended.problems else 0


def keep_ledger(root: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write down what was acknowledged, as JSON lines."""
    with open(os.path.join(root, LEDGER), "w", encoding="ascii") as file:
        for each in entries:
            file.write(json.dumps(each) + "\n")


def _directory(keep: str | None) -> str:
    if keep is None:
        return tempfile.mkdtemp(prefix="fastquorum-demo-")
    try:
        os.makedirs(keep, exist_ok=True)
        if os.listdir(keep):
            raise DirectoryError("is not empty", "give --keep a new or empty directory", keep)
    except OSError as error:
        raise DirectoryError(f"cannot be used: {reason(error)}", "choose another directory", keep) from error
    return os.path.abspath(keep)
