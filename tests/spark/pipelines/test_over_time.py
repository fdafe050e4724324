"""How many at a time: against a model that looks at every millisecond."""

from typing import Any

from hypothesis import given, settings

from fastquorum.spark.pipelines.timeline.over_time import STEPS_MAX

from .timeline_model import CONDITIONS, Step, World, settled
from .timeline_worlds import broker_change, change, logs, noop, partition, records, registered, removal, timeline, topic

NAMES = ("partitions", *CONDITIONS, "brokers", "active_brokers")


def counted(world: World) -> dict[str, int]:
    brokers = world.brokers.values()
    active = sum(not each["fenced"] and not each["inControlledShutdown"] for each in brokers)
    met = [world.conditions(key) for key in world.partitions]
    return {
        "partitions": len(world.partitions),
        **{name: sum(each[name] for each in met) for name in CONDITIONS},
        "brokers": len(world.brokers),
        "active_brokers": active,
    }


def every_ms(steps: list[Step]) -> dict[int, dict[str, int]]:
    """What there was when all of a millisecond had happened."""
    world, left = World(), settled(steps)
    begin = left[0].time_ms if left else 0
    found = {}
    for now in range(begin, max((step.time_ms for step in steps), default=0) + 1):
        while left and left[0].time_ms <= now:
            world.apply(left[0].type, dict(left.pop(0).data))
        found[now] = counted(world)
    return found


def curves(steps: list[Step]) -> dict[str, Any]:
    found: dict[str, Any] = timeline(records(steps)).summary["over_time"]
    return found


@settings(max_examples=100, deadline=None)
@given(logs())
def test_of_each_step_it_is_the_most_at_once_and_the_mean(steps: list[Step]) -> None:
    if not steps:
        return
    found, model = curves(steps), every_ms([noop(steps[0].time_ms), *steps])
    begin, end, length = min(model), max(model), found["step_ms"]
    for name in NAMES:
        most, mean = [], []
        for first in range(begin, end + 1, length):
            inside = [model[now][name] for now in range(first, min(first + length, end + 1))]
            lasting = [model[now][name] for now in range(first, min(first + length, end))]
            most.append(max(inside))
            mean.append(round(sum(lasting) / len(lasting), 6) if lasting else inside[0])
        assert found[name] == {"most": most, "mean": mean}, name


def test_a_long_log_has_as_few_steps_as_a_short_one() -> None:
    short = [change(500_000, isr=[1]), change(500_001, isr=[1, 2])]
    found = curves([topic(0), partition(0, 1, [1, 2]), *short, noop(10**6)])
    assert len(found["partitions"]["most"]) <= STEPS_MAX
    assert sum(found["under_replicated"]["most"]) == 1  # one ms of it is seen
    assert 0 < sum(found["under_replicated"]["mean"]) < 0.001


def test_what_goes_is_no_longer_counted() -> None:
    found = curves([topic(0), partition(0, -1, [1]), removal(3), noop(5)])
    assert found["offline"]["most"] == [1, 1, 1, 0, 0, 0]
    assert found["partitions"]["most"] == [1, 1, 1, 0, 0, 0]


def test_nothing_has_one_step_of_nothing() -> None:
    assert curves([])["partitions"] == {"most": [0], "mean": [0]}


def test_a_brokers_strip_has_every_state_it_was_in() -> None:
    gone = Step(30, "UNREGISTER_BROKER_RECORD", {"brokerId": 7, "brokerEpoch": 7})
    found = timeline(
        records([noop(2), registered(5, 7), broker_change(10, 7, fenced=-1), gone, registered(50, 7, "i2"), noop(60)])
    )
    assert found.summary["strips"] == [
        {
            "broker_id": 7,
            "spans": [["fenced", 3, 8], ["active", 8, 28], ["unregistered", 28, 48], ["fenced", 48, 58]],
        }
    ]
