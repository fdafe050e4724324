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
    """Voter 1 is ours, 2 and 3 are Kafka's."""

    def __init__(self, root: Path, kafka: Kafka) -> None:
        self.ports = free_ports(3)
        cluster, *ids = [fastquorum("random-uuid").strip() for _ in range(4)]
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        voters = ",".join(
            f"{n}@127.0.0.1:{port}:{id_}" for n, (port, id_) in enumerate(zip(self.ports, ids, strict=True), 1)
        )
        self.ours = our_node(root, 1, voters, cluster)
        self.kafkas = [
            jvm_controller(kafka, root, n, self.ports[n - 1], voters, self.bootstrap, cluster) for n in (2, 3)
        ]
        self.members = {member.id: member for member in (self.ours, *self.kafkas)}

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
        for member in self.members.values():
            member.stop()


@pytest.fixture
def mixed(tmp_path: Path, kafka: Kafka) -> Iterator[Mixed]:
    quorum = Mixed(tmp_path, kafka)
    yield quorum
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


def test_our_node_leads_kafkas_controllers_is_killed_and_follows_them(mixed: Mixed, kernels: Kernels) -> None:
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
    logs = [committed_below(kernels, member, reached) for member in mixed.members.values()]
    assert logs[0] == logs[1] == logs[2]
    assert not any(fatal(member) for member in mixed.kafkas)


def follows_up_to(mixed: Mixed, offset: int) -> None:
    """Our node has fetched up to there, by the leader's account."""
    until = time.monotonic() + WAIT_S
    while True:
        ends = {row["id"]: row["logEndOffset"] for row in mixed.describe()["voters"]}
        if ends[1] >= offset:
            return
        assert time.monotonic() < until, f"ours has fetched up to {ends}, not {offset}"
