"""The lives of brokers: registered, fenced, in controlled shutdown, active, gone; what happened, and for how long each.

The log says that a broker was fenced, and never why: its session may have run out, or it may have asked to be. What it
says is whether a controlled shutdown had begun before. Source: KIP-500, KIP-631.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import ImageFailed
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.types import NodeId

_FIELDS: Final = pa.schema(
    [
        ("brokerId", pa.int32()),
        ("id", pa.int32()),
        ("brokerEpoch", pa.int64()),
        ("incarnationId", pa.string()),
        ("rack", pa.string()),
    ]
)
_REGISTRATION: Final = pa.schema(
    [*_FIELDS, pa.field("fenced", pa.bool_()), pa.field("inControlledShutdown", pa.bool_())]
)
_CHANGE: Final = pa.schema([*_FIELDS, pa.field("fenced", pa.int8()), pa.field("inControlledShutdown", pa.int8())])
_REGISTER: Final = "REGISTER_BROKER_RECORD"
_UNREGISTER: Final = "UNREGISTER_BROKER_RECORD"
RECORDS: Final = {
    _REGISTER: _REGISTRATION,
    _UNREGISTER: _FIELDS,
    "BROKER_REGISTRATION_CHANGE_RECORD": _CHANGE,
    "FENCE_BROKER_RECORD": _FIELDS,
    "UNFENCE_BROKER_RECORD": _FIELDS,
}
"""What speaks of a broker's life, and what is read of it."""
_STATED_BY_TYPE: Final = {"FENCE_BROKER_RECORD": 1, "UNFENCE_BROKER_RECORD": -1}
"""What older records state by their type; newer ones have it in `fenced`."""


class Event(StrEnum):
    """What kinds of happenings there are."""

    LEADER = "quorum leader"
    VOTERS = "voters"
    """The first set that the log tells of."""
    VOTER_ADDED = "voter added"
    VOTER_REMOVED = "voter removed"
    REGISTERED = "registered"
    FENCED = "fenced"
    UNFENCED = "unfenced"
    SHUTTING_DOWN = "controlled shutdown"
    UNREGISTERED = "unregistered"


class Happening(NamedTuple):
    """One event. `why`: as far as the log tells."""

    row: int
    event: Event
    node_id: NodeId | None
    text: str
    why: str | None = None


class LifeState(StrEnum):
    """What a broker is; one at a time."""

    GONE = "unregistered"
    FENCED = "fenced"
    SHUTTING_DOWN = "in controlled shutdown"
    ACTIVE = "active"


@dataclass(slots=True)
class BrokerLife:
    """One broker's, over all its incarnations."""

    id: NodeId
    state: LifeState = LifeState.GONE
    since_ms: int = 0
    incarnation: str | None = None
    was_shutting_down: bool = False
    """Since it registered last, fenced or not."""
    bounces: int = 0
    """How often it registered as another incarnation than before."""
    fences: int = 0
    is_known: bool = False
    """Else only its absence is spoken of."""
    lasted_ms: dict[LifeState, int] = field(default_factory=lambda: dict.fromkeys(LifeState, 0))
    spans: list[tuple[LifeState, int, int]] = field(default_factory=list)
    """What it was, from when until when; from where it is known."""

    def become(self, state: LifeState, now_ms: int) -> None:
        self.lasted_ms[self.state] += now_ms - self.since_ms
        if self.spans and self.spans[-1][0] is self.state:
            self.spans[-1] = (self.state, self.spans[-1][1], now_ms)
        elif self.is_known:
            self.spans.append((self.state, self.since_ms, now_ms))
        self.state, self.since_ms = state, now_ms
        self.is_known |= state is not LifeState.GONE


