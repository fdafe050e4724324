"""Writers while something breaks, and the judgement afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.process.cluster import Cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S


@contextmanager
def under_load(quorum: Cluster, *, beside: bytes = b"?", **how: Any) -> Iterator[tuple[Load, History]]:
    """Writers while something breaks (`how`: of `Load`); afterwards it commits, and nothing acknowledged may be missing
    anywhere it counts. Values that begin with `beside` are somebody else's.
    """
    history = History()
    endpoints = {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}
    with Load(endpoints, history, **how) as load:
        yield load, history
        load.resume()
        assert history.wait_acked(20, WAIT_S)
        load.pause()
        leader = quorum.wait_leader(after_epoch=quorum.epoch() - 1)
        read = fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)
        assert history.judge(each for each in read if not each[1].startswith(beside)).problems == []
    assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
    assert quorum.ballots.violations == []
