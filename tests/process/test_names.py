"""Names and addresses as real networks have them, in short; all cases: `python -m tests.process.campaign names`."""

from pathlib import Path

import pytest

from tests.privileges import missing
from tests.process.names.campaign import missing_namespaces, run_case

pytestmark = pytest.mark.long


@pytest.mark.parametrize("case", ["all_at_once", "own_name_is_loopback"])
def test_a_quorum_forms_and_fails_over_whatever_its_name_server_does(tmp_path: Path, case: str) -> None:
    reason = missing_namespaces()
    if reason:
        missing(reason)
    run_case(case, tmp_path)
