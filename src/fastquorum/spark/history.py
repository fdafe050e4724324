"""A history of reports: what each run of a command found, as Parquet, with the time of the run in every row.

A directory for each part of a report; a file for each run, which is there whole or not at all. All files of a part are
one table for whoever reads Parquet.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from fastquorum.errors import UsageError

TIME_COLUMN: Final = "audited_at"
_TIME: Final = pa.timestamp("ms", "UTC")


def append_history(directory: str, tables: Any, now: datetime | None = None) -> None:
    """Add a run. `tables`: one, or several by their names. UsageError: it cannot be written there."""
    import pyarrow.parquet

    moment = now or datetime.now(UTC)
    name = f"{moment.strftime('%Y%m%dT%H%M%S.%f')}Z-{os.getpid()}.parquet"
    named = tables if isinstance(tables, Mapping) else {"": tables}
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
