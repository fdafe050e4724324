"""What a read is told: option names as Spark's users write them, each read once and checked.

An unknown option or value is refused with the known ones, since Spark itself takes any.
"""

import enum
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from fastquorum.client.endpoints import parse_endpoints
from fastquorum.errors import UsageError
from fastquorum.kernels.rows import RowFilter
from fastquorum.meant import one_of
from fastquorum.spark.stored.paths import joined
from fastquorum.spark.stored.reading import Mode, mode_of
from fastquorum.spark.stored.splits import SPLIT_BYTES
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES

_TYPES: Final = {name: number for number, name in ROW_TYPE_NAMES.items()}
_PUSHDOWN: Final = "pushdown"
_YES: Final = {"true": True, "false": False}
_PATHS: Final = "paths"
"""Spark's own name, where it is given several."""
TABLE: Final = "records"
"""Where no table is named."""
TIMEOUT_S: Final = 60.0
"""Several elections, and a node that is slow to come back."""
_SECONDS_MAX: Final = 1e6
_MS_DIGITS: Final = 13
_SMALL_DIGITS: Final = 5
_YEARS: Final = range(2011, 2200)
"""In which logs were written, since there is Kafka."""
_NUMBER_MAX: Final = 2**63 - 1
"""Offsets, epochs and times have 64 bits at most."""


class CommittedBy(enum.StrEnum):
    """What proves that records in directories are committed."""

    MAJORITY = "majority"
    """They are the same on a majority of the cluster's directories that are given, which are its voters'."""
    SINGLE = "single"
    """A snapshot of the directory covers them: there are none but of what is committed."""


class Starting(enum.StrEnum):
    """Where a stream begins, if not at a number."""

    EARLIEST = "earliest"
    LATEST = "latest"


class ReadOptions(NamedTuple):
    """Options of one read."""

    path: str
    table: str
    columns: tuple[str, ...] | None
    """None: all."""
    types: tuple[str, ...] | None
    typed: bool
    """Whether each type of record has a struct, in place of JSON."""
    topic: str | None
    from_offset: int | None
    """None: from where each log begins, whatever was before."""
    to_offset: int | None
    """Exclusive, as the other two."""
    from_epoch: int | None
    to_epoch: int | None
    from_timestamp_ms: int | None
    """Like the others without a zone in UTC, whatever the session's time zone is: a log says the same to everybody."""
    to_timestamp_ms: int | None
    as_of_offset: int | None
    """Below it; None: all there is."""
    as_of_timestamp_ms: int | None
    diff_from: int | None
    committed_ends: Mapping[str, int]
    """By directory: of an image, nothing from there on."""
    mode: Mode
    split_bytes: int
    bootstrap: str
    """Nodes of a running quorum, in place of a path; empty: none."""
    timeout_s: float
    """Seconds to try to reach a quorum without an answer."""
    committed: CommittedBy | None
    starting_offset: int | Starting
    """Where a stream without a checkpoint starts."""
    offsets_max: int | None
    """Most offsets of a stream's micro-batch; None: no limit."""
    fail_on_data_loss: bool

    @property
    def row_filter(self) -> RowFilter:
        """Filter that the kernels apply to rows."""
        bounds = {
            "offset_min": self.from_offset,
            "offset_max": self.to_offset,
            "epoch_min": self.from_epoch,
            "epoch_max": self.to_epoch,
            "timestamp_ms_min": self.from_timestamp_ms,
            "timestamp_ms_max": self.to_timestamp_ms,
        }
        given: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
        return RowFilter(types=self.numbers_of_types, **given)

    @property
    def numbers_of_types(self) -> frozenset[int] | None:
        return None if self.types is None else frozenset(_TYPES[name] for name in self.types)


