"""A slow and obvious twin of `timeline`: it walks from record to record and looks at everything after each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

CONDITIONS = ("offline", "under_replicated", "under_min_isr")
TOPIC, BROKER = 2, 4
SCHEMA = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory", pa.string()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("is_control", pa.bool_()),
        ("type", pa.string()),
        ("version", pa.int16()),
        ("data", pa.string()),
    ]
)


class Step(NamedTuple):
    """One record, as a log has it."""

    time_ms: int
    type: str
    data: dict[str, Any] = {}  # noqa: RUF012 - never written to
    epoch: int = 1
    is_control: bool = False


@dataclass
class Sums:
    """Sums of one partition."""

    existed_ms: int = 0
    leader_changes: int = 0
    total: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CONDITIONS, 0))
    stretch: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CONDITIONS, 0))
    longest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CONDITIONS, 0))


@dataclass
class World:
    """What there is."""

    topics: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    configs: dict[tuple[int, str], str] = field(default_factory=dict)
    """Values of min.insync.replicas."""
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "TOPIC_RECORD":
                self.topics[data["topicId"]] = data["name"]
            case "REMOVE_TOPIC_RECORD":
                self.configs.pop((TOPIC, self.topics.pop(data["topicId"])), None)
                self.partitions = {key: each for key, each in self.partitions.items() if key[0] != data["topicId"]}
            case "PARTITION_RECORD":
                self.partitions[data["topicId"], data["partitionId"]] = dict(data)
            case "PARTITION_CHANGE_RECORD":
                self.partitions[data["topicId"], data["partitionId"]] |= data
            case "CONFIG_RECORD" if data["name"] == "min.insync.replicas":
                owner = data["resourceType"], data["resourceName"]
                self.configs.pop(owner, None)
                if data["value"] is not None:
                    self.configs[owner] = data["value"]
            case "REGISTER_BROKER_RECORD":
                self.brokers[data["brokerId"]] = dict(data)
            case "UNREGISTER_BROKER_RECORD":
                self.brokers.pop(data["brokerId"], None)
            case "BROKER_REGISTRATION_CHANGE_RECORD":
                broker = self.brokers[data["brokerId"]]
                if data.get("fenced"):
                    broker["fenced"] = data["fenced"] > 0
                if data.get("inControlledShutdown"):
                    broker["inControlledShutdown"] = True

    def least(self, key: tuple[str, int]) -> int:
        partition = self.partitions[key]
        for owner in ((TOPIC, self.topics[key[0]]), (BROKER, str(partition["leader"])), (BROKER, "")):
            if owner in self.configs:
                return min(int(self.configs[owner]), len(partition["replicas"]))
        return min(1, len(partition["replicas"]))

    def conditions(self, key: tuple[str, int]) -> dict[str, bool]:
        partition = self.partitions[key]
        wanted = len(partition["replicas"]) - len(partition["addingReplicas"])
        return {
            "offline": partition["leader"] == -1,
            "under_replicated": len(partition["isr"]) < wanted,
            "under_min_isr": len(partition["isr"]) < self.least(key),
        }


def settled(steps: Iterable[Step]) -> list[Step]:
    """Return the steps that count, with the times at which they came to: never back, and a transaction's as one."""
    counted: list[Step] = []
    pending: list[Step] | None = None
    now = 0
    for step in steps:
        now = max(now, step.time_ms)
        at = step._replace(time_ms=now)
        if step.is_control:
            counted.append(at)
        elif step.type == "BEGIN_TRANSACTION_RECORD":
            pending = []
        elif step.type == "END_TRANSACTION_RECORD":
            assert pending is not None
            counted += [each._replace(time_ms=now) for each in pending]
            pending = None
        elif step.type == "ABORT_TRANSACTION_RECORD":
            pending = None
        else:
            (counted if pending is None else pending).append(at)
    return counted


@dataclass
class Walked:
    """What it all came to."""

    world: World
    names: dict[str, str]
    sums: dict[tuple[str, int], Sums]
    lasted: dict[int, dict[str, int]]
    """Milliseconds of each broker, by state."""
    bounces: dict[int, int]
    led_ms: dict[int, int]


def walk(steps: list[Step], end_ms: int) -> Walked:
    """Walk over settled steps."""
    walked = Walked(World(), {}, {}, {}, {}, {})
    world = walked.world
    incarnations: dict[int, str] = {}
    for at, step in enumerate(steps):
        until = steps[at + 1].time_ms if at + 1 < len(steps) else end_ms
        before = {key: each["leader"] for key, each in world.partitions.items()}
        world.apply(step.type, step.data)
        walked.names |= world.topics
        if step.type == "REGISTER_BROKER_RECORD":
            broker_id, incarnation = step.data["brokerId"], step.data["incarnationId"]
            known = incarnations.setdefault(broker_id, incarnation)
            walked.bounces[broker_id] = walked.bounces.get(broker_id, 0) + (known != incarnation)
            incarnations[broker_id] = incarnation
        look(walked, before, max(until - step.time_ms, 0))
    return walked


def look(walked: Walked, before: dict[tuple[str, int], int], lasted_ms: int) -> None:
    world = walked.world
    for key in walked.sums.keys() - world.partitions.keys():
        walked.sums[key].stretch = dict.fromkeys(CONDITIONS, 0)
    for key, partition in world.partitions.items():
        sums = walked.sums.setdefault(key, Sums())
        leader = partition["leader"]
        sums.existed_ms += lasted_ms
        sums.leader_changes += leader != before.get(key, leader)
        walked.led_ms[leader] = walked.led_ms.get(leader, 0) + lasted_ms
        for name, holds in world.conditions(key).items():
            sums.total[name] += lasted_ms * holds
            sums.stretch[name] = sums.stretch[name] + lasted_ms if holds else 0
            sums.longest[name] = max(sums.longest[name], sums.stretch[name])
    for broker_id, broker in world.brokers.items():
        state = "fenced" if broker["fenced"] else "shutdown" if broker["inControlledShutdown"] else "active"
        states = walked.lasted.setdefault(broker_id, {"fenced": 0, "shutdown": 0, "active": 0})
        states[state] += lasted_ms


def partition_rows(walked: Walked) -> list[dict[str, Any]]:
    """Return rows as `partition_availability` has them."""
    rows = []
    for (topic_id, number), sums in walked.sums.items():
        partition = walked.world.partitions.get((topic_id, number))
        now = dict.fromkeys(CONDITIONS, False) if partition is None else walked.world.conditions((topic_id, number))
        rows.append(
            {
                "topic": walked.names[topic_id],
                "topic_id": topic_id,
                "partition": number,
                "existed_ms": sums.existed_ms,
                **{f"{each}_ms": sums.total[each] for each in CONDITIONS},
                **{f"longest_{each}_ms": sums.longest[each] for each in CONDITIONS},
                "leader_changes": sums.leader_changes,
                "is_there": partition is not None,
                "leader": None if partition is None else partition["leader"],
                **{f"is_{each}": now[each] for each in CONDITIONS},
            }
        )
    return sorted(rows, key=lambda row: (row["topic"], row["topic_id"], row["partition"]))
