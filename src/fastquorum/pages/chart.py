"""Charts as data: what is drawn, not how. `svg` draws them."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Scale = Literal["linear", "count", "log", "percentile", "time"]
"""count: whole numbers. percentile: values are 1 / (1 - fraction), drawn as log, labelled as percentages. time: seconds
since 1970, labelled in UTC."""
ROWS_MAX: Final = 40
"""Most bars or strips in one chart; more cannot be told apart."""


class Pen(enum.StrEnum):
    """A colour, by what it means; the first six mean nothing but one another's difference."""

    FIRST = "s0"
    SECOND = "s1"
    THIRD = "s2"
    FOURTH = "s3"
    FIFTH = "s4"
    SIXTH = "s5"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    MUTED = "muted"
    NEUTRAL = "neutral"


SERIES_PENS: Final = (Pen.FIRST, Pen.SECOND, Pen.THIRD, Pen.FOURTH, Pen.FIFTH, Pen.SIXTH)


@dataclass(frozen=True, slots=True)
class Axis:
    """`extent`: values that it shows whatever is drawn on it, as those that another chart begins and ends with.
    `has_zero`: it shows where nothing is; else, of counts, only from the least to the most."""

    label: str
    scale: Scale = "linear"
    extent: tuple[float, ...] = ()
    has_zero: bool = True


@dataclass(frozen=True, slots=True)
class Key:
    """What a colour stands for, as the legend has it."""

    name: str
    pen: Pen


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that happened at a moment: a vertical line with a label."""

    x: float
    label: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """A line; `is_dashed` for what is not measured, `has_points` where each one was a run of its own, `is_step` where a
    value holds until the next. A point whose second value is not a number breaks the line.
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False
    has_points: bool = False
    is_step: bool = False
    pen: Pen | None = None
    """None: one that differs from the others'."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over an axis."""

    name: str
    """Name of the chart's file."""
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    marks: Sequence[Marker] = field(default=())


@dataclass(frozen=True, slots=True)
class Bar:
    """One horizontal bar, of as many parts as the chart has keys; behind it stands `text`, else its length."""

    label: str
    values: Sequence[float]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars in the order given; what is beyond `rows_max` is told in a note, and what was
    left out before, of which the report knows nothing."""

    name: str
    title: str
    x: Axis
    keys: Sequence[Key]
    bars: Sequence[Bar]
    left_out: int = 0
    rows_max: int = ROWS_MAX


@dataclass(frozen=True, slots=True)
class Band:
    """From a place on the axis to another, exclusive; `key`: which of the chart's."""

    begin: float
    end: float
    key: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """What something was, from left to right."""

    label: str
    spans: Sequence[Band]


@dataclass(frozen=True, slots=True)
class Strips:
    """Rows of spans over one axis, usually time. Where there are more spans than can be seen, the later key wins."""

    name: str
    title: str
    x: Axis
    keys: Sequence[Key]
    strips: Sequence[Strip]
    marks: Sequence[Marker] = field(default=())
    left_out: int = 0
    rows_max: int = ROWS_MAX


AnyChart = Chart | Bars | Strips
