"""First looks after a change, in short. The long form: `python -m tests.interop.campaign first-looks`."""

import pytest

from .first_looks import campaign, problems
from .kafka import Kafka


def test_more_stale_looks_than_kafka_s_are_a_problem_only_beyond_chance() -> None:
    assert problems((30, 200), (40, 200)) == []
    assert problems((46, 200), (40, 200)) == []
    assert problems((0, 200), (0, 200)) == []
    (problem,) = problems((184, 200), (30, 200))
    assert "92% of first looks are stale on our controllers, 15% on Kafka's" in problem


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_change_is_looked_at_on_both(kafka: Kafka) -> None:
    report = campaign(kafka, 2, lambda text: None, brokers=(11,))
    for looks in report["looks"].values():
        assert {what: look["looks"] for what, look in looks.items()} == {
            "topic created": 2,
            "configuration set": 2,
            "credential set": 2,
            "topic deleted": 2,
        }
