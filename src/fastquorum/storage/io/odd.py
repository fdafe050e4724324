"""What lies where a file should, and is none: a FIFO, a socket, a device, a link to what is not there. Source: stat(2),
open(2), fifo(7), symlink(7).

Opening a FIFO waits until somebody writes to it, and a device may do anything: in a directory that is looked at,
neither is opened. A file behind a link whose target is not mounted is not missing, and none is made in its place.
"""

import os
import stat
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from fastquorum.errors import DirectoryError

_ODD: Final = MappingProxyType[str, Callable[[int], bool]](
    {
        "a FIFO": stat.S_ISFIFO,
        "a socket": stat.S_ISSOCK,
        "a character device": stat.S_ISCHR,
        "a block device": stat.S_ISBLK,
    }
)


def odd_file(path: str, mode: int) -> DirectoryError | None:
    """Return the error of a path of this mode (`st_mode`), None if it is a regular file or a directory."""
    found = next((text for text, fits in _ODD.items() if fits(mode)), None)
    return None if found is None else DirectoryError(f"is {found}, not a file", "move it away", path)


def check_not_odd(path: str) -> None:
    """DirectoryError if what lies there must not be opened. What is missing is left to whatever opens it."""
    try:
        error = odd_file(path, os.stat(path).st_mode)
    except FileNotFoundError:
        check_not_dangling(path)
    except OSError:  # the open that follows has its own words for it
        return
    else:
        if error is not None:
            raise error


def check_not_dangling(path: str) -> None:
    """DirectoryError if what is not there is the target of a link."""
    if os.path.islink(path):
        raise dangling(path)


def dangling(path: str) -> DirectoryError:
    """Return the error for a link whose target is missing."""
    return DirectoryError("is a link to what is not there", "mount or restore its target, or remove the link", path)