def parse_options(given: Mapping[str, str], tables: Iterable[str]) -> ReadOptions:
    """UsageError: an unknown option or table, or a value that does not fit its option."""
    known = {name.lower(): name for name in _READERS}
    texts: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() == _PATHS:
            texts["path"] = joined(json.loads(str(value)))  # of `load([...])`
            continue
        if name.lower() == _PUSHDOWN:
            _refuse_pushdown(str(value))
            continue
        if name.lower() not in known:
            raise UsageError(f"there is no option {name!r}", one_of("options", name, sorted(_READERS)))
        texts[known[name.lower()]] = str(value)
    values = {field: read(texts, name) for name, (field, read) in _READERS.items()}
    if values["table"] not in tables:
        raise UsageError(f"there is no table {values['table']!r}", one_of("tables", values["table"], sorted(tables)))
    if not values["path"] and not values["bootstrap"]:
        hint = 'spark.read.format("fastquorum").load("/var/lib/fastquorum/n1"), or .option("bootstrap", "h1:9093")'
        raise UsageError("no path is given", hint)
    if values["path"] and values["bootstrap"]:
        raise UsageError("both a path and bootstrap are given", "name either directories or a running quorum")
    _check_order(texts, values)
    return ReadOptions(**values)


def _refuse_pushdown(value: str) -> None:
    """UsageError, unless it says what is so anyway. Up to Spark 4.3 all scans of one load, and of one view, share what
    the last of them planned (`PythonScanBuilder`): filters of one query would take rows from another, silently."""
    if value.lower() != "false":
        raise UsageError(
            "option pushdown is gone: Spark gives one query the rows of another one's filters",
            "name what is to be read by options: fromOffset, toOffset, types, topic, fromTimestamp and so on",
        )


