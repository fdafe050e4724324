"""Paths as they are given: a shell expands `~` in front, but not in `--data=~/n1`, and a program must do it itself."""

import os

from fastquorum.errors import UsageError


def expanded(path: str | os.PathLike[str]) -> str:
    """Return the path with the home directory in place of `~` or `~USER`; a directory of that very name is `./~`.

    Raises UsageError where the home directory is not known, or the path is below a current directory that is gone, or
    it is empty, or blank, as an unset variable leaves it: the system takes that for the current directory in some
    places, and for a file that is missing in others.
    """
    text = os.fspath(path)
    check_not_blank("the path", text)
    found = os.path.expanduser(text)
    if found == text and text.split(os.sep, 1)[0] == "~":
        raise UsageError(
            f"{text}: the home directory is not known here", "set HOME, or give the whole path (./~ for that very name)"
        )
    if not os.path.isabs(found):
        check_is_somewhere()
    return found


def check_is_somewhere() -> None:
    """Raise UsageError if the current directory was deleted: no path means anything there that does not begin with /,
    and the system says of such a path no more than that something is missing."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current directory is gone: it was deleted", "change to one that exists") from error


def check_not_blank(what: str, text: str, hint: str = "was a variable not set? The current directory is .") -> None:
    """Raise UsageError, naming what it is of, for a path or an address that is empty, or of white space only."""
    if not text.strip():
        raise UsageError(f"{what} is {'blank' if text else 'empty'}", hint)
