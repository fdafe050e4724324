"""What every test relies on: the code under test is this checkout's."""

from pathlib import Path

import fastquorum

ROOT = Path(__file__).resolve().parent.parent

# An editable install wins over PYTHONPATH, so a second checkout would silently test the first one's code. A plain
# install into a virtual environment inside the checkout is fine.
assert Path(str(fastquorum.__file__)).resolve().is_relative_to(ROOT), (
    f"fastquorum is imported from {fastquorum.__file__}, which is not in this checkout ({ROOT}): "
    "install it into a virtual environment in here with  python3 -m venv .venv && .venv/bin/pip install '.[test]'"
)
