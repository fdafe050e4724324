"""One quorum of our node and Apache Kafka's controllers: either leads, is killed, comes back; nothing is lost."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastquorum.kernels import Kernels, load
from tests.api.nodes import free_ports

from .directories import fastquorum
from .kafka import Kafka
from .mixed import NO_OP, Member, committed_below, jvm_controller, our_node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

WAIT_S = 90.0
COMMITS = 200


class Mixed:
    """A quorum whose nodes are ours (the first) and Kafka's."""

    def __init__(self, ports: list[int], ours: Member, kafkas: list[Member]) -> None:
        self.ports = ports
        self.ours = ours
        self.kafkas = kafkas
        self.members = [ours, *kafkas]

    def describe(self, ports: list[int] | None = None) -> dict[str, Any]:
        """As whoever leads sees it; waits for a leader."""
        until = time.monotonic() + WAIT_S
        while True:
            for port in ports or self.ports:
                command = [sys.executable, "-m", "fastquorum.cli", "quorum", "describe", "--status", "--format", "json"]
                command += ["--bootstrap", f"127.0.0.1:{port}", "--timeout", "1"]
                ran = subprocess.run(command, capture_output=True, text=True, check=False)
                if ran.returncode == 0:
                    said: dict[str, Any] = json.loads(ran.stdout)
                    return said
            assert time.monotonic() < until, f"nobody leads: {ran.stderr}"

    def committed(self, at_least: int) -> int:
        """Wait until so much is committed; the high watermark."""
        until = time.monotonic() + WAIT_S
        while True:
            reached: int = self.describe()["highWatermark"]
            if reached >= at_least:
                return reached
            assert time.monotonic() < until, f"committed up to {reached}, not {at_least}"

    def stop(self) -> None:
        for member in self.members:
            member.stop()


def local(ports: list[int]) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports)


def random_uuids(count: int) -> list[str]:
    return [fastquorum("random-uuid").strip() for _ in range(count)]


def voters(root: Path, kafka: Kafka, *, static: bool) -> Mixed:
    """Voter 1 is ours, 2 and 3 are Kafka's."""
    ports, ids = free_ports(3), random_uuids(4)
    numbered = enumerate(zip(ports, ids[1:], strict=True), 1)
    text = ",".join(f"{number}@127.0.0.1:{port}" + ("" if static else f":{own}") for number, (port, own) in numbered)
    kafkas = [
        jvm_controller(
            kafka, root, number, ports[number - 1], ids[0], voters=text, bootstrap=local(ports), static=static
        )
        for number in (2, 3)
    ]
    return Mixed(ports, our_node(root, 1, text, ids[0]), kafkas)


@pytest.fixture
def started() -> Iterator[list[Mixed]]:
    """Whatever is put here is stopped in the end."""
    quorums: list[Mixed] = []
    yield quorums
    for quorum in quorums:
        quorum.stop()


@pytest.fixture
def kernels() -> Kernels:
    return load("native")


