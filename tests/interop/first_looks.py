"""Reads right after a change was answered: how often does a broker still return the old state?

The same changes, by librdkafka's admin client, to Kafka's brokers on our controllers and on Kafka's own. The clusters
take turns, so that load on the machine is the same for both. A look is stale if the first answer is of before the
change: programs that read what they wrote then see the old state.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from .brokers import BROKERS, QUIET, WAIT_S, Cluster, cluster
from .kafka import Kafka
from .nodes import DIRECTORY_IDS

AGAIN_S: Final = 0.002
"""Between two looks."""
SIGMAS: Final = 3.0
"""By so many standard deviations ours may be stale more often: beyond it chance is not the reason."""
PARTITIONS: Final = 3
WARM_UP: Final = 3
"""Rounds that do not count: JVMs compile, clients connect."""


class Look:
    """What the looks after one kind of change saw."""

    def __init__(self) -> None:
        self.count = 0
        self.stale = 0
        self.seen_after_ms: list[float] = []

    def add(self, is_stale: bool, seen_after_s: float) -> None:
        self.count += 1
        self.stale += is_stale
        self.seen_after_ms.append(1000 * seen_after_s)

    def as_json(self) -> dict[str, Any]:
        ordered = sorted(self.seen_after_ms)
        return {
            "looks": self.count,
            "stale": self.stale,
            "seen_after_ms": {"p50": round(ordered[len(ordered) // 2], 1), "max": round(ordered[-1], 1)},
        }


class Program:
    """A program that changes one cluster, and looks at once."""

    def __init__(self, bootstrap: str, replicas: int) -> None:
        self.looks: dict[str, Look] = {}
        self._replicas = replicas
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

    @property
    def total(self) -> tuple[int, int]:
        """(stale, looks)."""
        looks = self.looks.values()
        return sum(each.stale for each in looks), sum(each.count for each in looks)

    def round(self, number: int) -> None:
        """Every kind of change once, on things of its own."""
        topic, user = f"topic-{number}", f"user-{number}"
        created = NewTopic(topic, PARTITIONS, self._replicas)
        self._admin.create_topics([created])[topic].result(WAIT_S)
        self._look("topic created", lambda: self._has(topic))
        value, resource = str(1_000_000 + number), ConfigResource(ResourceType.TOPIC, topic)
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([change])[change].result(WAIT_S)
        self._look("configuration set", lambda: self._retention_ms(resource) == value)
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        self._admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, scram, b"password")])[user].result(
            WAIT_S
        )
        self._look("credential set", lambda: self._has_credential(user))
        self._admin.delete_topics([topic])[topic].result(WAIT_S)
        self._look("topic deleted", lambda: not self._is_known(topic))

    def _look(self, what: str, is_seen: Callable[[], bool]) -> None:
        began = time.monotonic()
        is_stale = False
        while not _unless_refused(is_seen):
            is_stale = True
            assert time.monotonic() < began + WAIT_S, f"{what} is never seen"
            time.sleep(AGAIN_S)
        self.looks.setdefault(what, Look()).add(is_stale, time.monotonic() - began)

    def _has(self, topic: str) -> bool:
        found = self._admin.list_topics(topic, timeout=WAIT_S).topics[topic]
        return found.error is None and len(found.partitions) == PARTITIONS

    def _is_known(self, topic: str) -> bool:
        return self._admin.list_topics(topic, timeout=WAIT_S).topics[topic].error is None

    def _retention_ms(self, resource: ConfigResource) -> str:
        value: str = self._admin.describe_configs([resource])[resource].result(WAIT_S)["retention.ms"].value
        return value

    def _has_credential(self, user: str) -> bool:
        return bool(self._admin.describe_user_scram_credentials([user])[user].result(WAIT_S))


def _unless_refused(is_seen: Callable[[], bool]) -> bool:
    """A broker that does not know of it may answer with an error."""
    try:
        return is_seen()
    except KafkaException:
        return False


def problems(ours: tuple[int, int], theirs: tuple[int, int]) -> list[str]:
    """Each is (stale, looks). Ours may not be stale more often than Kafka's controllers', but for chance."""
    share, their_share = ours[0] / ours[1], theirs[0] / theirs[1]
    pooled = (ours[0] + theirs[0]) / (ours[1] + theirs[1])
    by_chance = SIGMAS * math.sqrt(pooled * (1 - pooled) * (1 / ours[1] + 1 / theirs[1]))
    if share - their_share <= by_chance:
        return []
    return [
        f"{share:.0%} of first looks are stale on our controllers, {their_share:.0%} on Kafka's: more than by chance "
        f"({by_chance:.0%})"
    ]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=50, metavar="N", help="of four changes on each cluster (50)")


def campaign(kafka: Kafka, rounds: int, say: Callable[[str], None], brokers: Sequence[int] = BROKERS) -> dict[str, Any]:
    """Return a report. Each kind of controllers has a cluster of these brokers of its own."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        programs = {}
        for name, theirs in (("ours", ()), ("kafkas", tuple(DIRECTORY_IDS))):
            say(f"{len(brokers)} of Kafka's brokers, controllers: {name}")
            root = Path(scratch) / name
            root.mkdir()
            running: Cluster = stack.enter_context(cluster(kafka, root, brokers=brokers, theirs=theirs, settings={}))
            programs[name] = Program(running.bootstrap, len(brokers))
        for number in range(-WARM_UP, rounds):
            if number == 0:
                for program in programs.values():
                    program.looks.clear()
            # Neither always comes first.
            for name in sorted(programs, reverse=number % 2 == 0):
                programs[name].round(number)
        totals = {name: program.total for name, program in programs.items()}
    return {
        "kafka": kafka.version,
        "stale_percent": {name: round(100 * stale / count, 1) for name, (stale, count) in totals.items()},
        "looks": {
            name: {what: look.as_json() for what, look in program.looks.items()} for name, program in programs.items()
        },
        "problems": problems(totals["ours"], totals["kafkas"]),
    }
