"""`fastquorum image diff`: what changed in a metadata log between two offsets, in words or as JSON."""

import argparse

from fastquorum.cli.image.offset import tell_torn, tell_where
from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels, natural
from fastquorum.cli.terminal.output import print_json, working
from fastquorum.controller.image.diff import differences
from fastquorum.storage.images import check_order, fold_as_recovered, going_on
from fastquorum.storage.io.opening import open_offline


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show what changed between two offsets of a metadata log: brokers fenced, leaders and ISRs changed, topics "
        "created and deleted. A change that was undone in between is not shown. A batch counts as a whole: an offset "
        "inside one means where it begins.\n"
        "--format json prints one JSON object for each thing.",
        "fastquorum image diff n1 --from 1816 --to 1836",
        "fastquorum image diff n1 --from 1816 --format json | jq 'select(.kind == \"partition\")'",
    )
    parser.add_argument("path", metavar="DIR")
    parser.add_argument("--from", dest="start", metavar="OFFSET", type=natural, required=True, help="the image before")
    parser.add_argument(
        "--to", dest="end", metavar="OFFSET", type=natural, help="the image after (default: that of the whole log)"
    )
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    check_order(arguments.start, arguments.end)
    with working(f"reading {arguments.path}"):
        log = open_offline(arguments.path, kernels)
        fold, tail = fold_as_recovered(log, kernels, arguments.start)
        before = fold.image
        tell_where(fold, arguments.start)
        fold, later = fold_as_recovered(log, kernels, arguments.end, after=going_on(log, fold))
        tell_where(fold, arguments.end)
    tell_torn(later or tail)
    changed = False
    for each in differences(before, fold.image):
        changed = True
        if arguments.format == "json":
            print_json(each.as_view())
        else:
            print(each.words)
    if not changed and arguments.format != "json":
        print("nothing changed")
    return 0