def append(mixed: Mixed, count: int) -> None:
    """To our node, while it leads."""
    command = [sys.executable, "-m", "fastquorum.cli", "append", "--encoding", "hex"]
    command += ["--bootstrap", f"127.0.0.1:{mixed.ports[0]}"]
    ran = subprocess.run(command, input=f"{NO_OP}\n" * count, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def fatal(member: Member) -> list[str]:
    return [line for line in member.said().splitlines() if line.startswith("FATAL") or "fatal fault" in line]


@pytest.mark.parametrize("static", [False, True], ids=["directory ids", "static voters"])
def test_our_node_leads_kafkas_controllers_is_killed_and_follows_them(
    tmp_path: Path, kafka: Kafka, kernels: Kernels, started: list[Mixed], static: bool
) -> None:
    mixed = voters(tmp_path, kafka, static=static)
    started.append(mixed)
    # Ours is up long before a JVM is: the first of them grants its votes.
    mixed.ours.start()
    mixed.kafkas[0].start()
    assert mixed.describe()["leaderId"] == 1
    append(mixed, COMMITS)
    mixed.kafkas[1].start()
    append(mixed, COMMITS)
    led = mixed.committed(2 * COMMITS)
    mixed.ours.kill()
    while (after := mixed.describe(mixed.ports[1:]))["leaderId"] == 1:
        pass
    assert after["leaderId"] in (2, 3)
    mixed.committed(led + 3)  # Kafka's leader commits no-ops of its own
    mixed.ours.start()
    reached = mixed.committed(led + 6)
    follows_up_to(mixed, reached)
    mixed.stop()
    logs = [committed_below(kernels, member, reached) for member in mixed.members]
    assert logs[0] == logs[1] == logs[2]
    assert not any(fatal(member) for member in mixed.kafkas)


def test_kafkas_controller_observes_our_quorum(
    tmp_path: Path, kafka: Kafka, kernels: Kernels, started: list[Mixed]
) -> None:
    ports, (cluster, own) = free_ports(2), random_uuids(2)
    ours = our_node(tmp_path, 1, f"1@127.0.0.1:{ports[0]}:{own}", cluster)
    observer = jvm_controller(kafka, tmp_path, 2, ports[1], cluster, bootstrap=local(ports[:1]))
    mixed = Mixed(ports[:1], ours, [observer])
    started.append(mixed)
    ours.start()
    mixed.describe()
    append(mixed, COMMITS)
    observer.start()
    append(mixed, COMMITS)
    reached = mixed.committed(2 * COMMITS)
    until = time.monotonic() + WAIT_S
    while [(row["id"], row["lag"]) for row in mixed.describe()["observers"]] != [(2, 0)]:
        assert time.monotonic() < until, mixed.describe()
    mixed.stop()
    assert committed_below(kernels, ours, reached) == committed_below(kernels, observer, reached)
    assert not fatal(observer)


def test_our_node_observes_kafkas_quorum(tmp_path: Path, kafka: Kafka, kernels: Kernels, started: list[Mixed]) -> None:
    ports, (cluster, own) = free_ports(2), random_uuids(2)
    text = f"2@127.0.0.1:{ports[1]}:{own}"
    leader = jvm_controller(kafka, tmp_path, 2, ports[1], cluster, voters=text, bootstrap=local(ports[1:]))
    run = ("--listen", f"127.0.0.1:{ports[0]}")
    ours = our_node(tmp_path, 1, text, cluster, "--observer", run=run)
    mixed = Mixed(ports[1:], ours, [leader])
    started.append(mixed)
    leader.start()
    ours.start()
    reached = mixed.committed(20)  # its no-ops
    until = time.monotonic() + WAIT_S
    while not any(row["id"] == 1 and row["logEndOffset"] >= reached for row in mixed.describe()["observers"]):
        assert time.monotonic() < until, mixed.describe()
    mixed.stop()
    assert committed_below(kernels, ours, reached) == committed_below(kernels, leader, reached)


def test_a_voter_changes_hands_and_comes_back(
    tmp_path: Path, kafka: Kafka, kernels: Kernels, started: list[Mixed]
) -> None:
    mixed = voters(tmp_path, kafka, static=False)
    started.append(mixed)
    mixed.ours.start()
    mixed.kafkas[0].start()
    assert mixed.describe()["leaderId"] == 1
    append(mixed, COMMITS)
    mixed.kafkas[1].start()
    follows_up_to(mixed, mixed.committed(COMMITS), node_id=3)
    mixed.ours.stop()
    epoch = mixed.describe(mixed.ports[1:])["leaderEpoch"]
    said = json.loads(fastquorum("handover", "--to-kafka", mixed.ours.directory, "--format", "json"))
    assert said["owner"] == "kafka"
    assert 1 <= said["epoch"] <= epoch
    cluster = mixed.describe(mixed.ports[1:])["clusterId"]
    theirs = jvm_controller(
        kafka, tmp_path, 1, mixed.ports[0], cluster, bootstrap=local(mixed.ports), directory=mixed.ours.directory
    )
    mixed.members.append(theirs)
    theirs.start()
    follows_up_to(mixed, mixed.committed(COMMITS + 5), mixed.ports[1:])
    theirs.stop()
    fastquorum("handover", "--from-kafka", mixed.ours.directory)
    mixed.ours.start()
    reached = mixed.committed(COMMITS + 10)
    follows_up_to(mixed, reached, mixed.ports[1:])
    mixed.stop()
    logs = [committed_below(kernels, member, reached) for member in (mixed.ours, *mixed.kafkas)]
    assert logs[0] == logs[1] == logs[2]
    assert not any(fatal(member) for member in (theirs, *mixed.kafkas))


def follows_up_to(mixed: Mixed, offset: int, ports: list[int] | None = None, *, node_id: int = 1) -> None:
    """A voter has fetched up to there, by the leader's account."""
    until = time.monotonic() + WAIT_S
    while True:
        ends = {row["id"]: row["logEndOffset"] for row in mixed.describe(ports)["voters"]}
        if ends[node_id] >= offset:
            return
        assert time.monotonic() < until, f"they have fetched up to {ends}, node {node_id} not {offset}"
