"""What mixed quorums go through. Each scenario is also played by Kafka's controllers alone, for the log lines that it
is right to have: so none of them asks who is ours, but `Quorum` and `Stage` do. The first member is ours."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from fastquorum.storage.names import LOG_DIRECTORY
from tests.process.cluster import fixed_ports

from .mixed import Member, Settings
from .mixed_quorum import Place, Quorum, Stage, uuids, wait_for

SLOW_TO_STAND: Final[Settings] = {"controller.quorum.election.timeout.ms": 5000}
"""Settings of nodes that should not be elected first."""
SNAPSHOTS: Final[Settings] = {
    "metadata.log.max.record.bytes.between.snapshots": 50_000,
    "metadata.max.retention.bytes": 1,
}
"""Kafka's controller takes them often, and once a minute it drops all but the last, with the log before it."""
CHUNK_BYTES: Final = 100
CHUNKS: Final[Settings] = {"controller.quorum.fetch.snapshot.max.bytes": CHUNK_BYTES}


def places(count: int, *, static: bool) -> list[Place]:
    """Voters, by `kraft.version` 0 (static) or 1."""
    cluster, *ids = uuids(count + 1)
    ports = fixed_ports(count)
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
    voters = ",".join(
        f"{number}@127.0.0.1:{port}" + ("" if static else f":{own}")
        for number, (port, own) in enumerate(zip(ports, ids, strict=True), 1)
    )
    return [Place(number, port, cluster, voters, bootstrap, static) for number, port in enumerate(ports, 1)]


def trio(
    stage: Stage, at: list[Place], first: Settings | None = None, others: Settings | None = None
) -> tuple[Quorum, Member, Member, Member]:
    members = (stage.first(at[0], first), stage.kafkas(at[1], others), stage.kafkas(at[2], others))
    return Quorum(stage, list(members)), *members


def returns(quorum: Quorum, member: Member) -> None:
    """It was killed: commits go on without it, then it is back and has them all."""
    count = quorum.stage.commits
    quorum.commit(count)
    member.start()
    quorum.commit(count)
    quorum.caught_up(member)
    quorum.stage.say(f"{member} was killed and is back")


# --- voters -----------------------------------------------------------------------------------------------------------


def first_leads(stage: Stage, *, static: bool) -> Quorum:
    """It leads two of Kafka's; each of them is killed as a follower or as the leader, and comes back."""
    count = stage.commits
    quorum, first, second, third = trio(stage, places(3, static=static), others=SLOW_TO_STAND)
    first.start()
    second.start()
    assert quorum.leader() is first
    quorum.commit(count)
    third.start()
    quorum.caught_up(third)
    quorum.commit(count, third.kill)
    returns(quorum, third)
    quorum.commit(count, first.kill)
    returns(quorum, first)
    heir = quorum.follower(besides=first)
    returns(quorum, quorum.elect(heir, count))
    return quorum


def first_joins(stage: Stage, *, static: bool) -> Quorum:
    """Two of Kafka's controllers elect one of them; the first, a voter from the beginning, comes later, is killed as
    their follower, is elected over one of them by its vote, and is killed as the leader."""
    count = stage.commits
    quorum, first, second, third = trio(stage, places(3, static=static))
    second.start()
    third.start()
    quorum.commit(count)
    first.start()
    quorum.commit(count)
    quorum.caught_up(first)
    quorum.commit(count, first.kill)
    returns(quorum, first)
    returns(quorum, quorum.elect(first, count))
    quorum.commit(count, first.kill)
    returns(quorum, first)
    return quorum


# --- observers --------------------------------------------------------------------------------------------------------


def first_is_observed(stage: Stage) -> Quorum:
    """It is the only voter; one of Kafka's controllers observes it, is killed and returns."""
    voter, observer = places(1, static=False)[0], fixed_ports(1)[0]
    first = stage.first(voter)
    return _observed(stage, first, stage.kafkas(replace(voter, node_id=2, port=observer, observes=True)))


def first_observes(stage: Stage) -> Quorum:
    """One of Kafka's controllers is the only voter; the first observes it, is killed and returns."""
    _, voter = places(2, static=False)
    voter = replace(voter, voters=voter.voters.split(",")[1], bootstrap=voter.bootstrap.split(",")[1])
    leader = stage.kafkas(voter)
    return _observed(stage, leader, stage.first(replace(voter, node_id=1, port=fixed_ports(1)[0], observes=True)))


def _observed(stage: Stage, leader: Member, observer: Member) -> Quorum:
    quorum = Quorum(stage, [leader, observer])
    leader.start()
    quorum.commit(stage.commits)
    observer.start()
    quorum.commit(stage.commits)
    quorum.caught_up(observer)
    quorum.commit(stage.commits, observer.kill)
    returns(quorum, observer)
    return quorum


# --- snapshots --------------------------------------------------------------------------------------------------------


