"""Kafka's brokers on our controllers at size: clients of every kind work throughout, while brokers and controllers are
killed, stopped and started again."""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import fastquorum as fq

from .brokers import Cluster, cluster, wait_for
from .kafka import Kafka
from .mixed import Member
from .traffic import Partition, Traffic, traffic


class Size(NamedTuple):
    """How much of everything there is."""

    topics: int
    partitions: int
    """Partitions of each topic, with a replica on each broker."""
    clients: int
    """Producers, as many transactional producers, and as many consumer groups of two."""
    within_s: float
    """Longest wait for each condition."""


SHORT: Final = Size(topics=4, partitions=3, clients=1, within_s=90.0)


class Run:
    """A cluster, its clients, and what was seen."""

    def __init__(self, kafkas: Cluster, size: Size, say: Callable[[str], None]) -> None:
        self.kafkas = kafkas
        self.size = size
        self.seconds: dict[str, float] = {}
        self._say = say

    @property
    def topics(self) -> list[str]:
        return [f"topic-{number}" for number in range(self.size.topics)]

    @property
    def partitions(self) -> list[Partition]:
        """The topic next to it, so that a transaction is of many of them."""
        return [(topic, number) for number in range(self.size.partitions) for topic in self.topics]

    def step(self, name: str, do: Callable[[], object]) -> None:
        began = time.monotonic()
        do()
        self.seconds[name] = round(time.monotonic() - began, 1)
        self._say(f"{name}: {self.seconds[name]} s")

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        wait_for(what, is_so, self.size.within_s)

    # --- what is done to it -------------------------------------------------------------------------------------------

    def create(self) -> None:
        replicas = str(len(self.kafkas.brokers))
        many = ("--partitions", str(self.size.partitions), "--replication-factor", replicas)
        for topic in self.topics:
            made = self.kafkas.topics("--create", "--topic", topic, *many, "--config", "min.insync.replicas=2")
            assert f"Created topic {topic}." in made
        self.wait("every replica to be in sync", self.kafkas.is_whole)

    def broker_goes_and_returns(self, broker: Member, go: Callable[[], None], clients: Traffic) -> None:
        go()
        self.wait(f"{broker} to be in sync with nobody", lambda: self.kafkas.is_out(broker))
        clients.goes_on(self.size.within_s)
        self.kafkas.start(broker)
        self.wait(f"{broker} to be in sync again", self.kafkas.is_whole)
        clients.goes_on(self.size.within_s)

    def active_controller_is_killed(self, clients: Traffic) -> None:
        """The two that are left make, grow and delete a topic."""
        active = self.kafkas.active_controller()
        active.kill()
        self.kafkas.topics("--create", "--topic", "other", "--partitions", "3", "--replication-factor", "3")
        self.wait("the new topic", lambda: len(self.kafkas.partitions("other")) == 3)
        self.kafkas.topics_in_time("--alter", "--topic", "other", "--partitions", "5")
        self.wait("its new partitions", lambda: len(self.kafkas.partitions("other")) == 5)
        self.kafkas.topics_in_time("--delete", "--topic", "other")
        self.wait("its end", lambda: "other" not in self.kafkas.topics("--list").split())
        clients.goes_on(self.size.within_s)
        self.kafkas.start(active)
        self.kafkas.caught_up(self.size.within_s)

    def controllers_are_restarted(self, clients: Traffic) -> None:
        for controller in self.kafkas.controllers.values():
            controller.stop()
            self.kafkas.start(controller)
            self.kafkas.caught_up(self.size.within_s)
            clients.goes_on(self.size.within_s)

    def preferred_leaders_return(self) -> None:
        self.wait("every replica to be in sync", self.kafkas.is_whole)
        self.kafkas.elect_preferred("--all-topic-partitions")
        self.wait("the preferred leaders", self.kafkas.is_led_as_preferred)


