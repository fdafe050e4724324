"""The drivers that speak over sockets, against a node that runs: what they count as acknowledged is in the log."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Queue

import pytest

import fastquorum
from fastquorum.errors import NotLeader, NotReady, PeerProtocolError, UsageError
from fastquorum.kernels import load as load_kernels
from fastquorum.load.driving import kafka_driver
from fastquorum.load.driving.generating import Driver, Job, generate
from fastquorum.load.driving.kafka_driver import KafkaDriver
from fastquorum.load.driving.leader_search import LeaderWatch, LoadTarget, find_leader
from fastquorum.load.driving.payloads import Payloads, make_payloads
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.tally import LoadTally
from fastquorum.load.driving.wire_driver import REQUEST_BYTES, REQUESTS_MAX, WireDriver
from fastquorum.load.plan import TOPIC, LoadPlan
from fastquorum.types import LISTENER_NAME, Endpoint
from tests.api.nodes import WAIT_S, stalled, trio
from tests.cli.conftest import free_port
from tests.load.test_generating import Reports

SECOND = 1_000_000_000
TIMEOUT_NS = 20 * SECOND


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[fastquorum.sync.Quorum]:
    with fastquorum.sync.open(tmp_path / "n1", node_id=1) as opened:
        opened.wait_ready(10)
        yield opened


def endpoint_of(quorum: fastquorum.sync.Quorum) -> Endpoint:
    host, _, port = quorum.endpoint.address.rpartition(":")
    return Endpoint(LISTENER_NAME, host, int(port))


def silent() -> LoadTally:
    return LoadTally(Reports(), 0, 0)


def wire(quorum: fastquorum.sync.Quorum, led_by: list[LoadTarget]) -> WireDriver:
    return WireDriver([endpoint_of(quorum)], TOPIC, load_kernels("native"), silent(), TIMEOUT_NS, led_by.append)


def kafka(quorum: fastquorum.sync.Quorum) -> KafkaDriver:
    return KafkaDriver([endpoint_of(quorum)], TOPIC, silent(), TIMEOUT_NS)


def drive(driver: Driver, payloads: Payloads, reports: Reports, appends: int) -> None:
    """All of them at once: the schedule lies in the past."""
    start_ns = time.monotonic_ns() - SECOND
    schedule = Schedule(LoadPlan(records_per_s=appends * 10), 0.1, 1)
    tally = LoadTally(reports, 1, start_ns)
    driver.retarget(tally)
    times = {"end_ns": start_ns + SECOND, "overtime_ns": TIMEOUT_NS}
    generate(driver, Job(payloads, tally, start_ns, 10_000, TIMEOUT_NS, schedule, **times))


def values_of(quorum: fastquorum.sync.Quorum) -> list[tuple[bytes | None, bytes | None]]:
    found = []
    for batch in quorum.committed(follow=False):
        found += [(record.key, record.value) for record in batch.records]
    return found


@pytest.mark.parametrize("name", ["wire", "kafka"])
@pytest.mark.parametrize("workload", ["values", "keys", "topics"])
def test_what_is_acknowledged_is_in_the_log(quorum: fastquorum.sync.Quorum, name: str, workload: str) -> None:
    count = 9 if workload == "topics" else 1
    payloads = make_payloads(LoadPlan.from_json({"workload": workload, "records_per_append": count}))
    expected = [
        (each.keys[nth] if each.keys else None, each.bare_values[nth])
        for each in payloads.appends[:300]
        for nth in range(count)
    ]
    reports = Reports()
    driver: Driver = wire(quorum, []) if name == "wire" else kafka(quorum)
    try:
        drive(driver, payloads, reports, 300)
    finally:
        driver.close()
    assert (len(reports.latencies), reports.errors, reports.sent) == (300, {}, 300)
    assert values_of(quorum) == expected


def test_many_at_once_are_more_than_a_connection_may_ask(quorum: fastquorum.sync.Quorum) -> None:
    reports, led_by = Reports(), list[LoadTarget]()
    driver = wire(quorum, led_by)
    drive(driver, make_payloads(LoadPlan()), reports, 5000)
    driver.close()
    assert (len(reports.latencies), reports.errors) == (5000, {})
    assert len(values_of(quorum)) == 5000 > REQUESTS_MAX
    assert [found.node_id for found in led_by] == [1]


def test_a_leader_that_goes_leaves_outcomes_unknown_and_the_next_one_is_found(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    options = {"node_id": 1, "voters": f"1@{listen}", "cluster_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    reports, led_by = Reports(), list[LoadTarget]()
    payloads = make_payloads(LoadPlan())
    with fastquorum.sync.open(tmp_path / "n1", **options) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(10)
        driver = wire(quorum, led_by)
        driver.retarget(LoadTally(reports, 1, 0))
        driver.offer(payloads.take(1), time.monotonic_ns())
        quorum.close()
    while driver.in_flight:
        driver.collect(time.monotonic_ns() + SECOND // 100)
    driver.collect(time.monotonic_ns() + SECOND // 100)  # the answer may have come first: the end is seen now
    # Offered while nobody leads: they wait, and are sent to whoever leads next.
    driver.offer(payloads.take(5), time.monotonic_ns())
    assert driver.in_flight == 5
    with fastquorum.sync.open(tmp_path / "n1", **options) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(10)
        deadline = time.monotonic() + 20
        while driver.in_flight and time.monotonic() < deadline:
            driver.collect(time.monotonic_ns() + SECOND // 100)
        assert [value for _, value in values_of(quorum)][-5:] == [each.values[0] for each in payloads.appends[1:6]]
    driver.close()
    tally = driver._tally
    assert len(tally.latencies) + tally.errors["outcome_unknown"] == 6
    assert len(tally.latencies) >= 5
    assert [found.epoch for found in led_by] == sorted({found.epoch for found in led_by})
    assert len(led_by) == 2


def test_what_is_given_up_is_counted_and_not_heard_of_again(quorum: fastquorum.sync.Quorum) -> None:
    driver = wire(quorum, [])
    with stalled(quorum):
        driver.offer(make_payloads(LoadPlan()).take(50), time.monotonic_ns())
        driver.abandon("timeout")
    assert driver._tally.errors["timeout"] == 50
    assert driver.in_flight == 0
    reports = Reports()
    drive(driver, make_payloads(LoadPlan()), reports, 20)
    driver.close()
    assert (len(reports.latencies), reports.errors) == (20, {})


def test_the_log_goes_by_its_name_and_nothing_else_is_written_to(tmp_path: Path) -> None:
    with fastquorum.sync.open(tmp_path / "n1", node_id=1, topic="payments") as quorum:
        quorum.wait_ready(10)
        with pytest.raises(UsageError, match=rf"{quorum.endpoint} has no topic 'quorum'; --topic NAME"):
            find_leader([endpoint_of(quorum)], TOPIC, 0.0)
        assert find_leader([endpoint_of(quorum)], "payments", 0.0).node_id == 1
        assert values_of(quorum) == []


def test_what_was_not_sent_to_a_leader_that_gives_way_waits_for_the_next(tmp_path: Path) -> None:
    payloads, count = make_payloads(LoadPlan(record_bytes=REQUEST_BYTES // 4)), 10 * REQUESTS_MAX
    with trio(tmp_path) as nodes:
        bootstrap = [endpoint_of(node) for node in nodes.nodes.values()]
        driver = WireDriver(bootstrap, TOPIC, load_kernels("native"), silent(), TIMEOUT_NS, lambda found: None)
        leader, heir = nodes.leader, nodes.followers[0].node_id
        with contextlib.ExitStack() as no_commits:
            for node_id, node in nodes.nodes.items():
                if node_id != heir:  # which has to have everything, or nobody votes for it
                    no_commits.enter_context(stalled(node))
            driver.offer(payloads.take(count), time.monotonic_ns())
            while leader.is_leader:
                # Nobody gets ready while nothing commits; it is asked again, as what was asked may be refused.
                with contextlib.suppress(NotReady, NotLeader):
                    leader.transfer_leadership(heir, timeout=0.5)
            while not driver._tally.errors:
                unsent = len(driver._unsent)
                driver.collect(time.monotonic_ns() + SECOND // 100)
            assert driver.in_flight == unsent > 0
        while driver.in_flight:
            driver.collect(time.monotonic_ns() + SECOND // 100)
        driver.close()
    assert len(driver._tally.latencies) + driver._tally.errors.total() == count
    assert len(driver._tally.latencies) > 0, driver._tally.errors


class CountedBootstrap(list[Endpoint]):
    """Where to ask; tells of every time that somebody begins to."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        super().__init__(endpoints)
        self._begun = threading.Semaphore(0)

    def __iter__(self) -> Iterator[Endpoint]:
        self._begun.release()
        return super().__iter__()

    def wait_next_request(self) -> None:
        """From the first to the last: the third time begins after the second has ended, whenever the first began."""
        while self._begun.acquire(blocking=False):
            pass
        for _ in range(3):
            assert self._begun.acquire(timeout=WAIT_S)


