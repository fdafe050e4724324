"""Logs whose nodes run: what is read of one while its node removes or cuts off what was found is of two moments, and
says nothing. So it is read again.

A node that appends and rolls changes nothing that was found before. Retention removes segments and snapshots, and a
leader makes a follower cut off its end, below its durable mark, which the node lowers first; by the time that all is
read it may have raised that again. And logs and marks of several nodes are read one after the other. So whatever
accuses one is looked at again, too, if any node has gone on meanwhile.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from fastquorum.errors import DirectoryError
from fastquorum.spark.stored.logs import FoundLog, FoundLogs, find_all
from fastquorum.spark.stored.store_disk import durable_mark_of
from fastquorum.spark.stored.stores import store_of
from fastquorum.storage import names
from fastquorum.storage.log.mark import Mark
from fastquorum.types import Offset

T = TypeVar("T")
LOOKS_MAX: Final = 5
"""So often a log is read before it is given up."""


class _Moment(NamedTuple):
    """What must not go while a log is read."""

    log: FoundLog
    mark: Mark | None
    """Its durable mark; None: there is none that can be read."""

    @property
    def durable_end(self) -> Offset | None:
        return None if self.mark is None else self.mark.at.offset


def settled(
    find_logs: Callable[[], FoundLogs],
    look: Callable[[FoundLogs], T],
    is_of_two_moments: Callable[[T], bool] | None = None,
) -> T:
    """Return what `look` makes of logs, where all that was found was there from the look's beginning to its end.
    `is_of_two_moments`: whether a result may only show that a node has gone on while its log or another one was read;
    if a node has, the logs are looked at again, as often as LOOKS_MAX says.

    Raises:
        DirectoryError: of one log something had gone, each of LOOKS_MAX times.
    """
    for nth in range(LOOKS_MAX):
        found = find_logs()
        before = [_Moment(log, durable_mark_of(log)) for log in _logs(found)]
        result = look(found)
        gone = next((text for text in map(_gone, before) if text), None)
        is_doubtful = is_of_two_moments is not None and nth + 1 < LOOKS_MAX and is_of_two_moments(result)
        if gone is None and not (is_doubtful and any(map(_has_gone_on, before))):
            return result
    raise DirectoryError(f"{gone}, each of {LOOKS_MAX} times: its node runs", "read a copy of the directory")


def settled_at(paths: Iterable[str], look: Callable[[], T], is_of_two_moments: Callable[[T], bool] | None = None) -> T:
    """Call `look`, which finds the logs at these paths by itself, as `settled` does."""

    def found() -> FoundLogs:
        each = [find_all(path) for path in paths]
        return FoundLogs([log for one in each for log in one.logs], [fault for one in each for fault in one.faults])

    return settled(found, lambda _: look(), is_of_two_moments)


def _logs(found: FoundLogs) -> Iterable[FoundLog]:
    return [*found.logs, *(each.log for each in found.faults if each.log is not None)]


def _gone(moment: _Moment) -> str | None:
    """Return what was removed since; None: nothing."""
    log = moment.log
    found = [*(each.path for each in log.segments), *(each.path for each in log.checkpoints)]
    if not found:
        return None
    try:
        there = {each.path for each in store_of(log.log_directory).entries(log.log_directory)}
    except DirectoryError:
        there = set()
    for path in found:
        if path not in there:
            return f"{path} was removed while it was read"
    mark = durable_mark_of(log)
    now = None if mark is None else mark.at.offset
    if moment.durable_end is not None and (now is None or now < moment.durable_end):
        return f"{log.directory} was cut off below offset {moment.durable_end} while it was read"
    return None


def _has_gone_on(moment: _Moment) -> bool:
    """Return whether its node has written since, as far as files show it: a mark, or a segment of another size."""
    log = moment.log
    try:
        there = store_of(log.log_directory).entries(log.log_directory)
    except DirectoryError:
        return True
    sizes = {each.path: each.size_bytes for each in there if names.parse_segment(each.name) is not None}
    return sizes != {each.path: each.size_bytes for each in log.segments} or durable_mark_of(log) != moment.mark
