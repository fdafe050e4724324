"""A plan of where replicas are to be: the JSON file that kafka-reassign-partitions takes. Text in, values out.

Source: KIP-455; Kafka `ReassignPartitionsCommand`.
"""

import itertools
import json
from typing import Any, Final, NamedTuple, TypeGuard

from fastquorum.errors import UsageError
from fastquorum.small_files import read_small_file
from fastquorum.types import NodeId

VERSION: Final = 1
BYTES_MAX: Final = 1 << 28
"""Largest plan: some hundred bytes for each partition of the largest cluster."""
_ANY_DIRECTORY: Final = "any"
_INT32_MAX: Final = 2**31 - 1


class Planned(NamedTuple):
    """One partition and its planned replicas, the preferred leader first."""

    topic: str
    partition: int
    replicas: tuple[NodeId, ...]

    @property
    def name(self) -> str:
        """The partition as Kafka's tools write it."""
        return f"{self.topic}-{self.partition}"


def read_plan(path: str) -> list[Planned]:
    """Read the plan in a file, sorted by topic and partition. UsageError names the file and the fault."""
    try:
        data = read_small_file(path, BYTES_MAX)
    except UsageError as error:
        raise UsageError(f"{path} {error.detail}", error.hint) from error
    try:
        return parse_plan(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file: {error}") from error
    except (ValueError, RecursionError) as error:
        hint = 'expected {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2,3]}]}'
        raise UsageError(f"{path} is not a reassignment plan: {error}", hint) from error


def parse_plan(text: str) -> list[Planned]:
    """ValueError says what is wrong."""
    plan = json.loads(text)
    if not isinstance(plan, dict):
        raise ValueError("it is not a JSON object")
    if plan.get("version", VERSION) != VERSION:
        raise ValueError(f"version {plan['version']!r} is not {VERSION}")
    listed = plan.get("partitions")
    if not isinstance(listed, list) or not listed:
        raise ValueError("it lists no partitions")
    planned = sorted(_planned(number, each) for number, each in enumerate(listed))
    for before, after in itertools.pairwise(planned):
        if before[:2] == after[:2]:
            raise ValueError(f"{after.name} is listed twice")
    return planned


def _planned(number: int, listed: Any) -> Planned:
    if not isinstance(listed, dict):
        raise ValueError(f"partitions[{number}] is not a JSON object")
    topic, partition, replicas = (listed.get(key) for key in ("topic", "partition", "replicas"))
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"partitions[{number}] has no topic")
    if not _is_number(partition):
        raise ValueError(f"partitions[{number}], of {topic}, has no partition number")
    if not isinstance(replicas, list) or not replicas or not all(_is_number(each) for each in replicas):
        raise ValueError(f"{topic}-{partition} has no list of replicas")
    if len(set(replicas)) < len(replicas):
        raise ValueError(f"{topic}-{partition} has a replica twice: {replicas}")
    _check_directories(f"{topic}-{partition}", replicas, listed.get("log_dirs"))
    return Planned(topic, partition, tuple(replicas))


def _check_directories(name: str, replicas: list[NodeId], directories: Any) -> None:
    """A controller moves replicas between brokers; which directory of a broker has one is the broker's to change."""
    if directories is None:
        return
    if not isinstance(directories, list) or len(directories) != len(replicas):
        raise ValueError(f"{name} does not have one of log_dirs for each replica")
    named = [each for each in directories if each != _ANY_DIRECTORY]
    if named:
        raise ValueError(
            f'{name} names the directory {named[0]!r}: only "{_ANY_DIRECTORY}" can be asked of a controller'
        )


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT32_MAX
