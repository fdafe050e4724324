"""The end of several things of which each has one of its own: one that fails keeps none of the others open."""

from collections.abc import Callable, Iterable


def end_all(ends: Iterable[Callable[[], object]]) -> None:
    """Call every one of them, in order. The first exception is raised when all were called, with the others' words as
    its notes."""
    failures: list[BaseException] = []
    for end in ends:
        try:
            end()
        except BaseException as error:
            failures.append(error)
    raise_first(failures)


def raise_first(failures: Iterable[BaseException]) -> None:
    """Raise the first of these, if there is one, with the others' words as its notes."""
    found = list(failures)
    if not found:
        return
    for other in found[1:]:
        found[0].add_note(f"and then: {type(other).__name__}: {other}")
    raise found[0]
