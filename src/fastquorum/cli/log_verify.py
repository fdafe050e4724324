"""`fastquorum log verify`: every byte of a directory that can be checked."""

import argparse
from typing import Final

from fastquorum.cli.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.output import print_json, print_table, working
from fastquorum.errors import CorruptionError
from fastquorum.storage.io_open import open_offline

_OK: Final = 0


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Check batches, checksums, offsets, epochs, checkpoints and indexes of a data or log directory, ours or Apache "
        "Kafka's. Changes nothing.\nExits 0 if nothing is damaged (a torn tail is not damage: the next start cuts it "
        "off), 4 if something is.",
        "fastquorum log verify n1",
    )
    parser.add_argument("path", metavar="DIR")
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    with working(f"reading {arguments.path}"):
        seen = open_offline(arguments.path, load_kernels(arguments.kernels)).verify()
    said = {
        "sound": seen.is_sound,
        "closed": seen.is_closed,
        "startOffset": seen.start_offset,
        "endOffset": seen.end_offset,
        "segments": seen.segment_count,
        "batches": seen.batch_count,
        "records": seen.record_count,
        "checkpoints": seen.checkpoint_count,
        "epochs": [list(entry) for entry in seen.epochs],
    }
    findings = [finding._asdict() for finding in seen.findings]
    if arguments.format == "json":
        print_json({**said, "findings": findings})
    else:
        print_table(("SOUND" if seen.is_sound else "DAMAGED", arguments.path), list(said.items())[1:])
        if findings:
            print()
            header = ("SEVERITY", "FILE", "BYTE", "OFFSET", "FINDING")
            print_table(
                header, [(each.severity, each.path, each.position, each.offset, each.text) for each in seen.findings]
            )
    return _OK if seen.is_sound else CorruptionError.exit_code
