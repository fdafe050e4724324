"""What the demo shows: live in a terminal, line by line elsewhere, one JSON object with --format json."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

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

from fastquorum.cli.demo.outcomes import ClusterOutcome, DemoOutcome
from fastquorum.cli.demo.verdict import DemoVerdict
from fastquorum.cli.terminal.output import print_json


class Screen(Protocol):
    """Where the demo is shown."""

    def say(self, text: str) -> None:
        """Something happened. From any thread, one at a time."""

    def progress(self, total: int) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """Yields what to call for each record that is committed."""

    def verdict(self, outcome: DemoOutcome, verdict: DemoVerdict, kept: str | None) -> None:
        """The end; `kept` is where the directories were left."""

    def cluster_verdict(self, outcome: ClusterOutcome, kept: str | None) -> None:
        """The end of a cluster's demo."""


class JsonScreen:
    """One object in the end."""

    def say(self, text: str) -> None:
        pass

    @contextlib.contextmanager
    def progress(self, total: int) -> Iterator[Callable[[], None]]:
        yield lambda: None

    def verdict(self, outcome: DemoOutcome, verdict: DemoVerdict, kept: str | None) -> None:
        print_json(outcome._asdict())

    def cluster_verdict(self, outcome: ClusterOutcome, kept: str | None) -> None:
        print_json(outcome._asdict())


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

    def verdict(self, outcome: DemoOutcome, verdict: DemoVerdict, kept: str | None) -> None:
        show = self._console.print
        picture = verdict.picture
        led_by = picture.led_by()
        brokers = ", ".join(
            f"{broker} leads {led_by[broker]}{' (fenced)' if is_fenced else ''}"
            for broker, is_fenced in sorted(picture.fenced.items())
        )
        show()
        show(f"  records       {outcome.records} appended, {outcome.acknowledged} acknowledged")
        show(f"  lost          {outcome.lost}")
        show(f"  duplicated    {outcome.duplicated}")
        show(f"  kill -9       {outcome.kills}, elections {outcome.elections}, appends settled {outcome.settled}")
        show(f"  commit        p50 {outcome.commit_p50_us} us, p99 {outcome.commit_p99_us} us, one at a time")
        show(f"  rate          {outcome.commits_per_s:.0f} commits per s, elections included")
        show(f"  logs          {'identical, byte by byte' if outcome.replicas_identical else 'they differ'}")
        show(f"  contents      {outcome.topics} topics, {outcome.partitions} partitions, {outcome.brokers} brokers")
        show(f"  brokers       {brokers}")
        self._end(verdict.problems, kept, "Nothing was lost.")

    def cluster_verdict(self, outcome: ClusterOutcome, kept: str | None) -> None:
        show = self._console.print
        show()
        show(
            f"  acknowledged  registrations {outcome.registrations}, topics {outcome.topics}, "
            f"fencings {outcome.fencings}, leaves {outcome.leaves}"
        )
        show(f"  lost          {outcome.lost}")
        show(f"  kill -9       {outcome.kills}, elections {outcome.elections}")
        show(f"  fenced        {outcome.fenced_after_s:.2f} s after a broker's death")
        show(f"  taken over    {outcome.taken_over_after_s:.2f} s after the active controller's")
        show(f"  refused       {', '.join(outcome.refusals)}")
        images = f"equal at offset {outcome.end_offset}" if outcome.images_equal else "they differ"
        show(f"  images        {images}, {outcome.partitions} partitions")
        show(f"  fenced leads  {outcome.fenced_leads}, at any offset")
        self._end(outcome.problems, kept, "Nothing was lost, and no fenced broker ever led.")

    def _end(self, problems: Sequence[str], kept: str | None, words_if_green: str) -> None:
        show = self._console.print
        if kept is not None:
            show(f"  left in       {kept}")
        show()
        for problem in problems:
            show(f"  [bold red]![/] {escape(problem)}")
        colour = "red" if problems else "green"
        words = "This is not what was promised." if problems else words_if_green
        show(f"[bold {colour}]{colour.upper()}[/]  {words}")


@contextlib.contextmanager
def screen_for(how: str) -> Iterator[Screen]:
    """The screen for --format."""
    yield JsonScreen() if how == "json" else TextScreen()
