"""A slow and obvious twin of `audit_log`: it walks from record to record, and looks at everything after each."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from .timeline_model import Step

Found = tuple[str, int, int | None, int | None]
"""Kind, offset, partition, broker."""
TOPICS = ("id-a", "id-b")


@dataclass
class Judge:
    """What there is, and what was wrong with how it came to be."""

    topics: dict[str, bool] = field(default_factory=dict)
    partitions: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)
    left: dict[int, set[int]] = field(default_factory=dict)
    """By offset of a change: who left an ISR, or the lead, by it."""

    def take(self, offset: int, kind: str, data: dict[str, Any]) -> None:
        topic_id = data.get("topicId", "")
        match kind:
            case "TOPIC_RECORD":
                if self.topics.get(topic_id):
                    self.found.append(("not-replayable", offset, None, None))
                self.topics[topic_id] = True
            case "REMOVE_TOPIC_RECORD":
                if not self.topics.get(topic_id):
                    self.found.append(("not-replayable", offset, None, None))
                self.topics[topic_id] = False
                self.partitions = {key: each for key, each in self.partitions.items() if key[0] != topic_id}
            case "PARTITION_RECORD":
                if not self.topics.get(topic_id):
                    self.found.append(("not-replayable", offset, data["partitionId"], None))
                self.partition(offset, data, self.partitions.get((topic_id, data["partitionId"])), dict(data))
            case "PARTITION_CHANGE_RECORD":
                old = self.partitions.get((topic_id, data["partitionId"]))
                if old is None:
                    self.found.append(("not-replayable", offset, data["partitionId"], None))
                    return
                new = old | data | {"partitionEpoch": old["partitionEpoch"] + 1}
                was_in, is_in = ({*each["isr"]} | {each["leader"]} for each in (old, new))
                self.left[offset] = was_in - ({new["leader"]} if new["leader"] == -1 else is_in)
                new["leaderEpoch"] = old["leaderEpoch"] + ("leader" in data)
                self.partition(offset, data, old, new)
            case _:
                self.broker(offset, kind, data)

    def partition(self, offset: int, data: dict[str, Any], old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        number = new["partitionId"]

        def wrong(kind: str, broker_id: int | None = None) -> None:
            self.found.append((kind, offset, number, broker_id))

        if "partitionEpoch" in data and old is None and new["partitionEpoch"]:
            wrong("partition-epoch-jump")
        if "partitionEpoch" in data and old is not None:
            names = ("leader", "isr", "replicas")
            is_same = all(old[name] == new[name] for name in names)
            grown = new["partitionEpoch"] - old["partitionEpoch"]
            if grown != 1 and not (grown == 0 and is_same):
                wrong("partition-epoch-jump")
            rise = new["leaderEpoch"] - old["leaderEpoch"]
            if rise < 0 or (rise == 0 and new["leader"] != old["leader"]):
                wrong("leader-epoch-backwards")
        for kind, holds in (("isr-outside-replicas", within), ("leader-not-in-isr", in_sync)):
            if not holds(new) and (old is None or holds(old)):
                wrong(kind)
        leader = new["leader"]
        if "leader" in data and leader >= 0:
            broker = self.brokers.get(leader)
            if broker is None or broker["fenced"]:
                wrong("fenced-leads", leader)
            elif broker["shutting"] and (old is None or old["leader"] != leader):
                wrong("shutting-down-elected", leader)
        self.partitions[new["topicId"], number] = new | {"was told": False}

    def broker(self, offset: int, kind: str, data: dict[str, Any]) -> None:
        if kind == "REGISTER_BROKER_RECORD":
            self.register(offset, data)
            return
        broker_id = data.get("brokerId", data.get("id"))
        assert broker_id is not None
        broker = self.brokers.get(broker_id)
        if broker is None or broker["epoch"] != data.get("brokerEpoch", data.get("epoch")):
            self.found.append(("not-replayable", offset, None, broker_id))
            return
        was_fenced = broker["fenced"]
        if kind == "UNREGISTER_BROKER_RECORD":
            del self.brokers[broker_id]
        else:
            fenced = {"FENCE_BROKER_RECORD": 1, "UNFENCE_BROKER_RECORD": -1}.get(kind) or data.get("fenced", 0)
            broker["fenced"] = broker["fenced"] if fenced == 0 else fenced > 0
            broker["shutting"] |= bool(data.get("inControlledShutdown"))
        if not was_fenced and (broker_id not in self.brokers or broker["fenced"]):
            self.left_leading(offset, broker_id)

    def register(self, offset: int, data: dict[str, Any]) -> None:
        broker_id, epoch = data["brokerId"], data["brokerEpoch"]
        former = self.brokers.get(broker_id)
        is_amended = former is not None and (former["incarnation"], former["epoch"]) == (data["incarnationId"], epoch)
        is_clean_up = 0 <= epoch < offset and all(broker_id in self.left.get(at, ()) for at in range(epoch, offset))
        grows = former is None or epoch > former["epoch"]
        if (not is_amended and not (epoch == offset or is_clean_up)) or not (is_amended or grows):
            self.found.append(("broker-epoch-not-offset", offset, None, broker_id))
        self.brokers[broker_id] = {
            "epoch": epoch,
            "incarnation": data["incarnationId"],
            "fenced": data["fenced"],
            "shutting": data["inControlledShutdown"],
        }
        if former is not None and not former["fenced"] and data["fenced"]:
            self.left_leading(offset, broker_id)

    def left_leading(self, offset: int, broker_id: int) -> None:
        """Told once, until the partition changes."""
        for (_, number), each in self.partitions.items():
            if each["leader"] == broker_id and not each.get("was told"):
                each["was told"] = True
                self.found.append(("fenced-leads", offset, number, broker_id))


def within(partition: dict[str, Any]) -> bool:
    return set(partition["isr"]) <= set(partition["replicas"])


def in_sync(partition: dict[str, Any]) -> bool:
    return partition["leader"] == -1 or partition["leader"] in partition["isr"]


def judged(steps: list[Step]) -> list[Found]:
    """All that is wrong with a log from offset 0 on."""
    judge = Judge()
    for offset, step in enumerate(steps):
        judge.take(offset, step.type, step.data)
    return judge.found


# --- at random --------------------------------------------------------------------------------------------------------


@st.composite
def broken_logs(draw: st.DrawFn) -> list[Step]:
    """Draw up to thirty records about a few things, which now and then fit one another."""
    steps = []
    judge = Judge()
    for offset in range(draw(st.integers(0, 30))):
        kind, data = draw(_records(judge, offset))
        judge.take(offset, kind, data)
        steps.append(Step(offset, kind, data))
    return steps


_NODES = st.lists(st.integers(1, 3), unique=True, max_size=3)
_BROKER_CHANGES = ("BROKER_REGISTRATION_CHANGE_RECORD", "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD")


@st.composite
def _records(draw: st.DrawFn, judge: Judge, offset: int) -> tuple[str, dict[str, Any]]:
    choice = draw(st.integers(0, 11))
    topic_id, number = draw(st.sampled_from(TOPICS)), draw(st.integers(0, 1))
    broker_id = draw(st.integers(1, 3))
    if choice <= 1:
        return "TOPIC_RECORD" if choice else "REMOVE_TOPIC_RECORD", {"topicId": topic_id, "name": topic_id}
    if choice <= 3:
        return "PARTITION_RECORD", _partition(draw, judge, topic_id, number)
    if choice <= 7:
        return "PARTITION_CHANGE_RECORD", _change(draw, topic_id, number)
    epoch = judge.brokers.get(broker_id, {}).get("epoch", 3) + (draw(st.integers(0, 9)) == 0)
    if choice == 8 or not judge.brokers:
        return "REGISTER_BROKER_RECORD", {
            "brokerId": broker_id,
            "brokerEpoch": draw(
                st.sampled_from([offset, offset, offset, judge.brokers.get(broker_id, {}).get("epoch", 1)])
            ),
            "incarnationId": draw(st.sampled_from(["i1", "i2"])),
            "fenced": draw(st.booleans()),
            "inControlledShutdown": draw(st.booleans()),
        }
    if choice == 9:
        return "UNREGISTER_BROKER_RECORD", {"brokerId": broker_id, "brokerEpoch": epoch}
    kind = draw(st.sampled_from(_BROKER_CHANGES))
    if kind != _BROKER_CHANGES[0]:
        return kind, {"id": broker_id, "epoch": epoch}
    changed = {"fenced": draw(st.integers(-1, 1)), "inControlledShutdown": draw(st.integers(0, 1))}
    return kind, {"brokerId": broker_id, "brokerEpoch": epoch} | {name: each for name, each in changed.items() if each}


def _partition(draw: st.DrawFn, judge: Judge, topic_id: str, number: int) -> dict[str, Any]:
    old = judge.partitions.get((topic_id, number))
    more = draw(st.integers(-1, 2))
    return {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": draw(_NODES),
        "isr": draw(_NODES),
        "leader": draw(st.integers(-1, 3)),
        "leaderEpoch": max((old or {}).get("leaderEpoch", 0) + draw(st.integers(-1, 1)), 0),
        "partitionEpoch": max((old or {}).get("partitionEpoch", 0) + more, 0),
    }


def _change(draw: st.DrawFn, topic_id: str, number: int) -> dict[str, Any]:
    data: dict[str, Any] = {"partitionId": number, "topicId": topic_id}
    for name, values in (("isr", _NODES), ("replicas", _NODES), ("leader", st.integers(-1, 3))):
        if draw(st.booleans()):
            data[name] = draw(values)
    return data
