"""Broker registrations, record by record: their epochs, and what each broker was from which row on.

Brokers are few and change seldom. Source: KIP-380, KIP-631; Kafka `ClusterControlManager`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fastquorum.spark.pipelines.carrying import Ints, ValueHistory
from fastquorum.spark.pipelines.invariants.facts import CODES, codes_of
from fastquorum.spark.pipelines.invariants.findings import FindingKind, LogFinding

REGISTER: Final = "REGISTER_BROKER_RECORD"
UNREGISTER: Final = "UNREGISTER_BROKER_RECORD"
TYPES: Final = (
    REGISTER,
    UNREGISTER,
    "BROKER_REGISTRATION_CHANGE_RECORD",
    "FENCE_BROKER_RECORD",
    "UNFENCE_BROKER_RECORD",
)
_STATED_BY_TYPE: Final = {"FENCE_BROKER_RECORD": 1, "UNFENCE_BROKER_RECORD": -1}
ACTIVE: Final = 1
SHUTTING_DOWN: Final = 2
FENCED: Final = 3
GONE: Final = 4
WORDS: Final = ("not registered", "active", "in controlled shutdown", "fenced", "not registered")
"""State of a broker, by number; 0 where no record states it."""


class BrokerStates(NamedTuple):
    """States of brokers over time."""

    states: ValueHistory
    """States of each broker, by its id."""
    turns: ValueHistory
    """Rows where a broker ceased to be one that may lead: it was fenced or unregistered, and had not been before."""


@dataclass(slots=True)
class _Broker:
    id: int
    epoch: int = -1
    incarnation: str | None = None
    state: int = 0
    was_shutting_down: bool = False
    offset: int | None = None
    """Offset of the last record that changed it."""

    def words(self) -> str:
        return f"broker {self.id} was {WORDS[self.state]}" + (f", with epoch {self.epoch}" if self.epoch >= 0 else "")


@dataclass(slots=True)
class _Walk:
    is_whole: bool
    offsets: Ints
    leaves: Callable[[Ints, int], bool]
    brokers: dict[int, _Broker] = field(default_factory=dict)
    found: list[LogFinding] = field(default_factory=list)
    states: list[tuple[int, int, int]] = field(default_factory=list)
    turns: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, row: int, fact: dict[str, Any]) -> None:
        broker = self.brokers.setdefault(fact["number"], _Broker(fact["number"]))
        kind = fact["type"]
        if kind == REGISTER:
            self._register(row, fact, broker)
        elif self._stands(fact, broker):
            if kind == UNREGISTER:
                self._become(row, broker, GONE)
            else:
                fenced = _STATED_BY_TYPE.get(kind) or fact["fenced"] or 0
                broker.was_shutting_down |= bool(fact["shutting_down"])
                is_fenced = broker.state == FENCED if fenced == 0 else fenced > 0
                if fenced or broker.state:  # else it is not known what it was
                    self._become(row, broker, _state(is_fenced=is_fenced, is_leaving=broker.was_shutting_down))
        broker.offset = fact["offset"]

    def _register(self, row: int, fact: dict[str, Any], broker: _Broker) -> None:
        epoch, offset = fact["said_epoch"], fact["offset"]
        is_same = broker.incarnation == fact["id"] and broker.state != GONE
        if not fact["is_base"] and not (is_same and epoch == broker.epoch):
            if epoch != offset and not self._is_clean_up(epoch, row, broker.id):
                says = f"broker {broker.id} is registered at offset {offset} with epoch {epoch}"
                self.found.append(self._finding(FindingKind.BROKER_EPOCH_NOT_OFFSET, fact, says, broker))
            elif epoch <= broker.epoch:
                says = f"broker {broker.id} is registered with epoch {epoch}, after {broker.epoch}"
                self.found.append(self._finding(FindingKind.BROKER_EPOCH_NOT_OFFSET, fact, says, broker))
        broker.epoch, broker.incarnation = epoch, fact["id"]
        broker.was_shutting_down = bool(fact["shutting_down"])
        self._become(row, broker, _state(is_fenced=fact["fenced"] != 0, is_leaving=broker.was_shutting_down))

    def _is_clean_up(self, epoch: int, row: int, broker_id: int) -> bool:
        """Is what stands between the epoch and the registration only what takes the broker out of ISRs? Its epoch is
        the offset of the first record of all that its coming changes."""
        begin = int(np.searchsorted(self.offsets[:row], epoch))
        if row - begin != int(self.offsets[row]) - epoch or row == begin:
            return False
        return self.leaves(np.arange(begin, row), broker_id)

    def _stands(self, fact: dict[str, Any], broker: _Broker) -> bool:
        """Is it this registration that changes?"""
        if broker.state in (0, GONE):
            if not self.is_whole and broker.state == 0:
                return True
            says = f"{fact['type']} is about broker {broker.id}, which is not registered"
        elif 0 <= broker.epoch != fact["said_epoch"]:
            says = f"{fact['type']} is about broker {broker.id} with epoch {fact['said_epoch']}, not {broker.epoch}"
        else:
            return True
        self.found.append(self._finding(FindingKind.NOT_REPLAYABLE, fact, says, broker))
        return False

    def _become(self, row: int, broker: _Broker, state: int) -> None:
        could_lead = broker.state in (ACTIVE, SHUTTING_DOWN) or (broker.state == 0 and not self.is_whole)
        if state in (FENCED, GONE) and could_lead:
            self.turns.append((broker.id, row, state))
        broker.state = state
        self.states.append((broker.id, row, state))

    @staticmethod
    def _finding(kind: FindingKind, fact: dict[str, Any], says: str, broker: _Broker) -> LogFinding:
        return LogFinding(
            kind,
            says,
            fact["offset"],
            fact["epoch"],
            fact["timestamp"],
            broker_id=broker.id,
            before=broker.words() if broker.offset is not None else None,
            before_offset=broker.offset,
        )


def audit_brokers(
    rows: pa.Table, leaves: Callable[[Ints, int], bool], *, is_whole: bool
) -> tuple[list[LogFinding], BrokerStates]:
    """Audit facts that count, in order. `leaves`: is each of these rows a partition that a broker leaves?"""
    walk = _Walk(is_whole, np.asarray(rows["offset"], np.int64), leaves)
    at = np.flatnonzero(np.isin(codes_of(rows), [CODES[each] for each in TYPES]))
    for row, fact in zip(at.tolist(), rows.take(pa.array(at)).to_pylist(), strict=True):
        walk.take(row, fact)
    return walk.found, BrokerStates(_settings(walk.states), _settings(walk.turns))


def _settings(values: list[tuple[int, int, int]]) -> ValueHistory:
    return ValueHistory.of(*np.array(values, np.int64).reshape(-1, 3).T)


def _state(*, is_fenced: bool, is_leaving: bool) -> int:
    if is_fenced:
        return FENCED
    return SHUTTING_DOWN if is_leaving else ACTIVE
