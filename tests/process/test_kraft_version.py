"""Static voters are given their directories while they run: real controllers, killed in the middle of it and after it.
KIP-853."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.types import ZERO_UUID, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse
from tests.process.cluster import Cluster, cluster
from tests.process.processes import WAIT_S

SETTINGS: dict[str, object] = {
    "log.kind": "metadata",
    "controller.enable": "true",
    "metadata.max.idle.interval.ms": 20,
    "metadata.log.max.record.bytes.between.snapshots": 3000,
    "metadata.max.retention.bytes": 12000,
    "metadata.log.segment.bytes": 4096,
    "log.preallocate.bytes": 4096,
}
LOOK_S = 0.05
Row = DescribeQuorumResponse.TopicData.PartitionData.ReplicaState


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Cluster]:
    kernels = {1: "native", 2: "native", 3: "pure"}
    with cluster(tmp_path, settings=SETTINGS, kernels=kernels) as started:
        yield started


def described(quorum: Cluster) -> DescribeQuorumResponse.TopicData.PartitionData:
    with QuorumClient([quorum.endpoint(each) for each in quorum.ids], load("pure")) as client:
        return client.describe(Deadline(WAIT_S)).topics[0].partitions[0]


def directories(rows: list[Row]) -> dict[int, Uuid]:
    return {row.replica_id: row.replica_directory_id for row in rows}


def on_disk(quorum: Cluster) -> dict[int, Uuid]:
    disks = {each: RealDisk.open_directory(str(quorum.path(each)), quorum.kernels) for each in quorum.ids}
    return {each: read_identity(disk).directory_id for each, disk in disks.items()}


def ask(quorum: Cluster, *, kills: bool) -> ErrorCode | None:
    """Ask whoever leads to raise the version; None if there is no answer. `kills`: it dies as soon as it is asked."""
    leader = described(quorum).leader_id
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    try:
        with contextlib.closing(Connection(quorum.endpoint(leader), Deadline(WAIT_S))) as connection:
            message = UpdateFeaturesRequest(feature_updates=[update])
            if kills:
                with contextlib.suppress(NoAnswer):
                    connection.request(message, 2, Deadline(0.001))
                quorum.kill(leader)
                quorum.start(leader)
                return None
            answer = connection.request(message, 2, Deadline(WAIT_S))
    except (NoAnswer, NotSent, FastQuorumError):
        return None
    assert isinstance(answer, UpdateFeaturesResponse)
    return ErrorCode(answer.error_code)


def raise_it(quorum: Cluster) -> None:
    until = time.monotonic() + WAIT_S
    while (code := ask(quorum, kills=False)) is not ErrorCode.NONE:
        assert code in (ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NOT_CONTROLLER, None)
        assert time.monotonic() < until, f"still {code}"
        time.sleep(LOOK_S)


def wait_until(what: str, quorum: Cluster, wanted: dict[int, Uuid], *, of_observers: bool = False) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        now = described(quorum)
        if directories(now.observers if of_observers else now.current_voters) == wanted:
            return
        assert time.monotonic() < until, f"still waiting for {what}: {now}"
        time.sleep(LOOK_S)


@pytest.mark.long
def test_killed_in_the_middle_and_all_at_once_they_are_who_they_are(quorum: Cluster) -> None:
    quorum.ready()
    assert set(directories(described(quorum).current_voters).values()) == {ZERO_UUID}
    wanted = on_disk(quorum)
    for _ in range(4):
        ask(quorum, kills=True)
        quorum.ready()
    raise_it(quorum)
    assert directories(described(quorum).current_voters) == wanted
    for _ in range(2):
        quorum.kill(*quorum.ids)
        quorum.start(*quorum.ids)
        quorum.ready()
        assert directories(described(quorum).current_voters) == wanted
        raise_it(quorum)  # it is
    assert quorum.ballots.violations == []


def test_a_voter_on_an_empty_directory_is_none_any_more(quorum: Cluster) -> None:
    """A static voter would have been counted for what its lost directory had promised."""
    quorum.ready()
    wanted = on_disk(quorum)
    raise_it(quorum)
    quorum.kill(3)
    shutil.rmtree(quorum.path(3))
    quorum.start(3)
    quorum.ready(3)
    other = on_disk(quorum)
    assert other[3] != wanted[3]
    wait_until("the stranger to fetch", quorum, {3: other[3]}, of_observers=True)
    assert directories(described(quorum).current_voters) == wanted