def snapshots(stage: Stage) -> Quorum:
    """The leader's log no longer starts at 0. First one of Kafka's leads, and the first joins with an empty directory;
    then the first leads, and one of Kafka's has lost its own."""
    count = stage.commits
    at = places(3, static=True)
    quorum, first, second, third = trio(stage, at, first=CHUNKS, others={**SNAPSHOTS, **CHUNKS})
    second.start()
    third.start()
    quorum.commit(count)
    drops_its_beginning(second)
    drops_its_beginning(third)
    first.start()
    quorum.commit(count)
    quorum.caught_up(first)
    fetched = _newest(first)
    assert len(fetched[1]) > 2 * CHUNK_BYTES
    killed = quorum.elect(first, count)
    shutil.rmtree(killed.directory)
    stage.kafka.storage("format", "-t", at[0].cluster, "-c", killed.config)
    returns(quorum, killed)
    if not stage.is_reference:
        assert (killed.directory / LOG_DIRECTORY / fetched[0]).read_bytes() == fetched[1]
    return quorum


def drops_its_beginning(member: Member) -> None:
    wait_for(f"{member} to drop its log's beginning", lambda: "for deletion because" in member.printed() or None)


def _newest(member: Member) -> tuple[str, bytes]:
    path = max((member.directory / LOG_DIRECTORY).glob("*.checkpoint"))
    return path.name, path.read_bytes()


# --- who does not belong there ----------------------------------------------------------------------------------------


def another_cluster(stage: Stage) -> Quorum:
    """A voter was formatted for another cluster."""
    at = places(3, static=True)
    at[2] = replace(at[2], cluster=uuids(1)[0])
    quorum, first, second, third = trio(stage, at, others=SLOW_TO_STAND)
    first.start()
    second.start()
    quorum.commit(stage.commits)
    undisturbed(quorum, third)
    wait_for("the error that it is given", lambda: "INCONSISTENT_CLUSTER_ID in FETCH" in third.printed() or None)
    third.kill()
    quorum.commit(stage.commits)
    return quorum


def stale_directory(stage: Stage) -> Quorum:
    """A voter comes back on an old copy of its directory, and then on a new one, with another directory id."""
    at = places(3, static=False)
    quorum, first, second, third = trio(stage, at, others=SLOW_TO_STAND)
    first.start()
    second.start()
    third.start()
    quorum.commit(stage.commits)
    quorum.caught_up(third)
    third.stop()
    old = stage.root / "old"
    shutil.copytree(third.directory, old)
    third.start()
    quorum.commit(stage.commits)
    quorum.caught_up(third)
    third.kill()
    shutil.rmtree(third.directory)
    old.rename(third.directory)
    undisturbed(quorum, third)
    quorum.caught_up(third)
    third.kill()
    shutil.rmtree(third.directory)
    stage.kafka.storage("format", "-t", at[0].cluster, "-c", third.config, "--no-initial-controllers")
    undisturbed(quorum, third)
    quorum.caught_up(third)
    return quorum


def undisturbed(quorum: Quorum, stranger: Member) -> None:
    """It starts, and whoever leads goes on doing so."""
    before = quorum.describe()
    stranger.start()
    wait_for(f"{stranger} to be up", lambda: stranger.is_up or None)
    quorum.commit(quorum.stage.commits)
    after = quorum.describe()
    assert (before.leader_id, before.epoch) == (after.leader_id, after.epoch)


# --- directories ------------------------------------------------------------------------------------------------------


def changes_hands(stage: Stage, *, static: bool) -> Quorum:
    """One of Kafka's runs on the first one's directory, is killed there, and the first runs on it again."""
    count = stage.commits
    at = places(3, static=static)
    quorum, first, second, third = trio(stage, at, others=SLOW_TO_STAND)
    first.start()
    second.start()
    third.start()
    quorum.commit(count)
    quorum.caught_up(second, third)
    first.stop()
    quorum.members[0] = theirs = stage.to_kafka(first, at[0])
    theirs.start()
    quorum.commit(count)
    quorum.caught_up(theirs)
    quorum.commit(count, theirs.kill)
    quorum.commit(count)
    quorum.members[0] = again = stage.from_kafka(first, theirs)
    again.start()
    quorum.commit(count)
    quorum.caught_up(again)
    return quorum


Scenario = Callable[[Stage], Quorum]
SCENARIOS: Final[dict[str, Scenario]] = {
    "first leads, directory ids": partial(first_leads, static=False),
    "first leads, static voters": partial(first_leads, static=True),
    "first joins, directory ids": partial(first_joins, static=False),
    "first joins, static voters": partial(first_joins, static=True),
    "first is observed": first_is_observed,
    "first observes": first_observes,
    "snapshots": snapshots,
    "another cluster": another_cluster,
    "stale directory": stale_directory,
    "changes hands, directory ids": partial(changes_hands, static=False),
    "changes hands, static voters": partial(changes_hands, static=True),
}
