"""What a cluster's controllers have acknowledged: the demo keeps it, and its verdict asks the disks for it."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fastquorum.types import NodeId, Offset, Uuid


class Registered(NamedTuple):
    """A broker was told its epoch, and admitted under it."""

    broker_id: NodeId
    epoch: int


class Created(NamedTuple):
    """A topic was created, and nothing of it deleted since."""

    name: str
    id: Uuid
    partitions: int


class FencedBroker(NamedTuple):
    """A broker that was killed was seen fenced in what is committed below end_offset."""

    broker_id: NodeId
    epoch: int
    end_offset: Offset


class Left(NamedTuple):
    """A broker that went in good order was seen fenced so; before that it had led nothing any more."""

    broker_id: NodeId
    epoch: int
    end_offset: Offset


Change = Registered | Created | FencedBroker | Left
WORDS: Final[dict[type[Change], str]] = {
    Registered: "registered",
    Created: "created",
    FencedBroker: "fenced",
    Left: "left",
}
"""The value of `change` in JSON."""


def as_json(change: Change) -> dict[str, Any]:
    """For people and programs that look at a demo's directory."""
    fields = {name: str(value) if isinstance(value, Uuid) else value for name, value in change._asdict().items()}
    return {"change": WORDS[type(change)], **fields}


def words_of(change: Change) -> str:
    match change:
        case Registered():
            return f"the registration of broker {change.broker_id} under epoch {change.epoch}"
        case Created():
            return f"topic {change.name} with id {change.id}"
        case FencedBroker():
            return f"the fencing of broker {change.broker_id} under epoch {change.epoch}"
        case Left():
            return f"the leave of broker {change.broker_id} under epoch {change.epoch}, its leads moved first,"


def count_of(ledger: Sequence[Change], kind: type[Change]) -> int:
    return sum(isinstance(each, kind) for each in ledger)
