"""kafka-features gives static voters their directories, whoever leads, ours or Kafka's, and all go by it (KIP-853)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.kernels import load
from fastquorum.types import ZERO_UUID, Uuid
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

from .brokers import CLUSTER_ID, FEATURES, WAIT_S, Cluster, cluster, wait_for
from .directories import fastquorum
from .kafka import Kafka
from .mixed import Member, jvm_controller

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600), pytest.mark.long]

NOT_ALL = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it"
UNREAD = "Direct-to-controller communication is not supported"
UPGRADE = ("upgrade", "--feature", "kraft.version=1")


@pytest.fixture(params=[(), (3,)], ids=["ours", "mixed"])
def made(request: pytest.FixtureRequest, tmp_path: Path, kafka: Kafka) -> Iterator[Cluster]:
    with cluster(kafka, tmp_path, theirs=request.param, brokers=(), is_static=True) as started:
        yield started


def directories(made: Cluster) -> dict[int, Uuid]:
    """Return the directory ids of the voters that the leader knows."""
    with QuorumClient(made.endpoints, load("pure")) as client:
        answer = client.describe(Deadline(WAIT_S))
    assert isinstance(answer, DescribeQuorumResponse)
    return {row.replica_id: row.replica_directory_id for row in answer.topics[0].partitions[0].current_voters}


def on_disk(member: Member) -> Uuid:
    found = re.search(r"directory\.id=(\S+)", (member.directory / "meta.properties").read_text())
    assert found is not None
    return Uuid.parse(found[1])


def upgrade(made: Cluster) -> None:
    """Upgrade as soon as the leader knows every voter; before that it refuses in Kafka's words."""
    refused: list[str] = []

    def succeeds() -> bool:
        printed = made.tools.call(FEATURES, "--bootstrap-controller", made.bootstrap_controllers, *UPGRADE)
        if printed.code != 0:
            refused.append(printed.out + printed.err)
        return printed.code == 0

    wait_for("kraft.version 1", succeeds)
    known = (NOT_ALL, UNREAD, "has not registered")
    assert [printed for printed in refused if not any(each in printed for each in known)] == []


def let_lead(made: Cluster, wanted: Member) -> None:
    """By killing whoever leads."""
    while (leader := made.active_controller()) is not wanted:
        leader.kill()
        wait_for("another leader", lambda leader=leader: made.active_controller() is not leader)
        made.start(leader)
        made.caught_up()


def is_known(made: Cluster) -> bool:
    """One of Kafka's that has just started serves no tools before it knows the metadata.version: each is asked."""
    runs = (
        made.tools.call(FEATURES, "--bootstrap-controller", f"127.0.0.1:{member.port}", "describe")
        for member in made.controllers.values()
    )
    return all(printed.code == 0 or UNREAD not in printed.out + printed.err for printed in runs)


def test_static_voters_are_given_the_directories_that_they_have(made: Cluster) -> None:
    assert set(directories(made).values()) == {ZERO_UUID}
    upgrade(made)
    wanted = {each: on_disk(member) for each, member in made.controllers.items()}
    assert directories(made) == wanted
    upgrade(made)  # nothing is changed
    for _ in range(2):
        made.active_controller().kill()
        for member in made.controllers.values():
            if not member.is_started:
                wait_for("another leader", lambda member=member: made.active_controller() is not member)
                made.start(member)
        made.caught_up()
        assert directories(made) == wanted
    made.stop()
    made.start(*made.controllers.values())
    assert directories(made) == wanted
    wait_for("all controllers to have read their log", lambda: is_known(made))
    assert made.level("kraft.version", at_controllers=True) == "1"


def test_our_voters_tell_kafkas_leader_what_they_are(tmp_path: Path, kafka: Kafka) -> None:
    with cluster(kafka, tmp_path, theirs=(3,), brokers=(), is_static=True) as made:
        let_lead(made, made.controllers[3])
        upgrade(made)
        assert made.active_controller() is made.controllers[3]
        assert directories(made) == {each: on_disk(member) for each, member in made.controllers.items()}
        made.controllers[3].kill()
        wait_for("one of ours to lead", lambda: made.active_controller().is_ours)
        assert directories(made) == {each: on_disk(member) for each, member in made.controllers.items()}


def test_a_directory_changes_hands_afterwards_there_and_back(tmp_path: Path, kafka: Kafka) -> None:
    with cluster(kafka, tmp_path, brokers=(), is_static=True) as made:
        upgrade(made)
        wanted = directories(made)
        ours = made.controllers[1]
        ours.stop()
        fastquorum("handover", "--to-kafka", ours.directory)
        theirs = jvm_controller(
            kafka, ours.directory, 1, ours.port, CLUSTER_ID, voters=made.voters, static=True, formatted=True
        )
        made.controllers[1] = theirs
        made.start(theirs)
        let_lead(made, theirs)
        assert directories(made) == wanted
        theirs.stop()
        fastquorum("handover", "--from-kafka", ours.directory)
        made.controllers[1] = ours
        made.start(ours)
        made.caught_up()
        assert directories(made) == wanted
