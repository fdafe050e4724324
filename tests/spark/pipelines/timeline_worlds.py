"""Logs for `timeline`: from steps to rows of table `records`, at random, and as kafka-dump-log printed a real one."""

import copy
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from fastquorum.spark.pipelines.timeline import Timeline, timeline_of
from fastquorum.spark.pipelines.timeline.history import History

from .timeline_model import BROKER, SCHEMA, TOPIC, Step, World

CLUSTER = Path(__file__).parents[2] / "golden" / "kafka-4.3.0" / "cluster"
BATCH = re.compile(r"baseOffset: .* partitionLeaderEpoch: (\d+)")
RECORD = re.compile(r"\| offset: \d+ CreateTime: (\d+) .*? headerKeys: \[\] (payload|\w+):? (\{.*)")
CONTROL_NAMES = {"LeaderChange": "LEADER_CHANGE", "KRaftVersion": "KRAFT_VERSION", "KRaftVoters": "KRAFT_VOTERS"}


def records(steps: list[Step], node_id: int = 1, first_offset: int = 0) -> pa.Table:
    rows = [
        {
            "cluster_id": "c",
            "node_id": node_id,
            "directory": f"/n{node_id}",
            "offset": first_offset + at,
            "epoch": step.epoch,
            "timestamp": step.time_ms * 1000,
            "is_control": step.is_control,
            "type": step.type,
            "version": 0,
            "data": json.dumps(step.data, separators=(",", ":")),
        }
        for at, step in enumerate(steps)
    ]
    whole = pa.schema([field if field.name != "timestamp" else ("timestamp", pa.int64()) for field in SCHEMA])
    return pa.Table.from_pylist(rows, whole).cast(SCHEMA)


def dumped(name: str) -> Iterator[Step]:
    """What kafka-dump-log printed of a log."""
    epoch = -1
    with gzip.open(CLUSTER / name, "rt", encoding="utf-8") as lines:
        for line in lines:
            if found := BATCH.match(line):
                epoch = int(found[1])
            elif found := RECORD.match(line):
                data = json.loads(found[3])
                is_control = found[2] != "payload"
                kind = CONTROL_NAMES[found[2]] if is_control else data["type"]
                yield Step(int(found[1]), kind, data if is_control else data["data"], epoch, is_control)


# --- single records ---------------------------------------------------------------------------------------------------


def topic(time_ms: int, name: str = "t", topic_id: str | None = None) -> Step:
    return Step(time_ms, "TOPIC_RECORD", {"name": name, "topicId": topic_id or f"id-{name}"})


def removal(time_ms: int, name: str = "t") -> Step:
    return Step(time_ms, "REMOVE_TOPIC_RECORD", {"topicId": f"id-{name}"})


def partition(time_ms: int, leader: int, replicas: list[int], isr: list[int] | None = None, **more: Any) -> Step:
    data = {
        "partitionId": 0,
        "topicId": "id-t",
        "replicas": replicas,
        "isr": replicas if isr is None else isr,
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": leader,
    }
    return Step(time_ms, "PARTITION_RECORD", data | more)


def change(time_ms: int, **fields: Any) -> Step:
    return Step(time_ms, "PARTITION_CHANGE_RECORD", {"partitionId": 0, "topicId": "id-t"} | fields)


def least(time_ms: int, kind: int, name: str, value: str | None) -> Step:
    data = {"resourceType": kind, "resourceName": name, "name": "min.insync.replicas", "value": value}
    return Step(time_ms, "CONFIG_RECORD", data)


def registered(time_ms: int, broker_id: int, incarnation: str = "i1", *, fenced: bool = True) -> Step:
    data = {
        "brokerId": broker_id,
        "incarnationId": incarnation,
        "brokerEpoch": 7,
        "rack": None,
        "fenced": fenced,
        "inControlledShutdown": False,
    }
    return Step(time_ms, "REGISTER_BROKER_RECORD", data)


def broker_change(time_ms: int, broker_id: int, **fields: int) -> Step:
    return Step(time_ms, "BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": broker_id, "brokerEpoch": 7} | fields)


def noop(time_ms: int) -> Step:
    return Step(time_ms, "NO_OP_RECORD")


