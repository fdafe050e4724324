"""Programs of ours are brokers beside Apache Kafka 4.3.0's own controllers."""

from pathlib import Path

import pytest

from fastquorum.broker import State
from fastquorum.errors import NotAdmitted, UsageError
from tests.broker.clusters import create_topic, is_fenced, join, seen
from tests.process.cluster import fixed_ports

from .brokers import wait_for
from .kafka import Kafka
from .mixed import jvm_controller
from .nodes import CLUSTER_ID, DIRECTORY_IDS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300), pytest.mark.long]

WAIT_S = 60.0
SETTINGS = {"broker.session.timeout.ms": 3000}


def test_kafkas_controller_takes_them_in_fences_them_and_lets_them_go(kafka: Kafka, tmp_path: Path) -> None:
    (port,) = fixed_ports(1)
    bootstrap = f"127.0.0.1:{port}"
    voters = f"1@{bootstrap}:{DIRECTORY_IDS[1]}"
    controller = jvm_controller(
        kafka, tmp_path / "c1", 1, port, CLUSTER_ID, voters=voters, bootstrap=bootstrap, settings=SETTINGS
    )
    controller.start()
    try:
        wait_for("the controller", lambda: controller.check() or controller.is_up)
        with pytest.raises(UsageError, match="broker id 1 is a controller's"):
            join(bootstrap, 1, cluster_id=CLUSTER_ID).wait_active(WAIT_S)
        with join(bootstrap, 8, host="h8", port=9092, cluster_id=CLUSTER_ID) as other:
            other.wait_active(WAIT_S)
            first = join(bootstrap, 7, host="h7", port=9092, cluster_id=CLUSTER_ID)
            epoch = first.wait_active(WAIT_S)
            create_topic(bootstrap, "shards", 7, 8)
            seen(first, lambda _: [each for each in first.partitions() if each.is_leader])
            assert first.image.brokers[7].epoch == epoch

            with join(bootstrap, 7, cluster_id=CLUSTER_ID) as second:
                with pytest.raises(NotAdmitted, match="another process is registered"):
                    second.wait_active(0.5)
                first.close()
                assert (first.state, first.view.reason) == (State.GONE, "let go by the controller")
                seen(other, lambda _: [each for each in other.partitions() if each.is_leader])
                assert second.wait_active(WAIT_S) > epoch
                second._member.abort()
            seen(other, lambda view: is_fenced(view, 7))
    finally:
        controller.stop()
