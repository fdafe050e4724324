"""Observers that Python awaits: it is told on the shell's descriptor once each has named the offset, or is gone."""

import pytest

from .native_rig import Peer, Rig, is_readable, result, until


def committed(rig: Rig) -> Peer:
    """A sole voter commits a record that an observer has, and does not know to be committed."""
    rig.lead(voters=(1,))
    observer = rig.observer(9, high_watermark=1)
    assert result(rig.append()) == 1
    assert observer.answer().offsets == [1]
    return observer


@pytest.mark.parametrize("goes", [False, True], ids=["names it", "goes away"])
def test_python_is_told_when_the_last_observer(rig: Rig, goes: bool) -> None:
    observer = committed(rig)
    assert rig.shell.await_observers([7, 9], 2)
    assert rig.shell.are_observers_awaited
    rig.collect()
    if goes:
        rig.shell.detach(observer.number)
    else:
        observer.fetch(2, high_watermark=1)
        assert observer.answer().high_watermark == 2
        assert rig.shell.are_observers_awaited
        observer.fetch(2, high_watermark=2)
    rig.await_news(lambda: not rig.shell.are_observers_awaited)


def test_nobody_is_told_of_observers_that_are_not_awaited(rig: Rig) -> None:
    observer = committed(rig)
    assert not rig.shell.await_observers([7], 2)
    assert not rig.shell.are_observers_awaited
    rig.collect()
    observer.fetch(2, high_watermark=2)
    until(lambda: rig.shell.state().peers[0].end_offset == 2, "the Fetch is seen")
    assert not is_readable(rig.shell)
