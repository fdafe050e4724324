"""One quorum of our nodes and Apache Kafka's controllers, whatever happens to them: the short form of
`campaign mixed`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.kernels import load

from . import log_lines
from .kafka import Kafka
from .mixed_campaign import play
from .mixed_quorum import Stage

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

COMMITS = 60
SHORT = ("first is observed", pytest.param("another cluster", marks=pytest.mark.long))
"""`campaign mixed` plays all of them, and `.ci/run` some."""


@pytest.fixture
def stage(tmp_path: Path, kafka: Kafka) -> Iterator[Stage]:
    made = Stage(kafka, load("native"), tmp_path, COMMITS)
    yield made
    made.stop()


@pytest.mark.parametrize("name", SHORT)
def test_all_agree_and_log_what_kafka_s_controllers_do(stage: Stage, name: str) -> None:
    figures = play(stage, name)
    assert figures["high_watermark"] > 3 * COMMITS
    assert log_lines.unheard_of(stage.members, name) == []
