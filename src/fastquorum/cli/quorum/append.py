"""`fastquorum append`: lines of stdin, or values, through the quorum from outside."""

import argparse
import base64
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.arguments import add_bootstrap, add_format, add_kernels, explain
from fastquorum.cli.terminal.output import print_json
from fastquorum.client.connection import Deadline, NotSent
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError, NotReady, Overloaded, RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_BYTES_MAX
from fastquorum.types import Offset

_READ_BYTES: Final = 1 << 16
_BATCH_BYTES: Final = 1 << 20
"""Lines that arrive together are appended together, up to about this size."""
_SHOWN_BYTES: Final = 40
"""Bytes of an unreadable line that its error quotes."""
_ENCODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "text": lambda line: line,
    "hex": lambda line: bytes.fromhex(line.decode("ascii")),
    "base64": lambda line: base64.b64decode(line, validate=True),
}
_NOTHING_CHANGED: Final = UsageError.exit_code
_WRITTEN: Final = {
    "hex": "two digits from 0 to f for each byte",
    "base64": "four letters for each three bytes, padded with '='",
}


@dataclass(eq=False)
class Stopped(FastQuorumError):
    """Records were refused after others were committed: to append all of them again would make some appear twice."""

    template = "{detail}"
    detail: str


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Append each line of stdin, or each --value, as a record. An offset is printed once a majority's disks have "
        "the record.\n"
        "Lines that arrive together are appended as one batch, all or none. If the command cannot know whether a "
        "batch was appended, it says so and ends with exit code 3; it never sends a record twice.\n"
        "Exit code 2 means that no record was appended. If a record is refused after others were appended, the exit "
        "code is 1, and stderr says how many are committed.",
        "fastquorum append --bootstrap h1:9093,h2:9093,h3:9093 --value hello",
        "tail -f events.jsonl | fastquorum append --bootstrap h1:9093",
    )
    add_bootstrap(parser)
    parser.add_argument(
        "--value", action="append", metavar="TEXT", help="append this instead of stdin; may be repeated"
    )
    parser.add_argument(
        "--encoding", choices=tuple(_ENCODINGS), default="text", help="how a line encodes its bytes (default: text)"
    )
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    # Two digits a byte is the longest way to write one.
    line_bytes_max = BATCH_BYTES_MAX if arguments.encoding == "text" else 2 * BATCH_BYTES_MAX
    batches = _batches_of_stdin(line_bytes_max)
    if arguments.value is not None:
        batches = ([os.fsencode(value)] for value in arguments.value)
    done = 0
    with quorum_client(arguments) as client:
        try:
            for batch in batches:
                values = [_decoded(arguments.encoding, line, done + number) for number, line in enumerate(batch, 1)]
                offset = _append(client, values, Deadline(arguments.timeout))
                done += len(values)
                _report(arguments.format, offset, len(values))
        except KeyboardInterrupt:
            print(f"interrupted: {_committed(done)}, what was sent after that may be", file=sys.stderr)
            raise
        except BrokenPipeError:
            raise
        except (FastQuorumError, OSError) as error:
            if done:
                print(_committed(done), file=sys.stderr)
                if isinstance(error, FastQuorumError) and error.exit_code == _NOTHING_CHANGED:
                    raise Stopped(str(error)) from error
            raise
    return 0


def _committed(count: int) -> str:
    return "1 record is committed" if count == 1 else f"{count} records are committed"


def _append(client: QuorumClient, values: Sequence[bytes], deadline: Deadline) -> Offset:
    """Append; again only where it is certain that nothing was appended."""
    while True:
        try:
            return client.append(values, deadline)
        except (NotSent, NotReady, Overloaded):
            if deadline.left_s <= 0.1:
                raise
            time.sleep(0.05)


def _decoded(encoding: str, line: bytes, number: int) -> bytes:
    try:
        return _ENCODINGS[encoding](line)
    except ValueError as error:
        shown = repr(line[:_SHOWN_BYTES]).removeprefix("b") + ("..." if len(line) > _SHOWN_BYTES else "")
        raise UsageError(
            f"record {number}, {shown}, is not {encoding}: expected {_WRITTEN[encoding]}",
            "nothing of its batch was appended",
        ) from error


def _batches_of_stdin(line_bytes_max: int) -> Iterator[list[bytes]]:
    """Whole lines as they arrive: what is there already goes together, what trickles in is not kept waiting."""
    rest = b""
    while data := os.read(sys.stdin.fileno(), _READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        yield from _cut(lines)
        if len(rest) > line_bytes_max:
            raise RecordTooLarge(f"a line is longer than {line_bytes_max} bytes: it does not fit into one batch")
    if rest:
        yield [rest]


def _cut(lines: list[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and size + len(line) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


def _report(how: str, offset: int, count: int) -> None:
    if how == "json":
        print_json({"baseOffset": offset, "records": count})
    else:
        print(f"offset {offset}" if count == 1 else f"offsets {offset}..{offset + count - 1} ({count} records)")
    sys.stdout.flush()
