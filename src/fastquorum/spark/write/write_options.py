"""What a write is told: option names as Spark's users write them, each read once and checked, and the columns it takes.

An unknown option, value or column is refused with the known ones, since Spark itself takes any.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.client.endpoints import parse_endpoints
from fastquorum.errors import UsageError
from fastquorum.kernels import BATCH_BYTES_MAX
from fastquorum.types import Endpoint

TIMEOUT_S: Final = 60.0
BATCH_BYTES_MIN: Final = 1024
_TEXT: Final = "string or binary"
_HEADERS: Final = "array<struct<key: string, value: binary or string>>"
COLUMNS: Final = {"value": _TEXT, "key": _TEXT, "headers": _HEADERS}
"""What may be written, and as what; `value` must be there."""
_OF_SPARK: Final = frozenset(("checkpointlocation", "path"))
"""Spark passes on what is its own."""


class WriteOptions(NamedTuple):
    """Options of one write. Travels to executors."""

    bootstrap: tuple[Endpoint, ...]
    writer: str | None
    """None: every job is another writer."""
    timeout_s: float
    batch_bytes_max: int


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """UsageError: an unknown option, a value that does not fit its option, or no quorum is named."""
    known = {name.lower(): name for name in _READERS}
    texts: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() in _OF_SPARK and not (name.lower() == "path" and str(value).strip()):
            continue
        if name.lower() not in known:
            raise UsageError(
                f"a write has no option {name!r}", f"the options of a write are {', '.join(sorted(_READERS))}"
            )
        texts[known[name.lower()]] = str(value).strip()
    if not texts.get("bootstrap"):
        raise UsageError(
            "no quorum is named to write to", 'option("bootstrap", "HOST:PORT,...") names some of its nodes'
        )
    return WriteOptions(**{field: read(texts.get(name)) for name, (field, read) in _READERS.items()})


def _bootstrap(value: str | None) -> tuple[Endpoint, ...]:
    return parse_endpoints("option bootstrap", value or "")


def _writer(value: str | None) -> str | None:
    if value is not None and not value:
        raise UsageError("option writer is empty", "it is a name by which a repeated job is recognised")
    return value


def _timeout_s(value: str | None) -> float:
    try:
        seconds = TIMEOUT_S if value is None else float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UsageError(f"option timeout is {value!r}", "it is a number of seconds, above 0")
    return seconds


def _batch_bytes(value: str | None) -> int:
    if value is None:
        return BATCH_BYTES_MAX
    if not (value.isascii() and value.isdigit() and BATCH_BYTES_MIN <= int(value) <= BATCH_BYTES_MAX):
        raise UsageError(
            f"option batchBytes is {value!r}", f"it is a number of bytes, {BATCH_BYTES_MIN} to {BATCH_BYTES_MAX}"
        )
    return int(value)


_READERS: Final[Mapping[str, tuple[str, Callable[[str | None], Any]]]] = {
    "bootstrap": ("bootstrap", _bootstrap),
    "writer": ("writer", _writer),
    "timeout": ("timeout_s", _timeout_s),
    "batchBytes": ("batch_bytes_max", _batch_bytes),
}


def check_columns(schema: pa.Schema) -> None:
    """UsageError, which names the column: one that no record has, that is of another type, or there twice."""
    for field in schema:
        if field.name not in COLUMNS:
            raise UsageError(
                f"a record has no column {field.name!r}", f"the columns are {', '.join(COLUMNS)}; select those"
            )
        fits = _is_headers(field.type) if field.name == "headers" else _is_text(field.type)
        if not fits:
            raise UsageError(f"column {field.name!r} is {field.type}", f"it must be {COLUMNS[field.name]}")
        if schema.names.count(field.name) > 1:
            raise UsageError(f"there are two columns {field.name!r}", "a record has one")
    if "value" not in schema.names:
        raise UsageError("there is no column 'value'", f"the columns are {', '.join(COLUMNS)}")


def _is_text(kind: pa.DataType) -> bool:
    one_of = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_it(kind) for is_it in one_of)


def _is_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = [kind.value_type.field(number) for number in range(kind.value_type.num_fields)]
    return [field.name for field in fields] == ["key", "value"] and all(_is_text(field.type) for field in fields)