def image_of(world: World, time_ms: int) -> list[Step]:
    """A snapshot of all but brokers."""
    steps = [topic(time_ms, name, topic_id) for topic_id, name in world.topics.items()]
    steps += [least(time_ms, kind, name, value) for (kind, name), value in world.configs.items()]
    return steps + [Step(time_ms, "PARTITION_RECORD", each) for each in world.partitions.values()]


# --- at random --------------------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> list[Step]:
    """Valid ones of up to forty records: whatever is drawn is bent to what there is."""
    world, kept, steps = World(), None, []
    time_ms = 0
    for made in range(draw(st.integers(0, 40))):
        time_ms = max(time_ms + draw(st.integers(-4, 12)), 0)
        marker = draw(st.integers(0, 11))
        if marker == 0 and kept is None:
            kept = copy.deepcopy(world)
            steps.append(Step(time_ms, "BEGIN_TRANSACTION_RECORD"))
        elif marker < 3 and kept is not None:
            steps.append(Step(time_ms, "END_TRANSACTION_RECORD" if marker else "ABORT_TRANSACTION_RECORD"))
            world, kept = (kept if marker == 0 else world), None
        else:
            step = draw(_steps(world, time_ms, made))
            world.apply(step.type, copy.deepcopy(step.data))
            steps.append(step)
    return steps


@st.composite
def _steps(draw: st.DrawFn, world: World, time_ms: int, made: int) -> Step:
    """One that fits the world."""
    nodes = st.lists(st.integers(1, 3), unique=True)
    kind = draw(st.integers(0, 9))
    if kind <= 4 and world.partitions and draw(st.booleans()):
        return _change(draw, time_ms, *draw(st.sampled_from(sorted(world.partitions))))
    if kind <= 2 and world.topics:
        replicas = draw(nodes.filter(bool))
        isr = draw(st.sampled_from([replicas, replicas[:1], []]))
        topic_id, number = draw(st.sampled_from(sorted(world.topics))), draw(st.integers(0, 1))
        return partition(
            time_ms, draw(st.sampled_from([-1, *isr])), replicas, isr, topicId=topic_id, partitionId=number
        )
    if kind == 3 and world.topics:
        return Step(time_ms, "REMOVE_TOPIC_RECORD", {"topicId": draw(st.sampled_from(sorted(world.topics)))})
    if kind == 4:
        owner = draw(st.sampled_from([(TOPIC, "a"), (TOPIC, "b"), (BROKER, ""), (BROKER, "1")]))
        return least(time_ms, *owner, draw(st.sampled_from([None, "1", "2", "3"])))
    if kind == 5 and (free := sorted({"a", "b"} - set(world.topics.values()))):
        return topic(time_ms, draw(st.sampled_from(free)), f"id-{made}")
    broker_id = draw(st.integers(1, 3))
    if kind == 6:
        return registered(time_ms, broker_id, f"i{draw(st.integers(1, 3))}", fenced=draw(st.booleans()))
    if kind == 7 and broker_id in world.brokers:
        fields = {"fenced": draw(st.integers(-1, 1)), "inControlledShutdown": draw(st.integers(0, 1))}
        return broker_change(time_ms, broker_id, **{name: each for name, each in fields.items() if each})
    if kind == 8 and broker_id in world.brokers:
        return Step(time_ms, "UNREGISTER_BROKER_RECORD", {"brokerId": broker_id, "brokerEpoch": 7})
    return noop(time_ms)


def _change(draw: st.DrawFn, time_ms: int, topic_id: str, number: int) -> Step:
    nodes = st.lists(st.integers(1, 3), unique=True)
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["isr"] = draw(nodes)
    if draw(st.booleans()):
        fields["leader"] = draw(st.sampled_from([-1, 1, 2, 3]))
    if draw(st.integers(0, 3)) == 0:
        fields["replicas"] = draw(nodes.filter(bool))
        fields["addingReplicas"] = fields["replicas"][: draw(st.integers(0, 1))]
    return change(time_ms, topicId=topic_id, partitionId=number, **fields)


def timeline(records: pa.Table, image: pa.Table | None = None, committed_end: int | None = None) -> Timeline:
    """Return the timeline of one cluster's records. Arguments as of `History.of`."""
    return timeline_of(History.of(records, image, committed_end))
