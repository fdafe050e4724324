"""`fastquorum wire sniff`: a recording TCP proxy in front of Kafka's nodes or ours."""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from fastquorum.cli.terminal import interrupts
from fastquorum.cli.terminal.arguments import explain, positive
from fastquorum.cli.terminal.file_limit import raise_file_limit
from fastquorum.cli.terminal.output import tell
from fastquorum.cli.wire.exchanges import Exchanges, WireExchange
from fastquorum.cli.wire.proxy import Proxy, Route, now_us
from fastquorum.cli.wire.recording import Origin, exchange_line, table_header, table_row
from fastquorum.client.endpoints import parse_endpoint
from fastquorum.errnos import reason
from fastquorum.errors import UsageError

FRAME_BYTES_MAX: Final = 32 * 1024 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Listen, pass every byte on to a Kafka or fastquorum node and back, and record the traffic: one JSON line for "
        "each request and its response, in the format of `wire decode`, with connection, client, timestamp and "
        "latency_us. Feed it to `wire decode`, `wire encode` or `wire replay`.\n\n"
        "Nothing is changed on the way, and nothing is dropped: traffic goes only as fast as both sides, and the "
        "reader of this output, take it. A frame of an API or version that is not declared here is recorded with its "
        "bytes and the reason (request_error, response_error); a request without an answer (acks=0, or a connection "
        "that ended) says why (unanswered); a frame that is cut or too long has its first bytes as request_part or "
        "response_part.\n\n"
        "Clients connect to the addresses in Metadata responses, and so bypass the sniffer. Make those addresses the "
        "sniffer's: for Kafka in advertised.listeners; for our nodes in `format --voters`, and run each node with "
        "--listen at the address that the sniffer passes on to. A whole quorum takes one --map for each node, and the "
        "requests between its nodes are recorded too. A node that is down looks to its clients like one that closes "
        "connections.\n\n"
        "A recording holds all the traffic, passwords of SASL PLAIN included; FILE is readable by its owner only. TLS "
        "is passed on, but cannot be read. Ctrl-C ends it; what was recorded is written.",
        "fastquorum wire sniff --listen 127.0.0.1:19093 --to h1:9093",
        "fastquorum wire sniff --listen 127.0.0.1:19093 --to h1:9093 --out frames.jsonl",
        "fastquorum wire sniff --map :19091=h1:9093 --map :19092=h2:9093 --map :19093=h3:9093 --format json",
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help="where clients connect to; port 0 takes a free one")
    parser.add_argument("--to", metavar="HOST:PORT", help="the node that gets the requests")
    parser.add_argument(
        "--map",
        metavar="LISTEN=TARGET",
        action="append",
        default=[],
        help="one more pair of the same; may be repeated. A host that is left out is 127.0.0.1",
    )
    parser.add_argument("--out", metavar="FILE", help="write the JSON lines to this new file")
    parser.add_argument("--overwrite", action="store_true", help="FILE may exist: its content is lost")
    parser.add_argument(
        "--format",
        choices=("table", "json"),
        help="what to print: a line for people, or the JSON lines (default: table on a terminal, json elsewhere; with "
        "--out, nothing elsewhere)",
    )
    parser.add_argument(
        "--frame-bytes-max",
        metavar="N",
        type=positive,
        default=FRAME_BYTES_MAX,
        help=f"longer frames are passed on and not recorded whole (default: {FRAME_BYTES_MAX})",
    )


def run(arguments: argparse.Namespace) -> int:
    routes = _routes(arguments)
    raise_file_limit()
    interrupts.leave_to_asyncio()
    return asyncio.run(_sniff(arguments, routes))


