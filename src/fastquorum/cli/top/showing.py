"""The quorum on a screen that is drawn anew, on paper, or as JSON."""

import contextlib
import datetime
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.cli.top.comparing import NodeRow, QuorumRow, compare
from fastquorum.cli.top.looking import Looker, QuorumLook

EXIT_NO_LEADER: Final = 3
_FIGURES: Final = {
    "EPOCH": "epoch",
    "LOG-END": "log_end",
    "LAG": "lag",
    "LAG-MS": "lag_ms",
    "COMMITS/S": "commits_per_s",
    "APPENDS/S": "appends_per_s",
    "FETCHES/S": "fetches_per_s",
    "REFUSED/S": "refused_per_s",
    "SYNCS/S": "syncs_per_s",
    "SYNC-P50": "sync_p50_us",
    "SYNC-P99": "sync_p99_us",
    "COMMIT-P50": "commit_p50_us",
    "COMMIT-P99": "commit_p99_us",
    "CONNS": "connections",
    "CPU%": "cpu_percent",
}
"""By their columns the fields of a `NodeRow`."""
_HEADER: Final = ("NODE", "ROLE", *_FIGURES, "AT")
_EXPENDABLE: Final = (
    "FETCHES/S",
    "CONNS",
    "APPENDS/S",
    "COMMIT-P50",
    "SYNC-P50",
    "REFUSED/S",
    "AT",
    "LAG-MS",
    "CPU%",
    "EPOCH",
    "LOG-END",
    "SYNCS/S",
)
"""What a narrow screen does without, in this order."""
_GAP: Final = 2
_STYLES: Final = {"leader": "bold green", "down": "bold red", "follower": "", "observer": "dim"}


def show_once(looker: Looker, interval_s: float, output: str) -> int:
    before = looker.look()
    time.sleep(interval_s)
    return _print(before, looker.look(), output)


def show_repeatedly(looker: Looker, interval_s: float, output: str) -> int:
    """Until it is interrupted."""
    before: QuorumLook | None = None
    while True:
        now = looker.look()
        if before is not None:
            _print(before, now, output)
            if output == "table":
                print()
            sys.stdout.flush()
        before = now
        time.sleep(interval_s)


def show_live(looker: Looker, interval_s: float) -> int:
    """On a screen of its own, which is gone in the end."""
    with _Keys() as keys, Live(screen=True, auto_refresh=False, console=Console()) as live:
        live.update(Text("querying the quorum ..."), refresh=True)
        before: QuorumLook | None = None
        while True:
            now = looker.look()
            live.update(_drawn(compare(before, now), interval_s, live.console.width), refresh=True)
            before = now
            if keys.is_over_within(interval_s):
                return 0


def _print(before: QuorumLook, now: QuorumLook, output: str) -> int:
    row = compare(before, now)
    if output == "json":
        at = datetime.datetime.fromtimestamp(now.took_at, datetime.UTC).isoformat(timespec="milliseconds")
        print_json({"time": at.replace("+00:00", "Z"), **row.as_json()})
    else:
        print(_headline(row))
        print_table(_HEADER, [_cells(each) for each in row.nodes])
        for line in _reasons(row):
            print(line)
    return EXIT_NO_LEADER if row.problem else 0


def _headline(row: QuorumRow) -> str:
    up = sum(each.is_up for each in row.nodes)
    nodes = f"{up} of {len(row.nodes)} nodes up"
    cluster = f"cluster {row.cluster_id or 'unknown'}, {nodes}"
    if row.problem:
        return f"{cluster}, NO LEADER: {row.problem}"
    return (
        f"{cluster}, node {row.leader} leads epoch {row.epoch}, high watermark {row.high_watermark}, "
        f"{_figure(row.commits_per_s)} records/s committed"
    )


def _drawn(row: QuorumRow, interval_s: float, width: int) -> Group:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
    rows = [_cells(each) for each in row.nodes]
    columns = _fitting(rows, width)
    for number in columns:
        name = _HEADER[number]
        table.add_column(name, justify="left" if name in ("NODE", "ROLE", "AT") else "right", no_wrap=True)
    for each, cells in zip(row.nodes, rows, strict=True):
        style = _STYLES.get(each.role, "yellow")
        table.add_row(*(Text(cells[number], style=style if number < 2 else "") for number in columns))
    headline = Text(_headline(row), style="bold red" if row.problem else "")
    clock = Text(f"{time.strftime('%H:%M:%S')}  every {interval_s:g} s, latencies in us, q ends", style="dim")
    return Group(headline, clock, Text(), table, Text(), *(Text(line, style="dim") for line in _reasons(row)))


def _fitting(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns that such a screen has room for, by their numbers."""
    widths = [max(map(len, (name, *(row[number] for row in rows)))) for number, name in enumerate(_HEADER)]
    columns = list(range(len(_HEADER)))
    for name in _EXPENDABLE:
        if sum(widths[number] + _GAP for number in columns) <= width:
            break
        columns.remove(_HEADER.index(name))
    return columns


def _cells(row: NodeRow) -> Sequence[str]:
    figures = (_figure(getattr(row, name)) for name in _FIGURES.values())
    return (str(row.id) if row.id is not None else "?", row.role or "?", *figures, row.endpoint)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _reasons(row: QuorumRow) -> Iterator[str]:
    for each in row.nodes:
        if each.reason:
            name = f"node {each.id} at {each.endpoint}" if each.id is not None else each.endpoint
            yield f"{name}: {each.reason}"
    for missing in row.missing_metrics:
        yield f"no metrics: {missing}"


class _Keys:
    """Keys as they are pressed, if stdin is a terminal; it is put back whatever happens."""

    def __enter__(self) -> "_Keys":
        self._fd = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self._restore = contextlib.ExitStack()
        if self._fd >= 0:
            self._restore.callback(termios.tcsetattr, self._fd, termios.TCSADRAIN, termios.tcgetattr(self._fd))
            tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore.close()

    def is_over_within(self, seconds: float) -> bool:
        """Wait for so long, or until q is pressed, which is then true; any other key ends the wait."""
        if self._fd < 0:
            time.sleep(seconds)
            return False
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        pressed = os.read(self._fd, 64)
        return not pressed or b"q" in pressed.lower()
