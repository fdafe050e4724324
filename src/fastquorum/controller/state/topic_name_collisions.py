"""Topics that metrics cannot tell apart: their names are the same with `_` for every `.`.

Derived from the image, changed with its topics, dropped with the lead; made at the first use. Source: Kafka
`ReplicationControlManager.topicsWithCollisionChars`.
"""

from collections.abc import Callable, Iterable

from fastquorum.controller.image.topics import Topics


class TopicNameCollisions:
    """Names of topics that collide in metrics; mutable; belongs to the active controller."""

    def __init__(self, topics: Callable[[], Topics]) -> None:
        """Take a function that returns the present topics; `update` reports each later change."""
        self._now = topics
        self._names: dict[str, dict[str, None]] | None = None
        """The names with a `.` or a `_`, by their common form; None until the first use."""

    def taken(self, name: str) -> str | None:
        """Return a present topic with this name or one that collides with it; None if there is none."""
        if not _can_be_alike(name):
            return None
        if self._names is None:
            self._names = {}
            self.update((), self._now().ids)
        return min(self._names.get(_common(name), ()), default=None)

    def update(self, gone: Iterable[str], made: Iterable[str]) -> None:
        """Note that topics were removed, then others made."""
        names = self._names
        if names is None:
            return
        for name in filter(_can_be_alike, gone):
            rest = names[_common(name)]
            del rest[name]
            if not rest:
                del names[_common(name)]
        for name in filter(_can_be_alike, made):
            names.setdefault(_common(name), {})[name] = None


def _can_be_alike(name: str) -> bool:
    return "." in name or "_" in name


def _common(name: str) -> str:
    return name.replace(".", "_")