def _check_order(texts: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Raise UsageError if nothing can lie between two bounds."""
    for what in ("Offset", "Epoch", "Timestamp"):
        low, high = f"from{what}", f"to{what}"
        start, end = (values[_READERS[name][0]] for name in (low, high))
        if start is not None and end is not None and start > end:
            raise UsageError(f"{low} {texts[low]} lies behind {high} {texts[high]}", "give the earlier one first")


def refuse_streams_options(options: ReadOptions) -> None:
    """Raise UsageError if an option is given that only a stream has."""
    given = {
        "startingOffset": options.starting_offset != Starting.EARLIEST,
        "maxOffsetsPerTrigger": options.offsets_max is not None,
        "committed": options.committed is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"option {name} means nothing to a batch read", "it is for spark.readStream")
    if not options.fail_on_data_loss and not options.bootstrap:
        hint = "it is for a quorum and for streams; mode says how damage is treated"
        raise UsageError("option failOnDataLoss means nothing to a batch read of directories", hint)


# --- one reader for each kind of value --------------------------------------------------------------------------------

Reader = Callable[[Mapping[str, str], str], Any]


def _text(default: str) -> Reader:
    return lambda texts, name: texts.get(name, default).strip()


def _or(default: object, read: Callable[[str, str], object]) -> Reader:
    return lambda texts, name: read(name, texts[name].strip()) if name in texts else default


def _natural(name: str, value: str) -> int:
    if not _is_natural(value):
        raise UsageError(f"option {name} is {value!r}", "it is a whole number from 0 on")
    return _in_range(name, value)


def _is_natural(value: str) -> bool:
    return value.isascii() and value.isdigit()


def _natural_or_earliest(name: str, value: str) -> int | None:
    return None if value.lower() == Starting.EARLIEST else _natural(name, value)


def _in_range(name: str, value: str) -> int:
    if len(value) > len(str(-_NUMBER_MAX)) or abs(int(value)) > _NUMBER_MAX:
        raise UsageError(f"option {name} is {value!r}", f"it is {_NUMBER_MAX} at most")
    return int(value)


def _positive(what: str) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if (number := _natural(name, value)) == 0:
            raise UsageError(f"option {name} is 0", f"it is a number of {what}")
        return number

    return read


def _names(name: str, value: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in value.split(","))
    if not all(names):
        raise UsageError(f"option {name} is {value!r}", "names with commas between them")
    return names


def _topic(name: str, value: str) -> str:
    if not value:
        raise UsageError(f"option {name} is empty", "it is the name of a topic")
    return value


def _type_names(name: str, value: str) -> tuple[str, ...]:
    types = tuple(each.upper() for each in _names(name, value))
    for each in types:
        if each not in _TYPES:
            raise UsageError(f"there is no type {each!r}", one_of("types", each, sorted(_TYPES)))
    return types


def _timestamp(name: str, value: str) -> int:
    """Milliseconds since 1970, or a date and time in ISO form (UTC if no zone is named, whatever the time zone of
    Spark's session), of which a year alone may be left. Digits that may be a date, seconds, or nanoseconds are not
    taken for milliseconds."""
    is_number = value.removeprefix("-").isdigit() and value.isascii()
    if is_number and (value.startswith("-") or _are_milliseconds(value)):
        return _in_range(name, value)
    try:
        moment = datetime(int(value), 1, 1) if is_number and _is_year(value) else datetime.fromisoformat(value)
    except ValueError as error:
        hint = "milliseconds since 1970, which have 13 digits" if is_number else "milliseconds since 1970"
        raise UsageError(f"option {name} is {value!r}", f"{hint}, or a time like 2026-11-24T12:00:00Z") from error
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def _are_milliseconds(digits: str) -> bool:
    """Return whether digits are milliseconds: 13 digits since 2001, and few digits in tests."""
    return len(digits) == _MS_DIGITS or (len(digits) <= _SMALL_DIGITS and not _is_year(digits)) or len(digits) > 19


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and int(digits) in _YEARS


def _moment(name: str, value: str) -> int:
    timestamp_ms = _timestamp(name, value)
    if timestamp_ms < 0:
        raise UsageError(f"option {name} is {value!r}", "it is 1970 or later: there was no log before")
    return timestamp_ms


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < _SECONDS_MAX:
        raise UsageError(f"option {name} is {value!r}", "it is a number of seconds above 0")
    return seconds


def _addresses(name: str, value: str) -> str:
    parse_endpoints(f"option {name}", value)
    return value.replace(" ", "")


def _committed(name: str, value: str) -> CommittedBy:
    try:
        return CommittedBy(value.lower())
    except ValueError as error:
        raise UsageError(f"option {name} is {value!r}", f"it is one of {', '.join(CommittedBy)}") from error


def _starting(name: str, value: str) -> int | Starting:
    try:
        return Starting(value.lower())
    except ValueError:
        if not _is_natural(value):
            hint = f"it is {', '.join(Starting)}, or a whole number from 0 on"
            raise UsageError(f"option {name} is {value!r}", hint) from None
        return _natural(name, value)


def _ends(name: str, value: str) -> dict[str, int]:
    try:
        ends = json.loads(value)
    except ValueError:
        ends = None
    if not isinstance(ends, dict) or not all(type(end) is int and 0 <= end <= _NUMBER_MAX for end in ends.values()):
        raise UsageError(f"option {name} is {value!r}", 'it is JSON, as {"/backup/n1": 3836}: offsets by directory')
    return ends


def _flag(name: str, value: str) -> bool:
    if value.lower() not in _YES:
        raise UsageError(f"option {name} is {value!r}", "it is true or false")
    return _YES[value.lower()]


_READERS: Final[Mapping[str, tuple[str, Reader]]] = {
    "path": ("path", _text("")),
    "table": ("table", _text(TABLE)),
    "columns": ("columns", _or(None, _names)),
    "types": ("types", _or(None, _type_names)),
    "typed": ("typed", _or(False, _flag)),
    "topic": ("topic", _or(None, _topic)),
    "fromOffset": ("from_offset", _or(0, _natural_or_earliest)),
    "toOffset": ("to_offset", _or(None, _natural)),
    "fromEpoch": ("from_epoch", _or(None, _natural)),
    "toEpoch": ("to_epoch", _or(None, _natural)),
    "fromTimestamp": ("from_timestamp_ms", _or(None, _timestamp)),
    "toTimestamp": ("to_timestamp_ms", _or(None, _timestamp)),
    "asOfOffset": ("as_of_offset", _or(None, _natural)),
    "asOfTimestamp": ("as_of_timestamp_ms", _or(None, _moment)),
    "diffFrom": ("diff_from", _or(None, _natural)),
    "committedEnds": ("committed_ends", _or({}, _ends)),
    "mode": ("mode", _or(Mode.FAIL, lambda _, value: mode_of(value))),
    "splitBytes": ("split_bytes", _or(SPLIT_BYTES, _positive("bytes"))),
    "bootstrap": ("bootstrap", _or("", _addresses)),
    "timeout": ("timeout_s", _or(TIMEOUT_S, _seconds)),
    "committed": ("committed", _or(None, _committed)),
    "startingOffset": ("starting_offset", _or(Starting.EARLIEST, _starting)),
    "maxOffsetsPerTrigger": ("offsets_max", _or(None, _positive("offsets above 0"))),
    "failOnDataLoss": ("fail_on_data_loss", _or(True, _flag)),
}
