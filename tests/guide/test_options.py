"""The options that the guide lists are those that `open` takes, with the defaults that a node runs by."""

import re
from typing import Final

from fastquorum.api.options import OpenOptions, QuorumOptions
from fastquorum.config import QuorumConfig
from tests.guide.documents import GUIDE

_ROW: Final = re.compile(r"^\| `(\w+)` \| .* \| ([^|]+) \|$", re.MULTILINE)
_UNITS: Final = (
    ("us", ((24 * 3_600_000_000, "d"), (3_600_000_000, "h"), (1_000_000, "s"), (1_000, "ms"))),
    ("bytes", ((1 << 30, "GiB"), (1 << 20, "MiB"))),
)


def listed() -> dict[str, str]:
    """Return the defaults in chapter embed, by option."""
    text = (GUIDE / "embed.md").read_text()
    section = text.partition("\n## Which options are there?\n")[2].partition("\n## ")[0]
    rows = _ROW.findall(section)
    assert len(rows) == len(dict(rows)), "an option is listed twice"
    return dict(rows)


def default_text(name: str) -> str:
    """Return a default of `QuorumConfig` as a program would write it, and in a large unit."""
    value: int = getattr(QuorumConfig(), name)
    for part, units in _UNITS:
        if part in name.split("_"):
            for size, unit in units:
                if value and value % size == 0:
                    return f"`{value:_}` ({value // size} {unit})"
    return f"`{value:_}`"


def test_the_guide_lists_every_option_and_no_other() -> None:
    assert set(listed()) == set(OpenOptions.__annotations__)


def test_the_guide_shows_the_defaults_of_times_and_sizes() -> None:
    shown = listed()
    names = QuorumOptions.__annotations__
    assert {name: shown[name] for name in names} == {name: default_text(name) for name in names}
