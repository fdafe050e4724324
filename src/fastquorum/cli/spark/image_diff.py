"""`fastquorum spark image-diff`: what changed in each cluster between two offsets, or differs between two clusters."""

import argparse
from typing import Any, Final

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.arguments import natural
from fastquorum.cli.terminal.output import print_table
from fastquorum.errors import UsageError
from fastquorum.spark.pages.image_diff import CHANGES_MAX, page_of
from fastquorum.spark.stored.paths import split_by_commas

_SHOWN: Final = 50
"""Changes of a cluster that a person is shown."""


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Show what changed in each cluster between two offsets: brokers, topics, partitions, configurations, "
        "features, quotas and everything else in an image. A change that was undone in between is not shown.\n"
        "--with compares two clusters, or two replicas of one: those with the same id, or the only one on each side. "
        "What always differs between two clusters (ids, epochs, directories) is shown with --all only.\n"
        f"{shared.BY_WHICH} Exits 1 if anything could not be compared or read.",
        "fastquorum spark image-diff '/backup/*' --from 1800 --to 1836",
        "fastquorum spark image-diff /backup/east --with /backup/west --out differs.json",
    )
    parser.add_argument("--from", dest="start", metavar="OFFSET", type=natural, help="the image before")
    parser.add_argument(
        "--to",
        dest="end",
        metavar="OFFSET",
        type=natural,
        help="the image after (default: the last one that the logs determine)",
    )
    parser.add_argument("--with", dest="other", metavar="IN", help="compare with the logs there; --to is for both")
    parser.add_argument("--all", action="store_true", help="with --with: also ids, epochs and directories")


def run(arguments: argparse.Namespace) -> int:
    if (arguments.start is None) == (arguments.other is None):
        raise UsageError("one of --from and --with is needed, not both", "--from 1800, or --with /backup/west")
    if arguments.start is not None and arguments.end is not None and arguments.start > arguments.end:
        raise UsageError(f"--from {arguments.start} is above --to {arguments.end}")
    shared.check_out(arguments)
    path = shared.path_of(arguments)
    others = [] if arguments.other is None else [split_by_commas(arguments.other)]
    inputs = shared.look_in(arguments.master, path, *others)
    with shared.engine_of(arguments) as engine:
        if arguments.other is None:
            rows = engine.image_diff(path, arguments.start, arguments.end)
        else:
            everything = True if arguments.all else None
            rows = engine.image_diff_between(path, arguments.other, arguments.end, everything=everything)
    from fastquorum.spark.pipelines.image_diff import as_report

    def report_of(**most: int) -> dict[str, Any]:
        return {**as_report(rows, **most), **inputs._asdict()}

    on_page, on_screen = ({"changes_max": most} for most in (CHANGES_MAX, _SHOWN))
    shown = shared.hand_out(arguments, report_of, lambda: rows, page_of, show, on_page=on_page, on_screen=on_screen)
    return 1 if inputs.left_out or any(cluster["errors"] for cluster in shown["clusters"]) else 0


def show(report: dict[str, Any]) -> None:
    """For people: counts, and the first changes in words."""
    if not report["clusters"]:
        print("nothing differs")
    for cluster in report["clusters"]:
        of_two = cluster["cluster_id"] != cluster["other_cluster_id"]
        clusters = f"{cluster['cluster_id']} / {cluster['other_cluster_id']}" if of_two else cluster["cluster_id"]
        where = f"cluster {clusters}, offset {cluster['from_offset']} / {cluster['to_offset']}"
        is_known = cluster["total"] or not cluster["errors"]
        print(f"{where}: {cluster['total']:,} differ" if is_known else f"cluster {clusters}")
        for error in cluster["errors"]:
            print(f"not compared: {error}")
        for why in cluster["unproven"]:
            print(f"not proven: {why}")
        counts = cluster["counts"]
        if counts:
            rows = [
                (kind, *(f"{each[name]:,}" for name in ("created", "gone", "changed"))) for kind, each in counts.items()
            ]
            print_table(("KIND", "CREATED", "GONE", "CHANGED"), rows)
        print()
        for change in cluster["changes"]:
            print(change["words"])
        if cluster["total"] > len(cluster["changes"]):
            print(f"... {cluster['total'] - len(cluster['changes']):,} more: --out or --format json")
        print()
