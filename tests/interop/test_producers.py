"""librdkafka's idempotent producers over segments of 64 KiB: the campaign's short form. Needs no Kafka."""

from pathlib import Path

from .clients import read_by_us
from .nodes import running
from .producers_campaign import ENVIRONMENT, problems, produce_over_segments

RECORDS = 250
"""Records of each producer: some seven segments."""


def test_five_requests_under_way_are_never_refused_for_good_at_a_segments_end(tmp_path: Path) -> None:
    with running(tmp_path, environment=ENVIRONMENT) as nodes:
        produced = produce_over_segments(nodes, RECORDS)
        nodes.wait_caught_up()
        assert problems(produced, read_by_us(nodes.bootstrap)) == []
        assert produced.segments > 5
