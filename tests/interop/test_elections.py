"""What becomes of a partition, decided by us and by Kafka's own `PartitionChangeBuilder`: the same record, or none; but
that whoever is moved away is not eligible here, nor who was so before that was turned off."""

import random
from pathlib import Path
from typing import Any, Final

import pytest

from fastquorum.controller.image.features import Level
from fastquorum.controller.image.partition import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Partition
from fastquorum.controller.state.partition_change import ElectionKind, PartitionChange, Rules
from fastquorum.types import NO_NODE, Uuid
from fastquorum.wire import to_json

from .java_driver import JavaDriver
from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300), pytest.mark.long]

COUNT: Final = 20_000
AT_ONCE: Final = 500
BROKERS: Final = range(1, 7)
TOPIC_ID: Final = Uuid(b"topic" + bytes(10) + b"1")
LEVELS: Final = (7, 11, 12, 16, 17, 22, 23, 30)


def directory(broker: int, number: int = 0) -> Uuid:
    return Uuid(b"directory" + bytes(5) + bytes((broker, number)))


def some(chance: random.Random, among: Any, least: int = 0) -> list[int]:
    """Some of them, in any order, each once."""
    pool = list(among)
    return chance.sample(pool, chance.randint(min(least, len(pool)), len(pool)))


def drawn_partition(chance: random.Random, level: Level) -> Partition:
    """One that Kafka's controller may have made, now or when other features were enabled."""
    has_elr = level.has_eligible_leader_replicas
    replicas = chance.sample(BROKERS, chance.randint(1, 5))
    isr = some(chance, replicas)
    elr = (
        sorted(some(chance, [each for each in replicas if each not in isr]))
        if has_elr and chance.random() < 0.5
        else []
    )
    if not isr and not elr and chance.random() < 0.7:
        isr = replicas[:1]
    adding = some(chance, replicas) if chance.random() < 0.3 else []
    removing = some(chance, [each for each in replicas if each not in adding]) if chance.random() < 0.3 else []
    directories = [chance.choice((directory(each), directory(each, 1), DIRECTORY_UNASSIGNED)) for each in replicas]
    if chance.random() < 0.1:
        directories[0] = DIRECTORY_LOST
    known = some(chance, replicas)[:2] if has_elr and chance.random() < 0.3 else []
    return Partition(
        tuple(replicas),
        tuple(directories),
        tuple(isr),
        chance.choice([*isr, NO_NODE]),
        chance.randint(0, 5),
        chance.randint(0, 50),
        int(chance.random() < 0.2),
        tuple(removing),
        tuple(adding),
        tuple(elr),
        tuple(known),
    )


def drawn(chance: random.Random) -> tuple[PartitionChange, dict[str, Any]]:
    """A partition and what happens to it: for us, and for Kafka."""
    level = Level(chance.choice(LEVELS))
    before = drawn_partition(chance, level)
    active = some(chance, BROKERS)
    online = {each: tuple(directory(each, number) for number in range(chance.randint(0, 2))) for each in BROKERS}
    elr = level.has_eligible_leader_replicas and chance.random() < 0.7
    min_isr = chance.randint(1, 4)
    rules = Rules(level, min_isr, elr, active.__contains__, online.__getitem__, directory)
    change = PartitionChange(TOPIC_ID, 0, before, rules, chance.choice(list(ElectionKind)))
    match chance.randrange(4):
        case 0:
            gone = chance.choice(before.replicas)
            change.isr = tuple(each for each in before.isr if each != gone)
            if chance.random() < 0.5:
                change.unclean_replicas = (gone,)
        case 1:
            change.isr = tuple(some(chance, before.replicas))
            change.recovery = int(chance.random() < 0.3)
        case 2:
            adding = some(chance, [each for each in BROKERS if each not in before.replicas])
            change.adding, change.replicas = tuple(adding), (*adding, *before.replicas)
            change.removing = tuple(some(chance, before.replicas))
        case _:
            pass
    request = {
        "topicId": str(TOPIC_ID),
        "partition": {
            "replicas": before.replicas,
            "directories": [str(each) for each in before.directories],
            "isr": before.isr,
            "removing": before.removing,
            "adding": before.adding,
            "elr": before.elr,
            "lastKnownElr": before.last_known_elr,
            "leader": before.leader,
            "recovery": before.recovery,
            "leaderEpoch": before.leader_epoch,
            "partitionEpoch": before.partition_epoch,
        },
        "active": active,
        "online": {str(broker): [str(each) for each in found] for broker, found in online.items()},
        "defaults": {str(broker): str(directory(broker)) for broker in BROKERS},
        "level": int(level),
        "minIsr": min_isr,
        "isElrEnabled": elr,
        "election": change.election.name,
        "isr": change.isr,
        "replicas": change.replicas,
        "removing": change.removing,
        "adding": change.adding,
        "recovery": change.recovery,
        "unclean": change.unclean_replicas,
    }
    return change, request


def without_who_has_no_replica(kafkas: dict[str, Any] | None, before: Partition) -> dict[str, Any] | None:
    """Kafka's record, but for what we do otherwise: it leaves whoever is moved away eligible."""
    if kafkas is None:
        return None
    found = dict(kafkas)
    elr = found.pop("eligibleLeaderReplicas", None)
    held = found.get("replicas") or before.replicas
    kept = [each for each in (before.elr if elr is None else elr) if each in held]
    return found if kept == list(before.elr) else {**found, "eligibleLeaderReplicas": kept}


def test_partitions_become_what_kafkas_controller_makes_of_them(kafka: Kafka, tmp_path: Path) -> None:
    chance = random.Random(20)
    records = others = 0
    with JavaDriver(kafka, tmp_path, ("Elections.java",)) as elections:
        for _ in range(COUNT // AT_ONCE):
            pairs = [drawn(chance) for _ in range(AT_ONCE)]
            theirs = elections.ask([request for _, request in pairs])
            for (change, request), kafkas in zip(pairs, theirs, strict=True):
                version = change.rules.level.partition_version
                record = change.record()
                ours = None if record is None else to_json(record, version)
                if not change.rules.is_elr_enabled and change.before.isr and change.before.elr:
                    # Kafka's elects whoever was eligible before that was turned off; to ours nobody is any more.
                    assert ours is not None
                    assert ours["eligibleLeaderReplicas"] == []
                    continue
                expected = without_who_has_no_replica(kafkas, change.before) if change.rules.is_elr_enabled else kafkas
                assert ours == expected, request
                records += record is not None
                others += expected != kafkas
    assert records > COUNT // 4
    assert others < COUNT // 100