def play(run: Run) -> dict[str, Any]:
    """Everything, on a cluster that has its topics; it is stopped afterwards. AssertionError if a wait is in vain."""
    kafkas, size = run.kafkas, run.size
    killed, stopped = kafkas.brokers[12], kafkas.brokers[13]
    with traffic(kafkas.bootstrap, run.partitions, size.clients) as clients:
        run.step("clients begin", lambda: clients.goes_on(size.within_s))
        run.step("a broker is killed", lambda: run.broker_goes_and_returns(killed, killed.kill, clients))
        run.step("a broker is stopped", lambda: run.broker_goes_and_returns(stopped, stopped.stop, clients))
        run.step("the active controller is killed", lambda: run.active_controller_is_killed(clients))
        run.step("controllers are restarted in turn", lambda: run.controllers_are_restarted(clients))
        run.step("preferred leaders return", run.preferred_leaders_return)
        run.step("clients end", lambda: clients.finish(size.within_s))
    wrong = clients.wrong()
    if "shut down completed" not in stopped.printed():
        wrong.append(f"{stopped} was stopped, and did not end well")
    return finish(run, clients, wrong)


def finish(run: Run, clients: Traffic, wrong: list[str], *more_topics: str) -> dict[str, Any]:
    """The report of clients that have ended, and of directories whose controllers it stops. `more_topics`: there are,
    besides those of the clients."""
    run.step("all are stopped", run.kafkas.stop)
    return {
        **run.size._asdict(),
        "seconds": run.seconds,
        "acknowledged": sum(len(each.acknowledged) for each in clients.writers),
        "committed_in_transactions": sum(len(each.acknowledged) for each in clients.transactors),
        "aborted": len(clients.aborted()),
        "read_by_groups": sum(len(values) for values in clients.groups.values()),
        **images_of(run.kafkas),
        "problems": wrong + different_images(run.kafkas, [*run.topics, *more_topics]),
    }


def images_of(kafkas: Cluster) -> dict[str, Any]:
    """Return what the directories of the stopped controllers hold."""
    found = [fq.log.open(each.directory).verify() for each in kafkas.controllers.values()]
    return {
        "log_starts": [each.start_offset for each in found],
        "log_ends": [each.end_offset for each in found],
        "last_epoch": max(each.last_epoch for each in found),
    }


def different_images(kafkas: Cluster, topics: Sequence[str]) -> list[str]:
    """The directories are sound and closed, and at the lowest end of them hold one image, with these topics."""
    logs = {each: fq.log.open(each.directory) for each in kafkas.controllers.values()}
    verified = {each: log.verify() for each, log in logs.items()}
    wrong = [f"the directory of {each} is not sound and closed" for each, found in verified.items()
             if not (found.is_sound and found.is_closed)]  # fmt: skip
    lowest = min(found.end_offset for found in verified.values())
    first, *others = ((each, log.image(at=lowest)) for each, log in logs.items())
    if {*first[1].topics.ids} != {*topics, "__consumer_offsets", "__transaction_state"}:
        wrong.append(f"the topics are {sorted(first[1].topics.ids)}")
    wrong += [f"{each} has another image than {first[0]} at {lowest}" for each, image in others if image != first[1]]
    return wrong


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topics", type=int, default=100, metavar="N", help="(100)")
    parser.add_argument("--partitions", type=int, default=6, metavar="N", help="of each, three replicas each (6)")
    parser.add_argument(
        "--clients", type=int, default=2, metavar="N", help="producers, transactional producers, consumer groups (2)"
    )
    parser.add_argument("--within", type=float, default=300.0, metavar="SECONDS", help="for each wait (300)")


def campaign(kafka: Kafka, options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """A report."""
    size = Size(options.topics, options.partitions, options.clients, options.within)
    with tempfile.TemporaryDirectory() as scratch, cluster(kafka, Path(scratch)) as kafkas:
        run = Run(kafkas, size, say)
        try:
            run.step("topics are made", run.create)
            report = play(run)
        except AssertionError as failed:
            report = {"problems": [str(failed)]}
    return {"kafka": kafka.version, **report}
