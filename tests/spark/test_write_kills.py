"""kill -9 of everybody who has a part in writing from Parquet to a quorum: every row is there once, and in order.

`python -m tests.spark.write_campaign --kills 10` is the long run of the same.
"""

from pathlib import Path

import pytest

from tests.spark.write_campaign import CLUSTER, THREADS, campaign


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_leaders_workers_an_executor_and_the_driver_are_killed_in_the_middle_of_batches(tmp_path: Path) -> None:
    with campaign(tmp_path, CLUSTER) as hurt:
        for kill in (
            hurt.kill_leader,
            hurt.kill_workers,
            hurt.kill_executor,
            lambda: hurt.kill_driver(THREADS),
            hurt.kill_leader,
        ):
            hurt.add_files()
            hurt.in_the_middle()
            kill()
        figures = hurt.finish()
    assert figures["kills"] == {"leader": 2, "worker": 1, "executor": 1, "driver": 1}
    assert figures["in_the_midst"] > 0
