"""`fastquorum run`: one node in the foreground, until a signal or a fatal error ends it."""

import argparse
import contextlib
import gc
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from fastquorum.cli.node.log import FORMATS, NodeLog
from fastquorum.cli.node.signals import StopSignals
from fastquorum.cli.terminal.arguments import explain, load_kernels
from fastquorum.cli.terminal.lossy_output import lossy_output
from fastquorum.cli.terminal.output import print_table
from fastquorum.cli.terminal.stdin_end import when_stdin_ends
from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.node.io.observing import Leadership
from fastquorum.node.io.running import RunningNode
from fastquorum.node.io.sources import read_settings
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.node.settings.settings import MEANINGS, SETTINGS, default_text, variable
from fastquorum.observe.starting import start_node
from fastquorum.types import Endpoint, NodeId, Offset

YOUNG_LOOKS: Final = 1_000
"""Collections of the middle generation between two full ones: some millions of new objects."""


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Run the node whose data directory this is, in the foreground. One line on stdout says when it listens. "
        "SIGTERM, SIGINT, SIGQUIT and SIGHUP (unless that is ignored, as under nohup) stop it gracefully, within 5 s. "
        "A second SIGTERM, SIGINT or SIGQUIT stops it at once, which is as safe as a crash. Other signals that would "
        "end it are ignored, except those of a fault and of the limit on processor time (SIGXCPU).\n"
        "A line that cannot be written to stdout or stderr is lost, and counted; the node runs on.\n"
        "Settings come from arguments, then the file (properties, or TOML by its name), then FASTQUORUM_... in the "
        "environment; names are Kafka's (controller.quorum.fetch.timeout.ms) or KIP-595's (quorum.fetch.timeout.ms); "
        "--settings lists them.",
        "fastquorum run --data n1",
        "fastquorum run --data n1 --listen 0.0.0.0:9093 --advertise h1:9093 --config n1.properties",
        "fastquorum run --config controller.properties",
        "fastquorum run --data n1 --metrics :9404 --log-format json",
    )
    parser.add_argument("--data", metavar="DIR", help="a formatted data directory (default: the file's log.dirs)")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="settings, as a properties or .toml file; Kafka's own file with process.roles=controller works unchanged",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="address to bind; :PORT is every address (default: where the voters expect it)",
    )
    parser.add_argument(
        "--advertise",
        metavar="HOST:PORT",
        help="address at which others reach it (default: as the voters say, or where it listens)",
    )
    parser.add_argument("--kernels", choices=("native", "pure"), help="which kernels to use (default: native)")
    parser.add_argument(
        "--controller",
        action="store_const",
        const=True,
        help="run as one of the cluster's controllers: brokers register here (a metadata log); "
        "process.roles=controller in the file means the same (default: as the directory was formatted)",
    )
    parser.add_argument(
        "--metrics", metavar="HOST:PORT", help="serve /metrics (Prometheus), /healthz and /readyz there, by HTTP"
    )
    parser.add_argument(
        "--otel",
        metavar="URL",
        nargs="?",
        const="",
        help="push metrics by OTLP over HTTP to this collector (default: OTEL_EXPORTER_OTLP_ENDPOINT); "
        "needs the extra fastquorum[otel]",
    )
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default="text",
        help="log events as text (default), or as JSON lines: time, level, node, epoch, event and its fields",
    )
    parser.add_argument(
        "--until-stdin-ends",
        action="store_true",
        help="the end of stdin stops the node too, as SIGTERM does: for a parent program that holds the pipe's other "
        "end, and must not leave a node behind",
    )
    parser.add_argument("--verbose", action="store_true", help="log each new leader on stderr (json always does)")
    parser.set_defaults(output=_output)
    parser.add_argument("--settings", action=_ShowSettings, nargs=0, help="print all settings, and exit")


