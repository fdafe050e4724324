"""Files that hold the result of a long piece of work: looked at before it, and written after it whatever fails."""

import os
import tempfile
from collections.abc import Callable

from fastquorum.cli.terminal.output import tell
from fastquorum.errnos import reason, remedy
from fastquorum.errors import FastQuorumError, UsageError


def check_file(option: str, path: str) -> None:
    """UsageError if the file cannot be written. What lies there stays as it is; what does not, does not afterwards."""
    is_new = not os.path.lexists(path)
    try:
        with open(path, "ab"):
            pass
        if is_new:
            os.unlink(path)
    except OSError as error:
        raise _unusable(option, path, error) from error


def check_directory(option: str, path: str) -> None:
    """UsageError if the directory cannot be made, or no file in it. Nothing is made."""
    nearest = os.path.abspath(path)
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise _unusable(option, path, error) from error


class Outputs:
    """What was written, and whether all could be."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.missing: list[str] = []
        """Options whose files could not be written."""

    @property
    def is_complete(self) -> bool:
        return not self.missing

    def check_complete(self) -> None:
        """UsageError if something is missing: at the end, when everything else was printed and written."""
        if self.missing:
            missing = ", ".join(self.missing)
            raise UsageError(f"{missing}: not written, for the reason above", "name another place and run it again")

    def write(self, option: str, write: Callable[[], list[str] | None]) -> None:
        """Have it written; `write` may return paths. One that cannot be is reported, and keeps nothing else from being
        written."""
        try:
            self.paths += write() or []
        except (OSError, FastQuorumError) as error:
            self.missing.append(option)
            why = reason(error) if isinstance(error, OSError) else str(error)
            tell(f"fastquorum: {option} could not be written: {why}")


def _unusable(option: str, path: str, error: OSError) -> UsageError:
    return UsageError(f"{option} {path} cannot be written: {reason(error)}", remedy(error.errno or 0))
