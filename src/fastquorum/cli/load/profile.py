"""`fastquorum profile`: a run of `load` with its nodes profiled, and one report of where the time went."""

import argparse
import datetime
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from fastquorum.cli.load import command as load
from fastquorum.cli.terminal import interrupts
from fastquorum.cli.terminal.arguments import add_format, explain, positive, positive_seconds
from fastquorum.cli.terminal.output import print_json, tell
from fastquorum.cli.terminal.outputs import Outputs, check_directory
from fastquorum.errors import UsageError
from fastquorum.pages.new_files import replaced_file

if TYPE_CHECKING:
    from fastquorum.load.stage import Stage
    from fastquorum.profile.profiling import Profiler, Subject
    from fastquorum.profile.report import Report

RATE: Final = 100
WHOM: Final = ("leader", "followers", "all")
EXIT_NO_STACKS: Final = 1


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Run `fastquorum load` with three nodes of its own, and profile them: one flame graph of Python and native "
        "frames, every thread's time on and off the processor, and how long each stage of syncs and commits took.\n"
        "Needs py-spy (pip install 'fastquorum[profile]'), which must be permitted to trace; with perf, the node's "
        "native threads have frames, too. The report lists what could not be measured. Samplers slow down what they "
        "sample: compare shares, not rates. Exits 1 if no stacks were found.",
        "fastquorum profile -- load --rate 20k --data /mnt/disk",
        "fastquorum profile --out before --seconds 30 --nodes all -- load --closed 64 --api asyncio",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="fastquorum-profile", help="where the files go (default: fastquorum-profile)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=positive_seconds, help="length of the run, as load's own --seconds"
    )
    parser.add_argument("--rate", metavar="HZ", type=positive, default=RATE, help=f"samples a second (default: {RATE})")
    parser.add_argument("--nodes", choices=WHOM, default="leader", help="whose stacks are taken (default: leader)")
    add_format(parser)
    parser.add_argument("words", metavar="-- load ...", nargs=argparse.REMAINDER, help="what to run: see load --help")


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.profile.profiling import Profiler
    from fastquorum.profile.report import lines_of, report_of
    from fastquorum.profile.tools import find_py_spy

    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    loading = _loading(arguments, words)
    find_py_spy()  # said before the run, not after it
    check_directory("--out", arguments.out)
    started = datetime.datetime.now(datetime.UTC)
    with tempfile.TemporaryDirectory(prefix="fastquorum-profile-") as scratch:
        profiler = Profiler(scratch, arguments.rate, arguments.nodes)
        result, runs = load.carry_out(loading, lambda stage: _around(profiler, stage))
    report = report_of(profiler, result, words, arguments.rate, started)
    outputs = Outputs()
    _write(arguments, profiler, report, outputs)
    load.write_files(loading, result, runs, outputs)
    report["files"] = outputs.paths
    if arguments.format == "json":
        print_json(report)
    else:
        print("\n".join(lines_of(report)))
    for path in outputs.paths:
        tell(f"written: {path}")
    if result["interrupted"]:
        return interrupts.EXIT_INTERRUPTED
    return 0 if outputs.is_complete and profiler.has_python and profiler.stacks else EXIT_NO_STACKS


def _loading(arguments: argparse.Namespace, words: list[str]) -> argparse.Namespace:
    """The arguments of the load. UsageError for what cannot be profiled."""
    if words[:1] != ["load"]:
        raise UsageError("profile runs load, and nothing else", "fastquorum profile -- load --rate 20k")
    parser = argparse.ArgumentParser(
        prog="fastquorum profile -- load", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    load.configure(parser)
    loading = parser.parse_args(words[1:])
    if loading.sweep:
        raise UsageError("--sweep has many loads, and a profile is of one", "give a --rate")
    if loading.bootstrap:
        raise UsageError(
            "--bootstrap: nodes that load did not start cannot be profiled", "leave it out: load starts its own"
        )
    if loading.kill_leader_at is not None:
        raise UsageError("--kill-leader-at kills what is being profiled", "leave it out")
    if arguments.seconds is not None:
        if loading.seconds is not None:
            raise UsageError("--seconds is given twice", "once is enough: profile's and load's are the same")
        loading.seconds = arguments.seconds
    return loading


@contextmanager
def _around(profiler: "Profiler", stage: "Stage") -> Iterator[None]:
    with profiler.around(_subjects(stage)):
        yield


def _subjects(stage: "Stage") -> "list[Subject]":
    from fastquorum.profile.profiling import Subject

    stage.await_leader()
    return [Subject(node.node_id, node.pid, node is stage.leader) for node in stage.nodes]


def _write(arguments: argparse.Namespace, profiler: "Profiler", report: "Report", outputs: Outputs) -> None:
    from fastquorum.profile import flame, page, stacks
    from fastquorum.profile.report import lines_of

    wall_s = report["wall_s"]
    drawn = flame.draw(profiler.stacks, f"on a processor: {report['sampled_s']:.1f} s in {wall_s:.1f} s")
    waits = flame.draw(
        profiler.waits, f"waiting: {report['waited_s']:.1f} s in {wall_s:.1f} s, of threads that run Python"
    )
    names = ("profile.html", "flame.svg", "waiting.svg", "stacks.collapsed", "report.json", "report.txt")
    paths = [os.path.join(arguments.out, name) for name in names]
    report["files"] += paths
    contents = (
        page.page_of(report, drawn, waits),
        drawn + "\n",
        waits + "\n",
        stacks.collapsed(profiler.stacks),
        json.dumps(report, indent=1) + "\n",
        "\n".join(lines_of(report)),
    )
    outputs.write("--out", lambda: os.makedirs(arguments.out, exist_ok=True))
    for path, content in zip(paths, contents, strict=True):
        outputs.write(path, partial(_write_text, path, content))


def _write_text(path: str, content: str) -> list[str]:
    with replaced_file(path) as draft, open(draft, "w", encoding="utf-8") as file:
        file.write(content)
    return [path]
