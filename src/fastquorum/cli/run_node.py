"""`fastquorum run`: one node in the foreground, until a signal or a fatal error ends it."""

import argparse
import os
import signal
import sys
import threading
from types import FrameType

from fastquorum.cli.arguments import explain, load_kernels
from fastquorum.cli.output import print_table
from fastquorum.errors import DirectoryError, FastQuorumError
from fastquorum.node.io.directory import needs_format
from fastquorum.node.io.running import Leadership
from fastquorum.node.io.sources import read_settings
from fastquorum.node.io.starting import start_node
from fastquorum.node.settings import MEANINGS, SETTINGS, default_text, variable
from fastquorum.types import NO_NODE, Offset


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Run the node whose data directory this is, in the foreground. One line tells that it listens. SIGTERM and "
        "SIGINT stop it gracefully, within 5 s; a second one at once, which is as safe as a crash.\nSettings come from "
        "arguments, then the file (properties, or TOML by its name), then FASTQUORUM_... in the environment; names are "
        "Kafka's (controller.quorum.fetch.timeout.ms) or KIP-595's (quorum.fetch.timeout.ms); --settings lists them.",
        "fastquorum run --data n1",
        "fastquorum run --data n1 --listen 0.0.0.0:9093 --advertise h1:9093 --config n1.properties",
    )
    parser.add_argument("--data", metavar="DIR", required=True, help="a formatted data directory")
    parser.add_argument("--config", metavar="FILE", help="settings, as a properties or .toml file")
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to bind (default: this node's voter endpoint)")
    parser.add_argument("--advertise", metavar="HOST:PORT", help="where others reach it (default: where it listens)")
    parser.add_argument("--kernels", choices=("native", "pure"), help="which kernels to use (default: native)")
    parser.add_argument("--verbose", action="store_true", help="tell on stderr who leads")
    parser.add_argument("--settings", action=_ShowSettings, nargs=0, help="print every setting there is, and exit")


class _ShowSettings(argparse.Action):
    """As --help: whatever else was said."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        rows = [(each.keys[0], default_text(each), variable(each.keys[0]), MEANINGS[each.name]) for each in SETTINGS]
        print_table(("SETTING", "DEFAULT", "VARIABLE", "MEANING"), rows)
        parser.exit(0)


class _Watcher:
    """Hears what happens to the node, on its thread.

    The kernel may give a signal to any thread, and a lock that Python's main thread waits for does not notice: so it
    waits for a pipe that the interpreter writes to for every signal, whichever thread took it.
    """

    def __init__(self, verbose: bool) -> None:
        self.over = threading.Event()
        self.error: FastQuorumError | None = None
        self._verbose = verbose
        self._wake_read_fd, self._wake_write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._wake_write_fd, False)
        signal.set_wakeup_fd(self._wake_write_fd, warn_on_full_buffer=False)

    def wait(self) -> None:
        """In the main thread: return once it is over, or a signal wants it to be."""
        while not self.over.is_set():
            os.read(self._wake_read_fd, 64)

    def on_committed(self, high_watermark: Offset) -> None:
        pass

    def on_leadership(self, leadership: Leadership) -> None:
        if self._verbose:
            who = "nobody leads" if leadership.leader_id == NO_NODE else f"node {leadership.leader_id} leads"
            print(f"fastquorum: {who} epoch {leadership.epoch}", file=sys.stderr, flush=True)

    def on_ready(self) -> None:
        pass

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.error = error
        self.over.set()
        os.write(self._wake_write_fd, b"\0")


class _Signals:
    """The first signal asks for a graceful stop, the second ends the process."""

    def __init__(self, over: threading.Event) -> None:
        self.number = 0
        self._over = over
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
        self._over.set()


def run(arguments: argparse.Namespace) -> int:
    settings = read_settings(
        {
            "path": arguments.data,
            "listen": arguments.listen,
            "advertise": arguments.advertise,
            "kernels": arguments.kernels,
        },
        arguments.config,
    )
    # Said in our words if they are missing.
    kernels = load_kernels("pure" if settings.kernels == "pure" else "native")
    if settings.node_id is None and needs_format(arguments.data, kernels):
        raise DirectoryError("the directory is not formatted", "format it first: `fastquorum format`", arguments.data)
    watcher = _Watcher(arguments.verbose)
    signals = _Signals(watcher.over)
    node = start_node(settings, watcher)
    try:
        identity, endpoint = node.identity, node.advertised
        print(
            f"fastquorum: node {identity.node_id} of cluster {identity.cluster_id} listens, "
            f"reached at {endpoint.name}://{endpoint.host}:{endpoint.port}, data {arguments.data}",
            flush=True,
        )
        watcher.wait()
    finally:
        node.stop()  # at once, if it has ended by itself
    if watcher.error is not None:
        raise watcher.error
    return 128 + signal.SIGINT if signals.number == signal.SIGINT else 0
