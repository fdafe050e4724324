"""Which installation the tests agree to judge."""

from pathlib import Path

import pytest

from tests.conftest import ROOT, is_another_checkout


@pytest.mark.parametrize(
    ("package", "refused"),
    [
        (ROOT / "src/fastquorum/__init__.py", False),
        (ROOT / ".venv/lib/python3.11/site-packages/fastquorum/__init__.py", False),
        (Path("/tmp/wheel-test/lib/python3.11/site-packages/fastquorum/__init__.py"), False),
        (Path("/usr/lib/python3/dist-packages/fastquorum/__init__.py"), False),
        (ROOT.parent / "another/src/fastquorum/__init__.py", True),
    ],
)
def test_only_the_sources_of_another_checkout_are_refused(package: Path, refused: bool) -> None:
    assert is_another_checkout(package) == refused
