"""What may be meant by a word that is mistyped, cut short, or another tool's."""

import difflib
from collections.abc import Iterable
from typing import Final

_SIMILAR_MIN: Final = 0.6
"""How similar a word must be to one that is known to be taken for it, from 0 to 1 (`difflib`)."""


def nearest(typed: str, known: Iterable[str]) -> str | None:
    """Return which of the known words is meant: one that `typed` is a part of, or that is similar. None: none is."""
    names = list(known)
    return related(typed, names) or _similar(typed, names)


def one_of(what: str, typed: str, known: Iterable[str]) -> str:
    """Return the hint of an error about a word that is none of the known ones: what there is, and which is near."""
    names = list(known)
    near = nearest(typed, names)
    return f"the {what} are {', '.join(names)}" + (f"; did you mean {near}?" if near is not None else "")


def related(typed: str, known: Iterable[str]) -> str | None:
    """Return the one known word that `typed` is the beginning of, or whole parts of (`--offset` of `--from-offset`), or
    that is whole parts of it (`--bootstrap` of `--bootstrap-server`). None: it is so of none, or of several."""
    word = _plain(typed)
    plain = {each: _plain(each) for each in known}
    is_begun = [each for each, name in plain.items() if len(word) > 1 and name.startswith(word)]
    in_parts = [each for each, name in plain.items() if f"-{word}-" in f"-{name}-" or f"-{name}-" in f"-{word}-"]
    return next((found[0] for found in (is_begun, in_parts) if len(found) == 1), None)


def _similar(typed: str, known: Iterable[str]) -> str | None:
    plain = {_plain(each): each for each in known}
    found = difflib.get_close_matches(_plain(typed), plain, n=1, cutoff=_SIMILAR_MIN)
    return plain[found[0]] if found else None


def _plain(word: str) -> str:
    """Dashes in front are the same with all options, and would make them alike."""
    return word.lower().lstrip("-").replace("_", "-")
