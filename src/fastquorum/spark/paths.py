"""Several paths as one text, as the data source's option `path` has them: with commas between."""

from collections.abc import Iterable

from fastquorum.errors import UsageError


def joined(paths: Iterable[str]) -> str:
    """These as one, where each is given by itself. UsageError if one has a comma in it, which would be two paths."""
    found = list(paths)
    for each in found:
        if "," in each:
            raise UsageError(
                f"{each!r} has a comma in it, which stands between paths", "name it by a glob, with ? for the comma"
            )
    return ",".join(found)
