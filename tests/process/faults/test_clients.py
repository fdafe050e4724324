"""Clients that ask for more than they take, and that send more than is taken."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.conftest import in_process, wait_until
from tests.process.cluster import cluster
from tests.process.faults.consumers import (
    StoppedConsumer,
    forget_peak,
    peak_resident_bytes,
    resident_bytes,
)
from tests.process.faults.settings import ROOMY
from tests.process.judged import under_load
from tests.process.load import fetch_committed
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long

CONSUMERS = 8
ANSWERS = 200
ANSWER_BYTES = 1 << 20
LOG_BYTES = 4 << 20
OWED_BYTES_MAX = 10 << 20
"""For each consumer that does not read, however many answers it asks for: what the node owes one at most, and an answer
that is being made. They ask for 200 MiB each."""


def test_consumers_that_do_not_read_cost_bounded_memory_and_keep_nobody_waiting(tmp_path: Path) -> None:
    with cluster(tmp_path, settings={**ROOMY, "partial.frame.max.ms": 3_000}) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        pid = quorum.nodes[leader].pid
        with under_load(quorum, value_bytes=60_000) as (load, history), ExitStack() as stopped:
            assert history.wait_acked(LOG_BYTES // 60_000, WAIT_S)
            load.pause()
            fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)  # what one that reads needs is not their cost
            before = resident_bytes(pid)
            forget_peak(pid)
            load.resume()
            consumers = [
                stopped.enter_context(StoppedConsumer(quorum.endpoint(leader), ANSWERS, ANSWER_BYTES))
                for _ in range(CONSUMERS)
            ]
            for each in consumers:
                each.wait_answered()
            assert history.wait_acked(20, WAIT_S)
            # They are hung up on in the end; nobody else notices.
            wait_until(lambda: all(each.is_hung_up_on() for each in consumers), WAIT_S)
            assert peak_resident_bytes(pid) - before < CONSUMERS * OWED_BYTES_MAX
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)


# Far more than is taken: a tick alone, of a millisecond, brings more than may wait.
BOUNDS = {"records": ("append.queue.max.records=64", 64), "bytes": ("append.queue.max.bytes=8000", 8000 // 100)}


@pytest.mark.parametrize(("driver", "bound"), [("embedded", "records"), ("client", "bytes")])
def test_more_load_than_is_taken_is_refused_at_once_and_deposes_nobody(tmp_path: Path, bound: str, driver: str) -> None:
    setting, pending_max = BOUNDS[bound]
    (tmp_path / "small.properties").write_text(f"{setting}\n")
    words = ["--data", tmp_path, "--config", tmp_path / "small.properties", "--driver", driver]
    ran = in_process("load", *words, "--rate", "200k", "--seconds", "0.5", "--warmup", "0.2", "--format", "json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert report["acknowledged"] > 0
    assert report["errors"]["overloaded"] > 0
    assert report["acknowledged"] + sum(report["errors"].values()) == report["appends"]
    assert report["errors"].keys() <= {"overloaded", "not_sent", "in_flight_bound"}
    assert report["elections"] == []
    if driver == "embedded":
        # Nothing else is kept: not in the node, nor in front of it.
        assert max(point["in_flight"] for point in report["timeline"]) <= pending_max
