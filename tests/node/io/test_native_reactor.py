"""The end of the loop beside the native threads: what has arrived by then is not lost."""

from pathlib import Path

from fastquorum import log, sync
from fastquorum.kernels.codes import EVENT_SYNCED
from fastquorum.node.io.native.shell import NativeShell
from fastquorum.node.replica import Replica
from fastquorum.types import Micros
from tests.api.nodes import QUICK, WAIT_S
from tests.node.io.native_rig import until


def test_a_sync_that_ends_as_the_replica_does_is_counted_and_the_log_closed(tmp_path: Path) -> None:
    one = sync.open(tmp_path, node_id=1, **QUICK)
    one.wait_ready(WAIT_S)
    driver = one._node._shell
    assert isinstance(driver, NativeShell)

    def end_while_it_syncs(replica: Replica, now: Micros) -> None:
        replica.halt(None, now)
        driver._shell.hold_syncs(False)

        def has_arrived() -> bool:
            driver.collect()
            return any(event[0] == EVENT_SYNCED for event in driver.events)

        until(has_arrived, "the end of the sync")

    driver._shell.hold_syncs(True)
    one.append_nowait(b"written, and about to be synced")
    one._node._reactor.post(end_while_it_syncs)
    one.close()
    assert log.open(str(tmp_path)).verify().is_closed
