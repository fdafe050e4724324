"""A history of reports: what each run of a command found, as Parquet, with the time of the run in every row.

A directory for each part of a report; a file for each run, which is there whole or not at all. All files of a part are
one table for whoever reads Parquet, so a directory has the runs of one command. A later version of that may have other
parts and columns: more of them, or fewer.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from fastquorum.errors import UsageError
from fastquorum.storage.names import META_PROPERTIES

TIME_COLUMN: Final = "audited_at"
_SUFFIX: Final = ".parquet"
_COMMAND: Final = b"fastquorum.command"
"""Key of the command's name in each file's metadata."""
_TIME: Final = pa.timestamp("ms", "UTC")


def append_history(directory: str, command: str, tables: Any, now: datetime | None = None) -> None:
    """Add a run of `command`. `tables`: one, or several by their names.

    Raises:
        UsageError: it cannot be written there; or what is there is of another command.
    """
    import pyarrow.parquet

    moment = now or datetime.now(UTC)
    name = f"{moment.strftime('%Y%m%dT%H%M%S.%f')}Z-{os.getpid()}{_SUFFIX}"
    named = tables if isinstance(tables, Mapping) else {"": tables}
    _check_same(directory, command, {part: {TIME_COLUMN, *table.column_names} for part, table in named.items()})
    for part, table in named.items():
        place = os.path.join(directory, part) if part else directory
        times = pa.array([moment] * table.num_rows, _TIME)
        whole = table.add_column(0, pa.field(TIME_COLUMN, _TIME, nullable=False), times)
        whole = whole.replace_schema_metadata({**(whole.schema.metadata or {}), _COMMAND: command.encode()})
        try:
            os.makedirs(place, exist_ok=True)
            draft = os.path.join(place, f".{name}.tmp")
            pyarrow.parquet.write_table(whole, draft)
            os.replace(draft, os.path.join(place, name))
        except OSError as error:
            raise UsageError(f"{place}: {error.strerror or error}", "name a directory that can be written") from error


def check_history(directory: str, command: str) -> None:
    """Raise UsageError if what is there is said to be of another command, cannot be read, or is a node's."""
    for place in (directory, os.path.dirname(os.path.abspath(directory))):
        if os.path.lexists(os.path.join(place, META_PROPERTIES)):
            raise UsageError(f"{place} is a node's data directory", "name another directory for the history")
    _check_command(directory, _schemas_of(directory), command)


def _check_command(directory: str, schemas: Mapping[str, pa.Schema], command: str) -> None:
    for schema in schemas.values():
        there = (schema.metadata or {}).get(_COMMAND, command.encode()).decode(errors="replace")
        if there != command:
            raise _another(directory, f"`fastquorum {there}`")


def _check_same(directory: str, command: str, wanted: Mapping[str, set[str]]) -> None:
    """Raise UsageError if neither is more of the other: the parts that are there and these, and the columns of each."""
    schemas = _schemas_of(directory)
    _check_command(directory, schemas, command)
    there = {part: set(schema.names) for part, schema in schemas.items()}
    both = [(set(there), set(wanted)), *((there[part], wanted[part]) for part in there.keys() & wanted.keys())]
    if not all(one <= other or other <= one for one, other in both):
        raise _another(directory, "another command")


def _another(directory: str, owner: str) -> UsageError:
    return UsageError(f"{directory} holds the history of {owner}", "name another directory")


def _schemas_of(directory: str) -> dict[str, pa.Schema]:
    """Return the schema of the latest run of each part that is there. Only Parquet files are looked at."""
    import pyarrow.parquet

    found = {}
    try:
        parts = ["", *(each.name for each in os.scandir(directory) if each.is_dir())]
        for part in parts:
            place = os.path.join(directory, part) if part else directory
            files = sorted(each for each in os.listdir(place) if each.endswith(_SUFFIX) and not each.startswith("."))
            if files:
                found[part] = pyarrow.parquet.read_schema(os.path.join(place, files[-1]))
    except FileNotFoundError:
        return {}
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{directory}: {error}", "name a directory of histories, or a new one") from error
    return found
