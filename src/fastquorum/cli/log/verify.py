"""`fastquorum log verify`: every byte of a directory that can be checked."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.output import print_json, print_table, working
from fastquorum.cli.terminal.several import add_paths, for_each
from fastquorum.errors import CorruptionError
from fastquorum.kernels import Kernels
from fastquorum.storage.io.opening import open_offline


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Check batches, checksums, offsets, epochs, checkpoints and indexes of a data or log directory, ours or Apache "
        "Kafka's; and of a data directory the file of epoch and vote, quorum-state.mdb or Kafka's quorum-state: a node "
        "that has records does not start without it. Changes nothing.\nExits 0 if nothing is damaged or missing (a "
        "torn tail is not damage: the next start cuts it off), 4 if something is; of several directories the highest.",
        "fastquorum log verify n1",
        "fastquorum log verify backup/*",
    )
    add_paths(parser, "DIR")
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    return for_each(arguments.command, arguments.paths, lambda path: _verify(path, kernels, arguments.format))


def _verify(path: str, kernels: Kernels, how: str) -> int:
    with working(f"reading {path}"):
        seen = open_offline(path, kernels).verify_directory()
    report = {
        "path": path,
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
    if how == "json":
        print_json({**report, "findings": findings})
    else:
        print_table(("SOUND" if seen.is_sound else "DAMAGED", path), list(report.items())[2:])
        if findings:
            print()
            header = ("SEVERITY", "FILE", "BYTE", "OFFSET", "FINDING")
            print_table(
                header, [(each.severity, each.path, each.position, each.offset, each.text) for each in seen.findings]
            )
    return 0 if seen.is_sound else CorruptionError.exit_code
