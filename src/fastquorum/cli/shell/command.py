"""`fastquorum shell`: look around in a metadata image as in a file system."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from fastquorum.cli.image.committed_image import WATCH, watched_fold
from fastquorum.cli.image.offset import tell_torn, tell_where
from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.shell.commands import COMMANDS, ShellSession
from fastquorum.cli.shell.nodes import Directory, tree_of
from fastquorum.cli.shell.prompt import Prompt, Script
from fastquorum.cli.terminal.arguments import add_at, add_bootstrap, add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.output import tell, working
from fastquorum.client.committed import LiveImage
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.storage.images import fold_as_recovered
from fastquorum.storage.io.disk import exists
from fastquorum.storage.io.opening import fold_file, open_offline

Source = Callable[[], tuple[Image, Place]]
"""The image, and where in the log it stands. It is called for each command: a live one may have moved on."""


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show a metadata log's image as a file system, with the paths and the output of Apache Kafka's "
        "kafka-metadata-shell: at a prompt with completion, for lines on stdin, or for one command. Reads a data or "
        "log directory, or a checkpoint or first segment, ours or Kafka's, and changes nothing. With --bootstrap each "
        "command sees what a running quorum has committed by then.\n"
        "cat shows SCRAM keys in full, as Kafka's shell does; JSON leaves them out.",
        "fastquorum shell n1",
        "fastquorum shell n1 ls /image/topics/byName",
        "fastquorum shell n1 --at 3829 cat '/image/topics/byName/my-topic/*'",
        "fastquorum shell n1/__cluster_metadata-0/00000000000000003829-0000000003.checkpoint tree /image/cluster",
        "fastquorum shell n1 tree /image/features --format json",
        "fastquorum shell --bootstrap h1:9093,h2:9093,h3:9093",
        "echo 'find /image/configs' | fastquorum shell n1",
    )
    parser.add_argument("path", metavar="DIR|FILE", nargs="?")
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="one command with its arguments; help lists them")
    add_at(parser)
    add_bootstrap(parser, required=False)
    add_format(parser)
    add_kernels(parser)
    parser.set_defaults(options_anywhere=True)


def run(arguments: argparse.Namespace) -> int:
    path, command = arguments.path, arguments.words
    if arguments.bootstrap is not None and path is not None:
        path, command = None, [path, *command]
    elif arguments.bootstrap is None and path is None:
        raise UsageError("name a directory or file, or a quorum with --bootstrap", "see fastquorum shell --help")
    if arguments.format == "json" and not command:
        raise UsageError("--format json is for one command", "fastquorum shell DIR ls /image --format json")
    if command and command[0] not in COMMANDS and os.path.exists(command[0]):
        problem = f"it shows one {'quorum' if path is None else 'log'}, and {command[0]} is another one"
        raise UsageError(problem, "fastquorum image shows several, and fastquorum report image-diff what differs")
    if path is None:
        with quorum_client(arguments) as client:
            return look_around(_source(client, arguments), command, as_json=arguments.format == "json")
    kernels = load_kernels(arguments.kernels)
    with working(f"reading {path}"):
        if os.path.isdir(path):
            fold, tail = fold_as_recovered(open_offline(path, kernels), kernels, arguments.at)
        elif not exists(path):
            raise DirectoryError("there is no such directory or file", path=path)
        else:
            fold, tail = fold_file(path, kernels, arguments.at), None
    tell_where(fold, arguments.at)
    tell_torn(tail)
    return look_around(lambda: _seen(fold), command, as_json=arguments.format == "json")


def _source(client: QuorumClient, arguments: argparse.Namespace) -> Source:
    """Return the source of a running quorum's image: the present one at each command, or that at --at."""
    if arguments.at is None:
        live = LiveImage(client, client.kernels, arguments.timeout)
        live.at(watch=WATCH)
        return lambda: _seen(live.at())
    fold = watched_fold(client, arguments.timeout, arguments.at)
    tell_where(fold, arguments.at)
    return lambda: _seen(fold)


def _seen(fold: Fold) -> tuple[Image, Place]:
    return fold.image, fold.place


def look_around(source: Source, command: Sequence[str] = (), *, as_json: bool = False) -> int:
    """Run one command over an image, or, without one, a prompt or the lines of stdin; the exit code."""

    def look() -> Directory:
        return tree_of(*source())

    def complain(text: str) -> None:
        sys.stdout.flush()
        tell(f"fastquorum shell: {text}" if command else text)

    shell = ShellSession(look, complain, as_json=as_json)
    if command:
        return 0 if shell.run(command) else UsageError.exit_code
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Script(shell).run()
    _, place = source()
    print(f"The image of offsets below {place.end_offset}, epoch {place.epoch}; help lists the commands")
    return Prompt(shell).run()