class _ShowSettings(argparse.Action):
    """The action of --settings: print and exit, like --help, whatever the other arguments are."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        rows = [(each.keys[0], default_text(each), variable(each.keys[0]), MEANINGS[each.name]) for each in SETTINGS]
        print_table(("SETTING", "DEFAULT", "VARIABLE", "MEANING"), rows)
        parser.exit(0)


class _Watcher:
    """The observer of the node: takes events on the node's thread, and has the main thread log them.

    The kernel may give a signal to any thread, and a lock that Python's main thread waits for does not notice: so it
    waits for a pipe that the interpreter writes to for every signal, whichever thread took it.
    """

    def __init__(self, log: NodeLog) -> None:
        self.over = threading.Event()
        self.error: FastQuorumError | None = None
        self._log = log
        self._node: RunningNode | None = None
        self._pending: deque[Callable[[], None]] = deque()
        self._wake_read_fd, self._wake_write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._wake_write_fd, False)
        signal.set_wakeup_fd(self._wake_write_fd, warn_on_full_buffer=False)

    def wait(self, node: RunningNode) -> None:
        """Wait in the main thread until the node has ended, or a signal asks for its end."""
        self._node = node
        while not self.over.is_set():
            self.say()
            os.read(self._wake_read_fd, 64)

    def end(self) -> None:
        """From any thread: it is to be over. Not counted among the signals, of which a second one is not waited for."""
        self.over.set()
        self._wake()

    def logged(self, record: logging.LogRecord) -> None:
        """Queue a record of the standard library's logging, on any thread."""
        self._later(lambda: self._log.logged(record))

    def say(self) -> None:
        """Log the pending events, in the main thread."""
        while self._pending:
            self._pending.popleft()()

    def on_committed(self, high_watermark: Offset) -> None:
        pass

    def on_leadership(self, leadership: Leadership) -> None:
        self._later(lambda: self._log.leadership(leadership))

    def on_ready(self) -> None:
        self._later(self._ready)

    def _ready(self) -> None:
        self._log.ready()
        if self._node is not None and self._node.is_running:
            self._node.describe(lambda now, _: self._later(lambda: self._log.place(now)))

    def on_disk_full(self, hindrance: str) -> None:
        self._later(lambda: self._log.disk_full(hindrance))

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        self._later(lambda: self._log.other_cluster(node_id, endpoint))

    def on_notice(self, event: str, sentence: str) -> None:
        self._later(lambda: self._log.notice(event, sentence))

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        self._later(lambda: self._log.reach(peer, is_reached, self._node.unreachable if self._node else ()))

    def on_snapshot(self, report: SnapshotReport) -> None:
        self._later(lambda: self._log.snapshot(report))

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.error = error
        self.end()

    def _later(self, say: Callable[[], None]) -> None:
        self._pending.append(say)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is awake
            os.write(self._wake_write_fd, b"\0")


class _Lines(logging.Handler):
    """Handler that puts this process's logging into the node's log, in its form, as no one else configures it."""

    def __init__(self, say: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record)


def spare_what_is_kept() -> None:
    """Have the collector seldom look through all there is, for the rest of this process's life.

    A controller's image has no cycles and is kept: a look through all of it, whenever it has grown by a quarter, finds
    nothing, and stops every request meanwhile. What is young is looked through as ever.
    """
    gc.freeze()
    youngest, young, _ = gc.get_threshold()
    gc.set_threshold(youngest, young, YOUNG_LOOKS)


def _output(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Neither a full disk under the node's log nor a reader that hangs or has gone ends the node, or holds it up."""
    return lossy_output(NodeLog(arguments.log_format, arguments.verbose).lines_lost)


def run(arguments: argparse.Namespace) -> int:
    log = NodeLog(arguments.log_format, arguments.verbose)
    try:
        return _run(arguments, log)
    except FastQuorumError as error:
        if arguments.debug or not log.failed(error):
            raise
        return error.exit_code


def _run(arguments: argparse.Namespace, log: NodeLog) -> int:
    given = ("listen", "advertise", "kernels", "controller", "metrics", "otel")
    settings = read_settings(
        # Never made here, as Kafka has it.
        {"path": arguments.data, "create": False, **{name: getattr(arguments, name) for name in given}},
        arguments.config,
        on_ignored=log.ignored,
    )
    if settings.path is None:
        raise UsageError("--data is missing", "or name the directory in --config FILE, as log.dirs")
    # Said in our words if they are missing.
    load_kernels("pure" if settings.kernels == "pure" else "native")
    watcher = _Watcher(log)
    logging.getLogger("fastquorum").addHandler(_Lines(watcher.logged))
    signals = StopSignals(watcher.over)
    if arguments.until_stdin_ends:
        when_stdin_ends(watcher.end)
    node = start_node(settings, watcher)
    try:
        if node.is_controller:
            spare_what_is_kept()
        log.started(node, settings.path)
        watcher.wait(node)
        if signals.number:
            log.stopping(signal.Signals(signals.number).name)
    finally:
        node.stop()  # at once, if it has ended by itself
        watcher.say()
    if watcher.error is not None:
        raise watcher.error
    log.stopped()
    return 128 + signal.SIGINT if signals.number == signal.SIGINT else 0
