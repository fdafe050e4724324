"""A leader's lane with more voters than a quorum is formatted with: a record of another leader's may bring them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.kernels.lane import BarrierDone

from .builders import Leading, Make, advances


def leading(make: Make, voters: tuple[int, ...]) -> Leading:
    lead = Leading(make, voters=voters)
    for peer in voters:
        if peer != 1:
            lead.admit(peer, 0)
    return lead


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 16, 40, 200])
@pytest.mark.parametrize("leads_as", ["a voter", "no voter any more"])
def test_a_majority_of_however_many_commits(make: Make, count: int, leads_as: str) -> None:
    first = 1 if leads_as == "a voter" else 2
    lead = leading(make, tuple(range(first, first + count)))
    majority = count // 2 + 1
    others = [peer for peer in range(first, first + count) if peer != 1]
    needed = majority - (first == 1)
    for peer in others[: needed - 1]:
        assert advances(lead.fetch(peer)) == []
    if needed:
        assert lead.lane.high_watermark == -1
        assert advances(lead.fetch(others[needed - 1])) == [lead.log.end_offset]
    assert lead.lane.high_watermark == lead.log.end_offset


@pytest.mark.parametrize("count", [8, 15, 40])
def test_a_barrier_needs_a_majority_of_however_many(make: Make, count: int) -> None:
    voters = tuple(range(1, count + 1))
    lead = leading(make, voters)
    for peer in voters[1:]:
        lead.fetch(peer)
    _, out = lead.lane.begin_barrier(lead.now_us)
    for peer in voters[1 : count // 2]:
        out += lead.fetch(peer)
    assert not [each for each in out if isinstance(each, BarrierDone)]
    last = lead.fetch(voters[count // 2])
    assert [each for each in last if isinstance(each, BarrierDone)]


@settings(max_examples=60)
@given(data=st.data(), count=st.integers(1, 30))
def test_whatever_they_have_the_high_watermark_is_a_majoritys(make: Make, data: st.DataObject, count: int) -> None:
    voters = tuple(range(1, count + 1))
    lead = Leading(make, voters=voters)
    lead.append(b"one")
    lead.append(b"two")
    lead.sync()
    lead.sync()
    ends = {1: lead.log.flushed_end}
    for peer in voters[1:]:
        ends[peer] = data.draw(st.integers(0, lead.log.end_offset))
        lead.admit(peer, ends[peer])
    reached = sorted(ends.values(), reverse=True)[count // 2]
    assert lead.lane.high_watermark == (reached if reached > lead.epoch_start else -1)
