"""The rules of Chrome's trace event format that Perfetto relies on, as assertions."""

import json
from collections import defaultdict
from typing import Any

Event = dict[str, Any]


def ns(us: float) -> int:
    return round(us * 1000)


def check(trace: dict[str, Any]) -> None:
    """Everything below, of a trace that went through JSON."""
    trace = json.loads(json.dumps(trace))
    events: list[Event] = trace["traceEvents"]
    assert trace["displayTimeUnit"] in ("ms", "ns")
    for event in events:
        assert event["ph"] in ("M", "X", "s", "f")
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] != "M":
            assert event["ts"] >= 0
    check_names(events)
    check_nesting(events)
    check_arrows(events)


def check_names(events: list[Event]) -> None:
    """Every process and thread that has a slice is named, once."""
    named: dict[tuple[str, int, int], int] = defaultdict(int)
    for event in events:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            assert event["args"]["name"]
            named[event["name"], event["pid"], event["tid"]] += 1
    assert set(named.values()) <= {1}
    for event in events:
        if event["ph"] == "X":
            assert ("process_name", event["pid"], 0) in named
            assert ("thread_name", event["pid"], event["tid"]) in named


def check_nesting(events: list[Event]) -> None:
    """Slices of one thread lie apart or within one another."""
    rows: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            began = ns(event["ts"])
            rows[event["pid"], event["tid"]].append((began, ns(event["ts"] + event["dur"])))
    for row in rows.values():
        open_ends: list[int] = []
        for began, ended in sorted(row, key=lambda slice_: (slice_[0], -slice_[1])):
            while open_ends and open_ends[-1] <= began:
                open_ends.pop()
            assert not open_ends or ended <= open_ends[-1], "a slice reaches out of the one that it began in"
            open_ends.append(ended)


def check_arrows(events: list[Event]) -> None:
    """An arrow has a tail and a head, later, of one name; both lie in slices."""
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    arrows: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((ns(event["ts"]), ns(event["ts"] + event["dur"])))
        elif event["ph"] in ("s", "f"):
            arrows[event["id"]].append(event)
    for tail, head in arrows.values():
        assert (tail["ph"], head["ph"], head["bp"]) == ("s", "f", "e")
        assert (tail["name"], tail["cat"]) == (head["name"], head["cat"])
        assert tail["ts"] <= head["ts"]
        assert tail["pid"] != head["pid"]
        for end in (tail, head):
            at = ns(end["ts"])
            assert any(began <= at <= ended for began, ended in slices[end["pid"], end["tid"]])
