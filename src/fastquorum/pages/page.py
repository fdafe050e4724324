"""A page as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastquorum.pages.chart import AnyChart, Pen

TABLE_ROWS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Card:
    """A figure that is seen first."""

    label: str
    value: str
    pen: Pen | None = None
    """GOOD, WARN or BAD, if it is."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text, shown as it is. `left`: the columns that are words; the others are figures. What is beyond
    `rows_max` is told below it, and what was left out before, of which the report knows nothing."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    left_out: int = 0
    rows_max: int = TABLE_ROWS_MAX
    whole: str = ""
    """What has all rows, where some were left out before."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Text as a terminal shows it."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, and what they are."""

    facts: Mapping[str, str]


Part = Prose | Lines | Table | Facts | AnyChart


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, if it has a title, and what stands below it."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Page:
    """`report`: what the page was made from, as JSON has it: it is in the file too. `readable`: of it, what is also
    shown as text; all of it, unless that is too much, or something else is given. `may_pack`: the report may be
    compressed where it is long."""

    title: str
    heading: str
    subtitles: Sequence[str]
    report: Mapping[str, Any]
    cards: Sequence[Card] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
    report_id: str = "report"
    readable: Mapping[str, Any] | None = None
    may_pack: bool = True
