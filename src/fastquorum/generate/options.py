"""The options: how they are written, and whether they can be satisfied. It touches no files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fastquorum.errors import UsageError
from fastquorum.generate.kinds import Kind, Room, room_of
from fastquorum.meant import one_of
from fastquorum.types import VOTERS_MAX, is_whole

START_MS: Final = 1_767_225_600_000
"""2026-01-01T00:00:00Z: when every log begins, unless another time is given."""
FAULT_HOURS_MIN: Final = 6
FAULT_BROKERS_MIN: Final = 4
"""Fewest brokers with faults: one more than the replicas of a partition."""
SLOT_MINUTES: Final = 100
"""Time of a story or a wrong record: an hour at most, and a calm time before and after it."""
FAULTS_FROM, FAULTS_TO = 0.3, 0.97
"""The part of the time in which anything is planted: after the cluster was set up and the log's beginning was removed,
and before the end."""
_SPAN: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_LARGEST: Final = {"brokers": 5_000, "partitions": 10_000_000, "clusters": 10_000, "hours": 24 * 366}


class Span(NamedTuple):
    """A range, both ends included; each cluster has its own number from it."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """See `fastquorum generate --help`."""

    brokers: Span
    """The brokers of each cluster."""
    partitions: Span
    """The partitions of each cluster, at its end."""
    hours: int
    seed: int
    clusters: int = 1
    replicas: int = 3
    """Voters, and so directories, of each cluster."""
    faults: Mapping[Kind, int] = field(default_factory=dict)
    """The number of each kind, over all clusters."""
    start_ms: int = START_MS
    keeps_log: bool = False
    """Whether the log keeps its beginning, at offset 0."""

    @property
    def slots(self) -> int:
        """The number of stories and wrong records that one cluster can hold."""
        return int((FAULTS_TO - FAULTS_FROM) * self.hours * 60) // SLOT_MINUTES

    @property
    def minority(self) -> int:
        """The number of replicas of one cluster that may be damaged: a majority is not."""
        return (self.replicas - 1) // 2

    def room_for(self, kind: Kind) -> int:
        """Return how many faults of this kind's room one cluster can have."""
        return {Room.REPLICA: self.minority, Room.TIME: self.slots, Room.SNAPSHOT: len(Kind)}[room_of(kind)]


def parse_span(text: str, name: str) -> Span:
    """Parse `N` or `N-M`. UsageError."""
    match = _SPAN.fullmatch(text)
    if match is None or not all(is_whole(part) for part in match.groups() if part):
        raise UsageError(f"--{name}: {text!r} is not N or N-M", "as in 100, or 1-100: each cluster draws its own")
    least = int(match[1])
    return Span(least, int(match[2]) if match[2] else least)


def parse_faults(text: str) -> dict[Kind, int]:
    """Parse `KIND[=COUNT],...`, `all` (one of each kind, or `all=COUNT`) or `none`. UsageError that lists the kinds."""
    found: dict[Kind, int] = {}
    for part in (each.strip() for each in text.split(",")):
        name, equals, count = part.partition("=")
        if equals and not is_whole(count):
            raise UsageError(f"--faults: {part!r} has no count", "write KIND=COUNT")
        number = int(count) if equals else 1
        if name == "none":
            continue
        if name == "all":
            found |= dict.fromkeys(Kind, number)
        elif name in list(Kind):
            found[Kind(name)] = number
        else:
            raise UsageError(f"--faults: there is no kind {name!r}", one_of("kinds", name, [*Kind, "all", "none"]))
    return {kind: found[kind] for kind in Kind if found.get(kind)}


def check(options: GenerateOptions) -> None:
    """Raise UsageError if the options cannot be satisfied, with what could."""
    for name in ("brokers", "partitions"):
        span = getattr(options, name)
        _check_number(name, span.least)
        _check_number(name, span.most)
        if span.most < span.least:
            raise UsageError(f"--{name}: {span.least}-{span.most} runs backwards")
    _check_number("clusters", options.clusters)
    _check_number("hours", options.hours)
    if not 1 <= options.replicas <= VOTERS_MAX:
        raise UsageError(f"--replicas: {options.replicas} is not from 1 to {VOTERS_MAX}")
    if options.faults:
        _check_faults(options)


def _check_number(name: str, number: int) -> None:
    if not 1 <= number <= _LARGEST[name]:
        raise UsageError(f"--{name}: {number} is not from 1 to {_LARGEST[name]:,}")


def _check_faults(options: GenerateOptions) -> None:
    if options.hours < FAULT_HOURS_MIN:
        raise UsageError(f"--faults: {options.hours} hours are too short", f"give --hours {FAULT_HOURS_MIN} or more")
    if options.brokers.least < FAULT_BROKERS_MIN:
        text = f"--faults: {options.brokers.least} brokers are too few for a fault that causes no others"
        raise UsageError(text, f"give --brokers {FAULT_BROKERS_MIN} or more")
    _check_room(options)


def _check_room(options: GenerateOptions) -> None:
    damaged = sum(count for kind, count in options.faults.items() if room_of(kind) is Room.REPLICA)
    if damaged and not options.minority:
        text = f"--faults: with {options.replicas} replica(s) a damaged one leaves no majority"
        raise UsageError(text, "give --replicas 3 or more")
    if damaged > options.clusters * options.minority:
        text = f"--faults: {damaged} damaged replicas do not fit: a cluster can have {options.minority}"
        raise UsageError(text, f"give --clusters {-(-damaged // options.minority)}")
    timed = sum(count for kind, count in options.faults.items() if room_of(kind) is Room.TIME)
    if timed > options.clusters * options.slots:
        text = f"--faults: {timed} stories and wrong records do not fit: a cluster has time for {options.slots}"
        raise UsageError(text, f"give --clusters {-(-timed // options.slots)}, or more --hours")
    for kind, count in options.faults.items():
        if count > options.clusters:
            raise UsageError(f"--faults: a cluster can have one {kind}, not {count}", f"give --clusters {count}")
