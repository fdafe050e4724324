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

TIME_COLUMN: Final = "audited_at"
_SUFFIX: Final = ".parquet"
_TIME: Final = pa.timestamp("ms", "UTC")


def append_history(directory: str, tables: Any, now: datetime | None = None) -> None:
    """Add a run. `tables`: one, or several by their names.

    Raises:
        UsageError: it cannot be written there; or what is there is of another command.
    """
    import pyarrow.parquet

    moment = now or datetime.now(UTC)
    name = f"{moment.strftime('%Y%m%dT%H%M%S.%f')}Z-{os.getpid()}{_SUFFIX}"
    named = tables if isinstance(tables, Mapping) else {"": tables}
    _check_same(directory, {part: {TIME_COLUMN, *table.column_names} for part, table in named.items()})
    for part, table in named.items():
        place = os.path.join(directory, part) if part else directory
        times = pa.array([moment] * table.num_rows, _TIME)
        whole = table.add_column(0, pa.field(TIME_COLUMN, _TIME, nullable=False), times)
        try:
            os.makedirs(place, exist_ok=True)
            draft = os.path.join(place, f".{name}.tmp")
            pyarrow.parquet.write_table(whole, draft)
            os.replace(draft, os.path.join(place, name))
        except OSError as error:
            raise UsageError(
                f"--append {place}: {error.strerror or error}", "name a directory that can be written"
            ) from error


def _check_same(directory: str, wanted: Mapping[str, set[str]]) -> None:
    """UsageError if neither is more of the other: the parts that are there and these, and the columns of each."""
    there = _columns_of(directory)
    both = [(set(there), set(wanted)), *((there[part], wanted[part]) for part in there.keys() & wanted.keys())]
    if not all(one <= other or other <= one for one, other in both):
        raise UsageError(f"--append {directory}: the history of another command is there", "name another directory")


def _columns_of(directory: str) -> dict[str, set[str]]:
    """Of the latest run of each part that is there. What is no Parquet file is not looked at."""
    import pyarrow.parquet

    found = {}
    try:
        parts = ["", *(each.name for each in os.scandir(directory) if each.is_dir())]
        for part in parts:
            place = os.path.join(directory, part) if part else directory
            files = sorted(each for each in os.listdir(place) if each.endswith(_SUFFIX) and not each.startswith("."))
            if files:
                found[part] = set(pyarrow.parquet.read_schema(os.path.join(place, files[-1])).names)
    except FileNotFoundError:
        return {}
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"--append {directory}: {error}", "name a directory of histories, or a new one") from error
    return found
