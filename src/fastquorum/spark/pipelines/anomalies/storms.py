"""What happens too often: elections of the quorum, brokers that go, elections of partitions, ISRs that shrink."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.anomalies.counting import Burst, counts_within, minutes, stretches
from fastquorum.spark.pipelines.anomalies.findings import Anomaly, AnomalyKind, when
from fastquorum.spark.pipelines.anomalies.log import AnomalyLog
from fastquorum.spark.pipelines.anomalies.settings import AnomalySettings
from fastquorum.spark.pipelines.carrying import UNSAID, Ints, carried, pairs

_ACTIVE: Final = -1
_FENCED: Final = 1


class Events(NamedTuple):
    """Something that happened often or not: rows of the log, by subject, then time."""

    subjects: Ints
    rows: Ints

    def stretches(self, log: AnomalyLog, settings: AnomalySettings, least: int) -> list[Burst]:
        return stretches(
            self.subjects, log.times_ms[self.rows], log.lasted_ms, settings.window_ms, least, settings.chance
        )

    def peak(self, log: AnomalyLog, window_ms: int) -> int:
        """Return the most events that one subject had in a window."""
        if len(self.rows) == 0:
            return 0
        return int(counts_within(self.subjects, log.times_ms[self.rows], window_ms).max())


# --- the quorum -------------------------------------------------------------------------------------------------------


def quorum_elections(log: AnomalyLog) -> Events:
    rows = np.flatnonzero(log.is_of(signals.LEADER_CHANGE))
    return Events(np.zeros_like(rows), rows)


def election_storms(log: AnomalyLog, events: Events, settings: AnomalySettings) -> Iterator[Anomaly]:
    for each in events.stretches(log, settings, settings.quorum_elections_min):
        rows = events.rows[each.begin : each.end]
        text = (
            f"{len(rows)} elections of the quorum's leader {_between(log, rows)}, epochs {log.epochs[rows[0]]} to "
            f"{log.epochs[rows[-1]]}: {_rule(each, settings, settings.quorum_elections_min)}"
        )
        yield _finding(
            AnomalyKind.ELECTION_STORM, "quorum", log, rows, each, settings, settings.quorum_elections_min, text
        )


# --- brokers ----------------------------------------------------------------------------------------------------------


def departures(log: AnomalyLog) -> Events:
    """Find where a broker ceased to be active: it was fenced, or registered anew while it was not fenced."""
    kinds = (signals.REGISTER, signals.BROKER_CHANGE, signals.FENCE, signals.UNFENCE)
    rows = np.flatnonzero(log.is_of(*kinds))
    brokers, fenced = log.column("number", rows, -1), log.column("fenced", rows, 0)
    is_registration = log.is_of(signals.REGISTER)[rows]
    states: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for row, broker, fencing, registers in zip(
        rows.tolist(), brokers.tolist(), fenced.tolist(), is_registration.tolist(), strict=True
    ):
        before = states.get(broker)
        if fencing == _FENCED and (before == _ACTIVE or (before is None and not registers)):
            found.append((broker, row))
        if fencing:
            states[broker] = fencing
    found.sort()
    return Events(np.array([each[0] for each in found], np.int64), np.array([each[1] for each in found], np.int64))


def flapping_brokers(log: AnomalyLog, events: Events, settings: AnomalySettings) -> Iterator[Anomaly]:
    for each in events.stretches(log, settings, settings.flaps_min):
        rows = events.rows[each.begin : each.end]
        text = (
            f"broker {each.subject} went {len(rows)} times {_between(log, rows)}: "
            f"{_rule(each, settings, settings.flaps_min)}"
        )
        found = _finding(AnomalyKind.FLAPPING_BROKER, "broker", log, rows, each, settings, settings.flaps_min, text)
        yield found._replace(broker_id=each.subject)


# --- partitions -------------------------------------------------------------------------------------------------------


class PartitionEvents(NamedTuple):
    """What happened to each partition. Subjects are places in `topics` and `numbers`."""

    topics: list[str]
    """Ids."""
    of: Ints
    """The topic of each partition."""
    numbers: Ints
    elections: Events
    shrinks: Events


def partitions(log: AnomalyLog) -> PartitionEvents:
    """Find elections and ISR shrinks of partitions. A leader after a time without one is an election, too."""
    rows = np.flatnonzero(log.is_of(signals.PARTITION, signals.PARTITION_CHANGE))
    ids = log.table["id"].take(pa.array(rows)).combine_chunks().dictionary_encode()
    topics, numbers, _, owners = pairs(np.asarray(ids.indices.fill_null(0), np.int64), log.column("number", rows, 0))
    order = np.lexsort((rows, owners))
    rows, owners = rows[order], owners[order]
    starts = np.searchsorted(owners, np.arange(len(topics)))
    is_first = np.zeros(len(rows), np.bool_)
    is_first[starts] = True
    events = []
    for name in ("leader", "isr"):
        stated = log.column(name, rows, UNSAID)
        held = carried(stated, starts)
        before = np.where(is_first, UNSAID, np.roll(held, 1))
        is_known = (stated != UNSAID) & (before != UNSAID)
        happened = (stated >= 0) & (stated != before) if name == "leader" else stated < before
        events.append(Events(owners[is_known & happened], rows[is_known & happened]))
    return PartitionEvents(ids.dictionary.to_pylist(), topics, numbers, *events)


def partition_storms(log: AnomalyLog, known: PartitionEvents, settings: AnomalySettings) -> Iterator[Anomaly]:
    """Find storms of elections and ISR shrinks. Those at the same time are one finding, which names the worst."""
    for kind, events, least, what in (
        (AnomalyKind.ELECTION_STORM, known.elections, settings.partition_elections_min, "changed its leader"),
        (AnomalyKind.ISR_CHURN, known.shrinks, settings.shrinks_min, "lost members of its ISR"),
    ):
        for together in _at_once(events.stretches(log, settings, least), log, events):
            worst = max(together, key=lambda each: (each.peak, -each.subject))
            rows = np.sort(np.concatenate([events.rows[each.begin : each.end] for each in together]))
            own = events.rows[worst.begin : worst.end]
            topic_id = known.topics[known.of[worst.subject]]
            topic, number = log.names.get(topic_id), int(known.numbers[worst.subject])
            more = f"; so did {len(together) - 1} more partitions, less often" if len(together) > 1 else ""
            text = (
                f"partition {topic or topic_id}-{number} {what} {len(own)} times {_between(log, own)}: "
                f"{_rule(worst, settings, least)}{more}"
            )
            found = _finding(kind, "partitions", log, rows, worst, settings, least, text)
            yield found._replace(topic=topic, topic_id=topic_id, partition=number, subjects=len(together))


def _at_once(found: Sequence[Burst], log: AnomalyLog, events: Events) -> Iterator[list[Burst]]:
    """Group bursts that overlap in time."""

    def span(each: Burst) -> tuple[int, int]:
        begin, last = log.times_ms[events.rows[[each.begin, each.end - 1]]].tolist()
        return begin, last

    together: list[Burst] = []
    until = 0
    for each in sorted(found, key=span):
        begin, last = span(each)
        if together and begin > until:
            yield together
            together = []
        until = max(until, last) if together else last
        together.append(each)
    if together:
        yield together


# --- words ------------------------------------------------------------------------------------------------------------


def _between(log: AnomalyLog, rows: Ints) -> str:
    begin, end = log.times_ms[rows[[0, -1]]].tolist()
    return f"within {minutes(end - begin)}, from {when(begin)} on"


def _rule(each: Burst, settings: AnomalySettings, least: int) -> str:
    return (
        f"{each.peak} in a window of {minutes(settings.window_ms)}, where {least} are too many and {each.usual:.2g} "
        f"are usual; {chance_words(each.chance)}"
    )


def chance_words(chance: float) -> str:
    if chance < 1e-9:
        return "by chance in fewer than one of 10^9 such logs (Poisson)"
    return f"by chance in one of {1 / chance:,.0f} such logs (Poisson)"


def _finding(
    kind: AnomalyKind,
    of: str,
    log: AnomalyLog,
    rows: Ints,
    each: Burst,
    settings: AnomalySettings,
    least: int,
    text: str,
) -> Anomaly:
    begin, end = log.times_ms[rows[[0, -1]]].tolist()
    first, last = log.offsets[rows[[0, -1]]].tolist()
    numbers = each.peak, each.usual, least
    return Anomaly(kind, of, begin, end, first, last + 1, *numbers, text, settings.window_ms, each.chance)