def lives_of(history: History) -> tuple[list[Happening], dict[NodeId, BrokerLife]]:
    """Return what happened, in order, and each broker's life to the end. Brokers are few, and they change seldom.

    ImageFailed: a change of a broker that is not registered, in a history of which all is known.
    """
    records = [
        (int(row), kind, record)
        for kind, fields in RECORDS.items()
        for rows, found in [history.records_of(kind, fields)]
        for row, record in zip(rows, found.to_pylist(), strict=True)
    ]
    happened: list[Happening] = []
    lives: dict[NodeId, BrokerLife] = {}
    for row, kind, record in sorted(records, key=lambda each: each[0]):
        broker_id = record["id"] if kind in _STATED_BY_TYPE else record["brokerId"]
        now_ms = int(history.times_ms[row])
        life = lives.setdefault(broker_id, BrokerLife(broker_id, since_ms=now_ms))
        if kind == _REGISTER:
            happened.append(_registered(life, row, record, now_ms))
        elif kind == _UNREGISTER:
            if life.state is not LifeState.GONE:
                life.become(LifeState.GONE, now_ms)
            happened.append(Happening(row, Event.UNREGISTERED, broker_id, f"broker {broker_id} was unregistered"))
        else:
            if life.state is LifeState.GONE and history.is_known:
                raise ImageFailed(f"broker {broker_id} is not registered", kind, int(history.offsets[row]))
            fenced = _STATED_BY_TYPE.get(kind) or record.get("fenced") or 0
            happened += _changed(life, row, fenced, bool(record.get("inControlledShutdown")), now_ms)
    for life in lives.values():
        life.become(life.state, history.end_ms)
    return happened, {each: life for each, life in lives.items() if life.is_known}


def _registered(life: BrokerLife, row: int, record: dict[str, Any], now_ms: int) -> Happening:
    former, before = life.incarnation, life.state
    life.incarnation = record["incarnationId"]
    fenced, life.was_shutting_down = record["fenced"] is not False, bool(record["inControlledShutdown"])
    is_same = former == life.incarnation and before is not LifeState.GONE
    life.bounces += former is not None and former != life.incarnation
    life.become(_state(fenced=fenced, is_shutting_down=life.was_shutting_down), now_ms)
    rack = f" (rack {record['rack']})" if record["rack"] else ""
    how = "amended its registration" if is_same else "registered" if former is None else "registered anew"
    why = None
    if not is_same and before in (LifeState.ACTIVE, LifeState.SHUTTING_DOWN):
        why = f"its former incarnation was {before} still"
    text = f"broker {life.id}{rack} {how}, with epoch {record['brokerEpoch']}; it is {life.state}"
    return Happening(row, Event.REGISTERED, life.id, text if why is None else f"{text}; {why}", why)


def _changed(life: BrokerLife, row: int, fenced: int, is_shutting_down: bool, now_ms: int) -> list[Happening]:
    """`fenced`: -1 unfenced, 0 unchanged, 1 fenced."""
    if fenced == 0 and not is_shutting_down:
        return []
    before = life.state
    happened = []
    if is_shutting_down and not life.was_shutting_down:
        life.was_shutting_down = True
        happened.append(Happening(row, Event.SHUTTING_DOWN, life.id, f"broker {life.id} began a controlled shutdown"))
    is_fenced = before is LifeState.FENCED if fenced == 0 else fenced > 0
    life.become(_state(fenced=is_fenced, is_shutting_down=life.was_shutting_down), now_ms)
    if is_fenced and before is not LifeState.FENCED:
        life.fences += 1
        why = "a controlled shutdown had begun" if life.was_shutting_down else None
        hint = why or "the log does not say whether its session ran out or it asked"
        happened.append(Happening(row, Event.FENCED, life.id, f"broker {life.id} was fenced; {hint}", why))
    elif fenced < 0 and before in (LifeState.FENCED, LifeState.GONE):
        happened.append(Happening(row, Event.UNFENCED, life.id, f"broker {life.id} was unfenced"))
    return happened


def _state(*, fenced: bool, is_shutting_down: bool) -> LifeState:
    if fenced:
        return LifeState.FENCED
    return LifeState.SHUTTING_DOWN if is_shutting_down else LifeState.ACTIVE
