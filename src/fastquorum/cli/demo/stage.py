"""Where a demo is played: a directory that goes when it is over, unless it is to be kept or shows what went wrong."""

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Final, NamedTuple

from fastquorum.errnos import reason
from fastquorum.errors import DirectoryError

EXIT_RED: Final = 1


class DemoEnded(NamedTuple):
    """How a play ended."""

    is_green: bool
    show: Callable[[str | None], None]
    """Shows the verdict; given is where the directory was left, or None."""


def on_stage(keep: str | None, act: Callable[[str], DemoEnded]) -> int:
    """Play `act` in a directory: `keep`, or a temporary one; 0 if the verdict is green, else 1. DirectoryError."""
    root = _directory(keep)
    try:
        ended = act(root)
    except BaseException:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)
        raise
    # What went wrong is worth looking at.
    is_left = keep is not None or not ended.is_green
    ended.show(root if is_left else None)
    if not is_left:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if ended.is_green else EXIT_RED


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
