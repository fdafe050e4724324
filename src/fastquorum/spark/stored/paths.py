"""Several paths as one text, as the data source's option `path` has them: with commas between."""

import os
from collections.abc import Iterable

from fastquorum.errors import UsageError


def joined(paths: Iterable[str]) -> str:
    """These as one, where each is given by itself. UsageError if one has a comma in it, which would be two paths."""
    found = list(paths)
    for each in found:
        if "," in each:
            raise _with_comma(each)
    return ",".join(found)


def split_by_commas(text: str) -> str:
    """Return the same text, where it names a path, or several with commas between. UsageError if a path of that very
    name is there, as it would be taken for several others."""
    if "," in text and os.path.lexists(text):
        raise _with_comma(text)
    return text


def _with_comma(path: str) -> UsageError:
    return UsageError(
        f"{path!r} has a comma in it, which stands between paths", "name it by a glob, with ? for the comma"
    )
