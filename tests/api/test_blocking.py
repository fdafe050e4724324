"""What threads wait with: a ticket of a node without a native shell, and changes of one node."""

import gc
import threading
import weakref

import pytest

from fastquorum.api.blocking import Watch
from fastquorum.errors import AppendTimeout, NotLeader
from fastquorum.node.io.callers.tickets import Result


def test_a_result_is_its_offset_for_whoever_asks_and_however_often() -> None:
    result = Result()
    assert not result.done()
    with pytest.raises(AppendTimeout, match="not committed within 0 s; it may still commit"):
        result.result(timeout=0)
    asking = [threading.Thread(target=result.result) for _ in range(3)]
    for thread in asking:
        thread.start()
    result.committed(7)
    for thread in asking:
        thread.join()
    assert result.done()
    assert result.result() == result.result(timeout=0) == 7


def test_a_result_that_failed_raises_an_error_of_its_own_for_each_who_asks() -> None:
    result = Result()
    result.failed(NotLeader(epoch=3))
    with pytest.raises(NotLeader, match="epoch 3") as first:
        result.result()
    with pytest.raises(NotLeader) as second:
        result.result()
    assert first.value is not second.value
    assert first.value.epoch == second.value.epoch == 3


def test_who_waits_for_a_change_asks_for_no_commits() -> None:
    watch, requests, states = Watch(), list[str](), ["unknown"]
    watch.watch_commit = lambda: requests.append("commit")
    looking = threading.Event()

    def is_known() -> bool:
        looking.set()
        return states == ["known"]

    waiting = threading.Thread(target=watch.change, args=(is_known,))
    waiting.start()
    looking.wait()
    watch.on_committed(5)
    states[:] = ["known"]
    watch.on_ready()
    waiting.join()
    assert requests == []
    assert watch.commit(lambda: True)
    assert requests == ["commit"]


def test_a_result_that_nobody_keeps_is_gone_with_its_error() -> None:
    error = NotLeader()
    gone = weakref.ref(error)
    result = Result()
    result.failed(error)
    with pytest.raises(NotLeader):
        result.result()
    gc.disable()
    try:
        del error, result
        assert gone() is None, "it and its traceback keep each other until the garbage collector comes"
    finally:
        gc.enable()
