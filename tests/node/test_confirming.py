"""Appends that wait for a barrier before they are refused: each hears how it ends, whatever comes between."""

import threading

import pytest

from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, NotLeader
from fastquorum.node.lane.confirming import Confirming
from fastquorum.node.ports import BarrierTicket


class Rig:
    """Appends are letters; the judge raises `trouble` at a "b"."""

    def __init__(self, trouble: BaseException | None = None, *, can_begin: bool = True) -> None:
        self.trouble = trouble
        self.can_begin = can_begin
        self.begun: list[BarrierTicket] = []
        self.judged: list[str] = []
        self.failed: dict[str, FastQuorumError] = {}
        self.confirming = Confirming[str](threading.RLock(), self._begin, self._judge, self._fail, NotLeader)

    def _begin(self, ticket: BarrierTicket) -> bool:
        self.begun.append(ticket)
        return self.can_begin

    def _judge(self, append: str) -> None:
        if append == "b" and self.trouble is not None:
            raise self.trouble
        self.judged.append(append)

    def _fail(self, appends: list[str], error: FastQuorumError) -> None:
        self.failed |= dict.fromkeys(appends, error)


def test_what_came_after_a_barrier_began_waits_for_the_next() -> None:
    rig = Rig()
    for append in "abc":
        rig.confirming.add(append)
    rig.confirming.passed(5)
    assert rig.judged == ["a"]
    assert len(rig.begun) == 2
    rig.confirming.passed(6)
    assert rig.judged == ["a", "b", "c"]
    assert rig.failed == {}


@pytest.mark.parametrize(
    ("trouble", "error_type"), [(OSError("the disk"), FatalError), (CorruptionError("bytes"), CorruptionError)]
)
def test_a_judgement_that_is_cut_off_is_told_to_everybody_who_waits(
    trouble: BaseException, error_type: type[FastQuorumError]
) -> None:
    rig = Rig(trouble)
    for append in "abc":
        rig.confirming.add(append)
    rig.confirming.passed(5)
    rig.confirming.add("d")
    with pytest.raises(type(trouble)):
        rig.confirming.passed(6)
    assert rig.judged == ["a"]
    assert {append: type(error) for append, error in rig.failed.items()} == dict.fromkeys("bcd", error_type)


def test_without_a_barrier_and_when_one_fails_they_hear_that_this_node_does_not_lead() -> None:
    rig = Rig(can_begin=False)
    rig.confirming.add("a")
    assert isinstance(rig.failed["a"], NotLeader)
    rig = Rig()
    rig.confirming.add("a")
    rig.confirming.add("b")
    rig.confirming.failed(NotLeader())
    assert rig.failed.keys() == {"a", "b"}
    assert rig.judged == []
