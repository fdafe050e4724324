"""Look-ups beside each other: what a silent name server holds up, what is kept, and how many threads that takes."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastquorum.addresses import AddressError
from fastquorum.node.io.sockets import resolving
from fastquorum.node.io.sockets.resolving import Resolution, Resolver, last_known, literal, look_up
from tests.api.nodes import WAIT_S
from tests.node.io.name_service import Names, name_service


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    with name_service(monkeypatch) as made:
        yield made


class Reports:
    """What a resolver has found, by token."""

    def __init__(self) -> None:
        self.found: dict[Any, Resolution] = {}
        self._changed = threading.Condition()
        self.resolver = Resolver(self._report)

    def _report(self, token: Any, found: Resolution) -> None:
        with self._changed:
            self.found[token] = found
            self._changed.notify_all()

    def wait(self, *tokens: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(tokens) <= self.found.keys(), WAIT_S)


def test_a_name_that_hangs_holds_up_no_other_however_often_it_is_wanted(names: Names) -> None:
    names.hang("dead.test")
    names.addresses["alive.test"] = ["127.0.0.1"]
    reports = Reports()
    for token in range(4):
        reports.resolver.submit(token, "dead.test", 9093)
    reports.resolver.submit("alive", "alive.test", 9093)
    reports.wait("alive")
    assert reports.found["alive"].addresses[0].address == ("127.0.0.1", 9093)
    assert names.queries.count("dead.test") == 1
    names.release()
    reports.wait(*range(4))
    assert "dead.test cannot be resolved: Temporary failure" in reports.found[0].reason


def test_a_name_that_failed_leaves_threads_to_others_and_never_takes_more_than_its_share(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "LOOKUPS_MAX", 4)
    monkeypatch.setattr(resolving, "TROUBLED_MAX", 2)
    dead = [f"dead{number}.test" for number in range(20)]
    names.addresses["alive.test"] = ["127.0.0.1"]
    reports = Reports()
    for host in dead:
        reports.resolver.submit(host, host, 1)
    reports.wait(*dead)
    assert names.running_max <= 4
    names.hang(*dead)
    for host in dead:
        reports.resolver.submit((host, "again"), host, 1)
    reports.resolver.submit("alive", "alive.test", 1)
    reports.wait("alive")
    assert names.running_max <= 4


def test_a_look_up_that_nobody_waits_for_any_more_is_not_begun(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "LOOKUPS_MAX", 1)
    names.hang("dead.test")
    reports = Reports()
    reports.resolver.submit(1, "dead.test", 1)
    reports.resolver.submit(2, "abandoned.test", 1)
    reports.resolver.submit(3, "wanted.test", 1)
    reports.resolver.withdraw(2, "abandoned.test")
    reports.resolver.withdraw(1, "dead.test")
    names.release()
    reports.wait(3)
    assert names.queries == ["dead.test", "wanted.test"]
    assert set(reports.found) == {3}


def test_a_name_is_looked_up_anew_each_time_and_its_last_addresses_are_kept(names: Names) -> None:
    names.addresses["h.test"] = ["127.0.0.1", "127.0.0.2", "::1"]
    reports = Reports()
    assert last_known("h.test", 1) == ()
    reports.resolver.submit(1, "h.test", 5)
    reports.wait(1)
    # One of each family after the other.
    assert [each.address[0] for each in reports.found[1].addresses] == ["127.0.0.1", "::1", "127.0.0.2"]
    names.addresses["h.test"] = ["127.0.0.3"]
    reports.resolver.submit(2, "h.test", 5)
    reports.wait(2)
    assert [each.address for each in last_known("h.test", 6)] == [("127.0.0.3", 6)]
    names.addresses["h.test"] = []
    reports.resolver.submit(3, "h.test", 5)
    reports.wait(3)
    assert reports.found[3].addresses == ()
    assert last_known("h.test", 6)


def test_waiting_for_names_ends_with_the_deadline(names: Names) -> None:
    names.hang("dead.test")
    names.addresses["alive.test"] = ["127.0.0.1"]
    found = look_up(["dead.test", "alive.test"], 0.2)
    assert found["alive.test"].addresses
    assert found["dead.test"] == Resolution((), "no name server has answered within 0.2 s")


def test_no_thread_is_left_when_all_names_are_known(names: Names) -> None:
    names.addresses["h.test"] = ["127.0.0.1"]
    look_up(["h.test"], WAIT_S)
    until = time.monotonic() + WAIT_S
    while any(each.name == "fastquorum-resolver" for each in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.mark.parametrize("host", ["q2..svc", "", "a" * 64, "b\0c", "ü.test", "1.2.3", "fe80::1%no-such-interface"])
def test_a_host_that_is_none_raises_nothing_but_an_address_error(host: str) -> None:
    with pytest.raises(AddressError):
        literal(host, 9093)


def test_numbers_need_no_look_up(names: Names) -> None:
    for host in ("127.0.0.1", "::1"):
        found = literal(host, 9093)
        assert found is not None
        assert found.address[:2] == (host, 9093)
    assert literal("h.test", 9093) is None
    assert names.queries == []
