"""Paths that begin with `~`: a shell expands it in most places, but in `--data=~/n1` and in a program nobody does."""

import os

from fastquorum.errors import UsageError


def expanded(path: str | os.PathLike[str]) -> str:
    """Return the path with the home directory in place of `~` or `~USER`; a directory of that very name is `./~`.

    Raises UsageError where the home directory is not known.
    """
    text = os.fspath(path)
    found = os.path.expanduser(text)
    if found == text and text.split(os.sep, 1)[0] == "~":
        raise UsageError(
            f"{text}: the home directory is not known here", "set HOME, or give the whole path (./~ for that very name)"
        )
    return found