def test_a_watch_tells_of_every_leader_once_however_often_it_asks(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        endpoints = {node_id: endpoint_of(node) for node_id, node in nodes.nodes.items()}
        found, bootstrap = Queue[LoadTarget](), CountedBootstrap(endpoints.values())
        with LeaderWatch(bootstrap, TOPIC, found.put) as watch:
            led_by = [found.get_nowait()]  # the first one before anything else is done
            bootstrap.wait_next_request()
            while (epoch := nodes.leader.epoch) <= led_by[0].epoch:
                with contextlib.suppress(NotReady, NotLeader):  # whoever is elected instead, or was already
                    nodes.leader.transfer_leadership(nodes.followers[0].node_id, timeout=WAIT_S)
            while led_by[-1].epoch < epoch:
                led_by.append(found.get(timeout=WAIT_S))
            bootstrap.wait_next_request()
        assert not watch._thread.is_alive()
        while not found.empty():  # somebody again, or an election that nobody asked for
            led_by.append(found.get_nowait())
    epochs = [found.epoch for found in led_by]
    assert epochs == sorted(set(epochs))
    assert len(epochs) >= 2
    assert all(found.endpoint == endpoints[found.node_id] for found in led_by)


def test_nobody_there_is_not_ready() -> None:
    with pytest.raises(NotReady, match="Connection refused"):
        find_leader([Endpoint(LISTENER_NAME, "127.0.0.1", free_port())], TOPIC, 0.0)


def test_a_missing_kafka_client_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(UsageError, match=r"confluent-kafka, which is not installed; pip install 'fastquorum\[bench\]'"):
        kafka_driver.load_client()


def test_who_answers_with_something_else_speaks_another_protocol() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            connection, _ = listening.accept()
            # It is hung up on while it speaks.
            with connection, contextlib.suppress(ConnectionResetError):
                connection.sendall(b"220 mail.example ESMTP\r\n")
                while connection.recv(4096):
                    pass

        greeting = threading.Thread(target=greet)
        greeting.start()
        with pytest.raises(PeerProtocolError, match="not in Kafka's protocol"):
            find_leader([Endpoint(LISTENER_NAME, *listening.getsockname())], TOPIC, 0.0)
        greeting.join()


def test_an_answer_that_comes_piece_by_piece_and_never_ends_is_given_up() -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):  # it is hung up on
                connection.sendall(b"\0\0\x10\0")
                while not over.wait(0.05):
                    connection.sendall(b"\0")

        trickling = threading.Thread(target=trickle)
        trickling.start()
        with pytest.raises(NotReady, match=r"did not answer: nothing within 1\.0 s"):
            find_leader([Endpoint(LISTENER_NAME, *listening.getsockname())], TOPIC, 0.0)
        over.set()
        trickling.join()
