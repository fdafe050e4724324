"""What the demo shows: live in a terminal, line by line elsewhere, one JSON object with --format json."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from fastquorum.cli.terminal.output import print_json


class DemoEnded(NamedTuple):
    """What there is to tell of a demo in the end."""

    report: dict[str, Any]
    """For programs."""
    rows: Sequence[tuple[str, str]]
    """The same for people: titles and texts."""
    problems: Sequence[str]
    """Why the verdict is red; none if it is green."""
    promise: str
    """What a green verdict says."""


class Screen(Protocol):
    """Where the demo is shown."""

    def say(self, text: str) -> None:
        """Something happened. From any thread, one at a time."""

    def progress(self, total: int) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """Yields what to call for each record that is committed."""

    def verdict(self, ended: DemoEnded, kept: str | None) -> None:
        """The end; `kept` is where the directories were left."""


class JsonScreen:
    """One object in the end."""

    def say(self, text: str) -> None:
        pass

    @contextlib.contextmanager
    def progress(self, total: int) -> Iterator[Callable[[], None]]:
        yield lambda: None

    def verdict(self, ended: DemoEnded, kept: str | None) -> None:
        print_json(ended.report)


class _RateColumn(ProgressColumn):
    """Records per second, of late."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.0f} per s")


class TextScreen:
    """For people. Colours and a live bar if it is a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._began:6.2f} s[/]  {escape(text)}")

    @contextlib.contextmanager
    def progress(self, total: int) -> Iterator[Callable[[], None]]:
        if not self._console.is_terminal:
            yield lambda: None
            return
        columns = (
            TextColumn("          committed"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda: bar.advance(task)

    def verdict(self, ended: DemoEnded, kept: str | None) -> None:
        show = self._console.print
        show()
        for title, text in ended.rows:
            show(f"  {title:<14}{text}")
        if kept is not None:
            show(f"  left in       {kept}")
        show()
        for problem in ended.problems:
            show(f"  [bold red]![/] {escape(problem)}")
        colour = "red" if ended.problems else "green"
        words = "This is not what was promised." if ended.problems else ended.promise
        show(f"[bold {colour}]{colour.upper()}[/]  {words}")
