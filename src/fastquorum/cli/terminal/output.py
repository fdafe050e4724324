"""Printing: JSON lines, plain tables, and progress bars on a terminal."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence


def print_json(value: object) -> None:
    """One JSON value on one line."""
    print(json.dumps(value))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be, never cut: made to be read, and to be cut up by awk."""
    table = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def tell(text: str) -> None:
    """Print one line on stderr, for the user who waits."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def working(description: str) -> Iterator[None]:
    """Show a sign of life on stderr, if that is a terminal, while the duration is unknown."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(description):
        yield


@contextlib.contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, if that is a terminal; yields what to call with how much more is done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    # Imported here, since few runs show a bar.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # If stdout is not a terminal, its output must not be drawn above the bar.
    drawn = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=drawn) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.advance(task, done)
