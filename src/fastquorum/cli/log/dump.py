"""`fastquorum log dump`: what is in a log, for people, for programs, and exactly as Kafka's tool prints it."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from fastquorum.cli.log.kafka_dump import dump_file
from fastquorum.cli.log.stored import Leftover, describe_record, files_of, kind_of, read_batches
from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.json_text import jackson_text
from fastquorum.cli.terminal.output import print_json
from fastquorum.cli.terminal.several import add_paths, for_each
from fastquorum.errors import CorruptionError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage.identity import LogKind


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print the records of a segment or checkpoint, or of all segments of a directory. Reads only; a log in use may "
        "be dumped too.\n--format kafka prints what kafka-dump-log --cluster-metadata-decoder prints (for user logs: "
        "--print-data-log).",
        "fastquorum log dump --format kafka n1/__cluster_metadata-0/00000000000000000000.log",
        "fastquorum log dump --format json n1 | jq .type",
    )
    add_paths(parser, "FILE|DIR")
    add_format(parser, "kafka")
    parser.add_argument(
        "--records",
        choices=("auto", "metadata", "user"),
        default="auto",
        help="kind of the records (default: what the directory was formatted for)",
    )
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    return for_each(arguments.command, arguments.paths, lambda path: _dump(path, kernels, arguments))


def _dump(named: str, kernels: Kernels, arguments: argparse.Namespace) -> int:
    if "\0" in named:
        raise UsageError("the path holds a zero byte")
    paths = files_of(named)
    is_one_of_several = len(arguments.paths) > 1
    if arguments.format == "table":
        if is_one_of_several:
            print(named)
        print(_ROW.format("OFFSET", "EPOCH", "TIMESTAMP_MS", "RECORD"))
    for path in paths:
        kind = kind_of(path) if arguments.records == "auto" else LogKind(arguments.records)
        match arguments.format:
            case "kafka":
                dump_file(path, kernels, as_metadata=kind is LogKind.METADATA, out=_print_utf8)
            case "json":
                for shown in _records(path, kernels, kind):
                    print_json({"path": named, **shown} if is_one_of_several else shown)
            case _:
                for shown in _records(path, kernels, kind):
                    print(_row(shown))
    return 0


def _print_utf8(line: str) -> None:
    """Print UTF-8 whatever the terminal's encoding, as Kafka's tool does; a path that is not UTF-8 stays as it is."""
    sys.stdout.buffer.write(f"{line}\n".encode(errors="surrogateescape"))


_ROW = "{:>10}  {:>6}  {:>14}  {}"


def _records(path: str, kernels: Kernels, kind: LogKind) -> Iterator[dict[str, Any]]:
    for found in read_batches(path, kernels):
        if isinstance(found, Leftover):
            if not found.is_zero:
                raise CorruptionError("truncated", found.position, path=path)
            return
        info, data = found
        if not info.crc_valid:
            raise CorruptionError("crc", info.position, info.base_offset, info.crc, kernels.crc32c(data[21:]), path)
        try:
            records = kernels.decode_records(data, verify_crc=False)
        except CorruptionError as error:
            raise CorruptionError(error.reason, info.position, info.base_offset, path=path) from error
        for record in records:
            yield {
                "offset": record.offset,
                "epoch": info.leader_epoch,
                "timestampMs": record.timestamp_ms,
                **describe_record(record, is_control=info.is_control, kind=kind),
            }


def _row(shown: dict[str, Any]) -> str:
    rest = {key: value for key, value in shown.items() if key not in ("offset", "epoch", "timestampMs")}
    title = rest.get("type") or rest.get("control")
    text = f"{title} {jackson_text(rest['data'])}" if title else jackson_text(rest)
    if rest.keys() == {"value"} and isinstance(rest["value"], str):
        text = jackson_text(rest["value"])
    return _ROW.format(shown["offset"], shown["epoch"], shown["timestampMs"], text)
