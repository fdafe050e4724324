"""Recorded groups in Chrome's trace event format, as Perfetto shows them.

A node is a process. Its groups are slices in as few rows as they fit into side by side; within each lie the stages
that it passed, one after the other in time. A sync is a slice in a row of its own. Arrows lead from the leader's
sending of a group to its arrival at a follower, and from that one's acknowledgement to the leader's count of a
majority.
Source: "Trace Event Format" (Chrome's catapult project): events M, X, s, f.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from fastquorum.kernels.stages import Nanos, TracedGroup
from fastquorum.types import NodeId
from fastquorum.version import __version__

Event = dict[str, Any]

_SYNCS: Final = 1
_FIRST_ROW: Final = 10
_LEADERS: Final = (
    ("written_ns", "until written"),
    ("sent_ns", "until sent"),
    ("syncing_ns", "until its sync begins"),
    ("flushed_ns", "until synced here"),
    ("acked_ns", "until a majority has it"),
    ("committed_ns", "until committed"),
    ("resolved_ns", "until reported"),
)
_FOLLOWERS: Final = (
    ("written_ns", "until written"),
    ("syncing_ns", "until its sync begins"),
    ("flushed_ns", "until synced here"),
    ("sent_ns", "until acknowledged"),
    ("committed_ns", "until known to be committed"),
)


class _Placed(NamedTuple):
    """A group, and the row that it is drawn in."""

    group: TracedGroup
    row: int
    ended_ns: Nanos


def chrome_trace(
    nodes: Mapping[NodeId, Sequence[TracedGroup]], lost: Mapping[NodeId, int] | None = None
) -> dict[str, Any]:
    """The whole, as JSON values. `lost`: how many groups each node had recorded before these."""
    begin = min((group.append_ns for groups in nodes.values() for group in groups), default=0)
    placed = {node_id: _placed(groups) for node_id, groups in nodes.items()}
    events: list[Event] = []
    for node_id, groups in placed.items():
        events += _names(node_id, groups)
        for each in groups:
            events += _slices(node_id, each, begin)
        events += _syncs(node_id, groups, begin)
    events += _arrows(placed, begin)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "producer": f"fastquorum {__version__}",
            "clock": "monotonic",
            "begin_ns": str(begin),
            "lost_batches": {str(node_id): count for node_id, count in (lost or {}).items()},
        },
    }


def _stamps(group: TracedGroup) -> list[tuple[Nanos, str]]:
    """The stages that it has passed, in the order of time, each by what ended with it."""
    names = _LEADERS if group.is_leader else _FOLLOWERS
    known = [(getattr(group, field), name) for field, name in names]
    # Of those at the same time the earlier stage is the one that took it.
    return sorted(((at_ns, name) for at_ns, name in known if at_ns >= group.append_ns), key=itemgetter(0))


def _placed(groups: Sequence[TracedGroup]) -> list[_Placed]:
    """Each in the first row where nothing else is at that time."""
    rows: list[Nanos] = []
    placed = []
    for group in sorted(groups, key=lambda each: each.append_ns):
        ended = _stamps(group)[-1][0]
        row = next((row for row, free in enumerate(rows) if free <= group.append_ns), len(rows))
        rows[row : row + 1] = [ended]
        placed.append(_Placed(group, row, ended))
    return placed


def _names(node_id: NodeId, groups: Sequence[_Placed]) -> Iterator[Event]:
    yield _meta(node_id, 0, "process_name", f"node {node_id}")
    yield _meta(node_id, 0, "process_sort_index", node_id)
    yield _meta(node_id, _SYNCS, "thread_name", "syncs")
    for row in range(max((each.row for each in groups), default=-1) + 1):
        yield _meta(node_id, _FIRST_ROW + row, "thread_name", "batches" if row == 0 else f"batches {row + 1}")
        yield _meta(node_id, _FIRST_ROW + row, "thread_sort_index", _FIRST_ROW + row)


def _meta(node_id: NodeId, thread: int, what: str, value: str | int) -> Event:
    key = "name" if what.endswith("_name") else "sort_index"
    return {"ph": "M", "pid": node_id, "tid": thread, "name": what, "args": {key: value}}


def _slices(node_id: NodeId, each: _Placed, begin: Nanos) -> Iterator[Event]:
    group, thread = each.group, _FIRST_ROW + each.row
    count = group.end_offset - group.base_offset
    name = f"{group.base_offset}" if count == 1 else f"{group.base_offset} to {group.end_offset - 1}"
    values = {"records": count, "epoch": group.epoch, "role": "leader" if group.is_leader else "follower"}
    yield _slice(node_id, thread, name, group.append_ns, each.ended_ns, begin, **values)
    before = group.append_ns
    for at_ns, stage in _stamps(group):
        if at_ns > before:
            yield _slice(node_id, thread, stage, before, at_ns, begin)
        before = at_ns


def _syncs(node_id: NodeId, groups: Sequence[_Placed], begin: Nanos) -> Iterator[Event]:
    """Groups that one sync covers tell of it alike."""
    ends: dict[tuple[Nanos, Nanos], int] = {}
    for each in groups:
        group = each.group
        if group.syncing_ns and group.flushed_ns:
            sync = group.syncing_ns, group.flushed_ns
            ends[sync] = max(ends.get(sync, 0), group.end_offset)
    last = 0
    for (began, ended), end_offset in sorted(ends.items()):
        if began >= last:
            yield _slice(node_id, _SYNCS, f"sync up to {end_offset}", began, ended, begin)
            last = ended


def _slice(node_id: NodeId, thread: int, name: str, from_ns: Nanos, to_ns: Nanos, begin: Nanos, **values: Any) -> Event:
    return {
        "ph": "X",
        "pid": node_id,
        "tid": thread,
        "cat": "commit",
        "name": name,
        "ts": (from_ns - begin) / 1000,
        "dur": (to_ns - from_ns) / 1000,
        "args": values,
    }


def _arrows(placed: Mapping[NodeId, Sequence[_Placed]], begin: Nanos) -> Iterator[Event]:
    """Between a leader's group and where it arrived, if both were recorded."""
    number = 0
    followed = {
        node_id: sorted((each for each in groups if not each.group.is_leader), key=lambda one: one.group.base_offset)
        for node_id, groups in placed.items()
    }
    bases = {node_id: [each.group.base_offset for each in groups] for node_id, groups in followed.items()}
    for leader_id, groups in placed.items():
        for led in groups:
            if not (led.group.is_leader and led.group.sent_ns):
                continue
            for node_id, there in followed.items():
                found = _arrived(led.group, there, bases[node_id]) if node_id != leader_id else None
                if found is None:
                    continue
                sent = max(led.group.written_ns, min(led.group.sent_ns, found.group.append_ns))
                yield from _arrow(
                    "ships", number, (leader_id, led.row, sent), (node_id, found.row, found.group.append_ns), begin
                )
                number += 1
                acked = found.group.sent_ns, led.group.acked_ns
                if 0 < acked[0] <= acked[1]:
                    yield from _arrow(
                        "acknowledges", number, (node_id, found.row, acked[0]), (leader_id, led.row, acked[1]), begin
                    )
                    number += 1


def _arrived(group: TracedGroup, there: Sequence[_Placed], bases: Sequence[int]) -> _Placed | None:
    """The follower's group that begins with, or holds, the leader's first record; by which it was written."""
    place = bisect_right(bases, group.base_offset) - 1
    if place < 0:
        return None
    found = there[place].group
    is_same = group.base_offset < found.end_offset and found.epoch == group.epoch
    return there[place] if is_same and found.append_ns >= group.written_ns else None


def _arrow(
    name: str, number: int, tail: tuple[NodeId, int, Nanos], head: tuple[NodeId, int, Nanos], begin: Nanos
) -> Iterator[Event]:
    for phase, (node_id, row, at_ns) in (("s", tail), ("f", head)):
        event: Event = {
            "ph": phase,
            "pid": node_id,
            "tid": _FIRST_ROW + row,
            "cat": "commit",
            "name": name,
            "id": number,
            "ts": (at_ns - begin) / 1000,
        }
        if phase == "f":
            event["bp"] = "e"
        yield event