def _routes(arguments: argparse.Namespace) -> list[Route]:
    if (arguments.listen is None) != (arguments.to is None):
        raise UsageError("--listen and --to belong together", "give both, or use --map LISTEN=TARGET")
    pairs = [] if arguments.to is None else [("--listen", arguments.listen, "--to", arguments.to)]
    for text in arguments.map:
        listen, equals, target = text.partition("=")
        if not equals:
            raise UsageError(f"--map: {text!r} is not LISTEN=TARGET")
        pairs.append(("--map", listen, "--map", target))
    if not pairs:
        raise UsageError("where to listen, and which node to pass on to?", "give --listen HOST:PORT and --to HOST:PORT")
    return [
        Route(parse_endpoint(one, _with_host(listen), port_min=0), parse_endpoint(other, _with_host(target)))
        for one, listen, other, target in pairs
    ]


def _with_host(text: str) -> str:
    return f"127.0.0.1{text}" if text.startswith(":") else text


async def _sniff(arguments: argparse.Namespace, routes: list[Route]) -> int:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, over.set)  # SIGINT cancels this coroutine, by asyncio's own handler
    loop.set_exception_handler(lambda _, context: tell(f"fastquorum wire sniff: {context['message']}"))
    with _Recorder(arguments, with_server=len(routes) > 1, over=over) as recorder:
        proxy = Proxy(recorder.new_tap, lambda text: tell(f"fastquorum wire sniff: {text}"))
        try:
            bound = [(await proxy.bind(route), route.target) for route in routes]
            recorder.begin()
            await proxy.start()
            for listen, target in bound:
                tell(f"fastquorum wire sniff: {listen.address} is passed on to {target.address}")
            await over.wait()
        finally:
            await proxy.close()
            recorder.end()
    return 0


class _Recorder:
    """Writes lines as exchanges end. Writing blocks, so that traffic goes no faster than it can be recorded."""

    def __init__(self, arguments: argparse.Namespace, *, with_server: bool, over: asyncio.Event) -> None:
        self._frame_bytes_max = arguments.frame_bytes_max
        self._path = arguments.out
        self._overwrite = arguments.overwrite
        default = "table" if sys.stdout.isatty() else "json" if self._path is None else None
        self._printed = arguments.format or default
        self._with_server = with_server
        self._over = over
        self._file: IO[str] | None = None
        self._failure: OSError | None = None
        self._lines = 0
        self._connections = 0
        self._wall_offset_us = time.time_ns() // 1000 - now_us()

    def __enter__(self) -> "_Recorder":
        if self._path is not None and not self._overwrite and Path(self._path).is_file():
            raise UsageError(f"{self._path} exists already", "choose another name, or give --overwrite")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with self._named():
                self._file.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """An error of the file says which: it was opened by its descriptor."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error

    def begin(self) -> None:
        """The addresses are taken: make the file. UsageError if that cannot be."""
        if self._path is not None:
            try:
                descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise UsageError(f"{self._path} cannot be written: {reason(error)}", "give another --out") from error
            self._file = open(descriptor, "w", encoding="utf-8")  # noqa: SIM115 - closed in __exit__
        if self._printed == "table":
            print(table_header(with_server=self._with_server), flush=True)

    def end(self) -> None:
        """Say what there is; raise what went wrong with writing it."""
        if self._failure is not None:
            raise self._failure
        if self._file is not None:
            tell(f"fastquorum wire sniff: {self._path} has {self._lines} lines of {self._connections} connections")

    def new_tap(self, route: Route, client: str) -> Exchanges:
        self._connections += 1
        origin = Origin(route.target.address, self._connections, client)
        return Exchanges(lambda exchange: self._record(exchange, origin), self._frame_bytes_max)

    def _record(self, exchange: WireExchange, origin: Origin) -> None:
        if self._failure is not None:
            return
        line = exchange_line(exchange, origin, exchange.at_us + self._wall_offset_us)
        try:
            self._write(line)
            self._lines += 1
        except OSError as error:
            # The disk is full, or the reader of the output has gone: raised where the command waits.
            self._failure = error
            self._over.set()

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            with self._named():
                self._file.write(json.dumps(line) + "\n")
                self._file.flush()
        if self._printed == "json":
            print(json.dumps(line), flush=True)
        elif self._printed == "table":
            print(table_row(line, with_server=self._with_server), flush=True)
