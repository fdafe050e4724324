"""The Grafana dashboard: whole, and asking for nothing that is not there."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from fastquorum.observe.catalogue import dashboard
from fastquorum.observe.exposition import ALL
from tests.cli.conftest import Ran

_METRIC = re.compile(r"\b((?:kafka|fastquorum|process)_[a-z0-9_]+)\b")
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


def metrics_queried(text: str) -> set[str]:
    """In every expression, of panels, variables and annotations."""
    return {name for expression in _expressions(json.loads(text)) for name in _METRIC.findall(expression)}


def _expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(node, list):
        for each in node:
            yield from _expressions(each)


def test_it_asks_for_metrics_that_exist() -> None:
    known = {each.name + suffix for each in ALL for suffix in _SUFFIXES.get(each.kind, ("",))}
    assert metrics_queried(dashboard()) <= known


def test_panels_are_apart_and_each_asks_and_says_what_it_shows() -> None:
    panels = json.loads(dashboard())["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["title"]
            assert panel["targets"]
            assert all(each["expr"].count("(") == each["expr"].count(")") for each in panel["targets"])


def test_the_command_prints_it(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("metrics", "grafana")
    assert (ran.code, ran.out) == (0, dashboard())


def test_the_command_lists_every_metric(fastquorum: Callable[..., Ran]) -> None:
    listed = [json.loads(line) for line in fastquorum("metrics", "list", "--format", "json").out.splitlines()]
    assert [each["name"] for each in listed] == [each.name for each in ALL]
    assert all(each["help"] and each["type"] in ("gauge", "counter", "summary", "histogram") for each in listed)
    assert "kafka_server_raft_metrics_current_epoch" in fastquorum("metrics", "list").out
