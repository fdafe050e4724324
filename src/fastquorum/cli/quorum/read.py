"""`fastquorum read`: committed records, from an offset on."""

import argparse
import sys
from typing import Final

from fastquorum.cli.log.stored import describe_record
from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.arguments import add_bootstrap, add_format, add_kernels, explain, natural, positive
from fastquorum.cli.terminal.json_text import jackson_text
from fastquorum.cli.terminal.output import print_json
from fastquorum.client.connection import Deadline
from fastquorum.kernels import Record
from fastquorum.storage.identity import LogKind
from fastquorum.types import TOPIC_NAME, Epoch

_PARK_S: Final = 5.0
"""How long a node may keep a Fetch while nothing is committed."""


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print committed records, up to the present high watermark, or with --follow as they are committed. Control "
        "records (elections, voters) take offsets too, but are not printed.",
        "fastquorum read --bootstrap h1:9093,h2:9093,h3:9093 --from-offset 100 --max 10",
        "fastquorum read --bootstrap h1:9093 --follow --format json",
    )
    add_bootstrap(parser)
    parser.add_argument("--from-offset", metavar="N", type=natural, default=0, help="default: 0, the first")
    parser.add_argument("--max", metavar="N", type=positive, help="stop after this many records")
    parser.add_argument("--follow", action="store_true", help="continue, and print records as they are committed")
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    offset, left = arguments.from_offset, arguments.max
    with quorum_client(arguments) as client:
        kind = _kind(client.leader(Deadline(arguments.timeout)).topic)
        end = None
        while True:
            found = client.read(offset, Deadline(arguments.timeout), wait_s=_PARK_S if arguments.follow else 0.0)
            if end is None and not arguments.follow:
                end = found.high_watermark
            for epoch, record in found.records[:left]:
                _show(arguments.format, epoch, record, kind)
            sys.stdout.flush()
            if left is not None:
                left -= min(left, len(found.records))
                if left == 0:
                    break
            if end is not None and (found.next_offset >= end or found.next_offset == offset):
                break
            offset = found.next_offset
    return 0


def _kind(topic: str) -> LogKind:
    return LogKind.METADATA if topic == TOPIC_NAME else LogKind.USER


def _show(how: str, epoch: Epoch, record: Record, kind: LogKind) -> None:
    shown = describe_record(record, is_control=False, kind=kind)
    if how == "json":
        print_json({"offset": record.offset, "epoch": epoch, "timestampMs": record.timestamp_ms, **shown})
    elif shown.keys() == {"value"} and isinstance(shown["value"], str):
        print(f"{record.offset}\t{shown['value']}")
    else:
        print(f"{record.offset}\t{jackson_text(shown)}")
