"""What the system refuses a node, in short; all of it: `python -m tests.process.campaign injected`."""

from pathlib import Path

import pytest

from fastquorum.storage.names import LOG_DIRECTORY
from tests.process.injected.injection import Fault
from tests.process.injected.running import Case, strike
from tests.process.injected.starting import Refusal, Start, killed, refuse


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [
        Case("follower", Fault("setsockopt", "ENOBUFS")),
        Case("follower", Fault("recvfrom", "ENOMEM"), "pure"),
        Case("alone", Fault("openat", "EMFILE", "1")),
        Case("alone", Fault("ftruncate", "EIO", "1"), "pure"),
    ],
    ids=str,
)
def test_whatever_the_system_refuses_a_node_goes_on_or_says_why_it_ends(tmp_path: Path, case: Case) -> None:
    outcome = strike(case, tmp_path)
    assert outcome.problems == []
    assert outcome.met > 0, "it was never asked"


@pytest.mark.long
def test_a_start_that_is_refused_something_says_so_and_the_next_one_has_all(tmp_path: Path) -> None:
    start = Start(tmp_path / "start", "native")
    killed(start)
    outcome = refuse(
        start, Refusal(Fault("ftruncate", "EIO", "1+"), f"{LOG_DIRECTORY}/{0:020d}.log"), tmp_path / "refused"
    )
    assert outcome.problems == []
