"""A member in a process of its own, which is stopped, killed and told to go. F2, F3."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api.nodes import WAIT_S
from tests.broker.clusters import is_fenced, join, one_controller, seen
from tests.process.processes import NodeProcess


@contextmanager
def program(root: Path, bootstrap: str) -> Iterator[NodeProcess]:
    """A program that joined as broker 7, and may act."""
    process = NodeProcess(7, [bootstrap, "7"], errors=root / "stderr", module="tests.broker.program")
    try:
        yield process
    finally:
        process.close()


def active(process: NodeProcess) -> int:
    epoch: int = process.wait_event("active")["epoch"]
    process.tell("act")
    assert process.wait_event("acted")["epoch"] == epoch
    return epoch


def test_a_program_stopped_for_longer_than_its_session_is_replaced_and_knows_it_before_it_acts(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, program(tmp_path, bootstrap) as process:
        epoch = active(process)
        process.signal(signal.SIGSTOP)
        with join(bootstrap, 7) as heir:
            later = heir.wait_active(WAIT_S)
            assert later > epoch
            before = len(process.events)
            process.tell("act")
            process.signal(signal.SIGCONT)
            refused = process.wait_event("refused", after=before)
            assert refused["error"] == "Fenced"
            assert heir.check(later) == later, "and it takes nothing from its heir"
        assert [each["epoch"] for each in process.reported("acted")] == [epoch]


def test_a_program_stopped_for_longer_than_its_session_is_fenced_by_the_controller_and_unfenced_when_it_goes_on(
    tmp_path: Path,
) -> None:
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, 8) as watcher,
        program(tmp_path, bootstrap) as process,
    ):
        epoch = active(process)
        seen(watcher, lambda view: 7 in view.image.brokers and not is_fenced(view, 7))
        process.signal(signal.SIGSTOP)
        seen(watcher, lambda view: is_fenced(view, 7))
        before = len(process.events)
        process.signal(signal.SIGCONT)
        seen(watcher, lambda view: not is_fenced(view, 7))
        process.wait(lambda each: each["event"] == "state" and each["state"] == "online", after=before)
        assert watcher.image.brokers[7].epoch == epoch, "nobody was registered in its place"


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_told_to_go_it_goes_in_good_order(tmp_path: Path, by: signal.Signals) -> None:
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, 8) as watcher,
        program(tmp_path, bootstrap) as process,
    ):
        active(process)
        process.signal(by)
        assert process.ended() == 0
        last = process.reported("state")[-1]
        assert (last["state"], last["reason"]) == ("gone", "let go by the controller")
        seen(watcher, lambda view: is_fenced(view, 7))


def test_killed_it_is_fenced_when_its_session_is_over(tmp_path: Path) -> None:
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, 8) as watcher,
        program(tmp_path, bootstrap) as process,
    ):
        active(process)
        seen(watcher, lambda view: 7 in view.image.brokers and not is_fenced(view, 7))
        process.kill()
        seen(watcher, lambda view: is_fenced(view, 7))
