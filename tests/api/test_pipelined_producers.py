"""Idempotent clients with several requests under way, while segments end: the same answers from both twins."""

import threading
from pathlib import Path
from typing import Literal

import pytest

from fastquorum import sync
from tests.api.nodes import QUICK, WAIT_S, values_of
from tests.node.io.pipelining_client import Answer, PipeliningClient, stamped

CLIENTS = 4
BATCHES = 150
VALUE = b"." * 1_500


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_requests_under_way_at_a_segments_end_are_taken_in_their_order(
    tmp_path: Path, kernels: Literal["native", "pure"]
) -> None:
    """An append that waits for the next segment is its producer's next one; what follows it waits behind it."""
    answers: dict[int, list[Answer]] = {}
    with sync.open(str(tmp_path), **{**QUICK, "segment_bytes": 65_536}, node_id=1, kernels=kernels) as quorum:
        quorum.wait_ready(WAIT_S)
        endpoint = quorum.endpoint

        def run(number: int) -> None:
            with PipeliningClient(endpoint) as client:
                producer_id = client.new_id()
                batches = (stamped([b"%d %d " % (number, at) + VALUE], producer_id, at) for at in range(BATCHES))
                answers[number] = client.pipeline(batches)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [value.removesuffix(VALUE) for value in values_of(quorum)]
    for number in range(CLIENTS):
        assert [(each.error_code, each.error_message) for each in answers[number]] == [(0, None)] * BATCHES
        prefix = b"%d " % number
        assert [value for value in found if value.startswith(prefix)] == [prefix + b"%d " % at for at in range(BATCHES)]
