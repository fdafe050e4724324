"""Entry point: finds the subcommand, runs it, and turns what it raises into one line and an exit code.

Exit codes are listed in EXIT_CODES, which `--help` shows. Errors bring theirs along (`FastQuorumError.exit_code`);
signals end a command with 128 and their number.
"""

import argparse
import contextlib
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from fastquorum.cli.spark.questions import IN_ONE_PROCESS, QUESTIONS
from fastquorum.cli.terminal import interrupts
from fastquorum.cli.terminal.counterparts import offline_command, online_command
from fastquorum.cli.terminal.parser import CommandParser
from fastquorum.cli.terminal.places import check_places, places_of
from fastquorum.cli.terminal.streams import StdoutClosed, complain, drop, open_streams, settle
from fastquorum.ending import Terminated
from fastquorum.errnos import reason, remedy
from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.home import check_is_somewhere
from fastquorum.meant import nearest, related

EXIT_BROKEN_PIPE: Final = 141
EXIT_CODES: Final = (
    "exit codes: 0 done, 1 a bad verdict or a failed command, 2 wrong usage, or a refusal that changed nothing, 3 try "
    "again later, 4 corrupt bytes, 5 the replica must stop, 129 hung up, 130 interrupted, 131 quit, 141 stdout was "
    "closed, 143 terminated"
)


class Command(NamedTuple):
    """One subcommand; `words` as typed."""

    words: tuple[str, ...]
    module: str
    summary: str


GROUPS: Final = {
    "quorum": "the quorum as its leader sees it",
    "broker": "the brokers of a cluster, as its controllers know them",
    "topic": "the topics of a cluster: made, moved and deleted by its controllers",
    "log": "read, check and close a log that no node runs on",
    "metrics": "the metrics of a node, for Prometheus and others",
    "wire": "Kafka's frames: decode, encode, record and replay them; their fields",
    "sim": "whole quorums in simulated time, by seed",
    "audit": "check many logs for damage, in one process or on Spark",
    "report": "reports on many logs or runs of load, in one process or on Spark",
    "spark": "audits of and reports on many logs, on Spark",
}


def _module_of(question: str) -> str:
    return f"spark.{question.replace('-', '_')}"


COMMANDS: Final = tuple(
    Command(tuple(words.split()), f"fastquorum.cli.{module}", summary)
    for words, module, summary in (
        ("demo", "demo", "three processes, a real Kafka metadata log, two kill -9, nothing lost"),
        ("random-uuid", "random_uuid", "draw a cluster id or directory id"),
        ("format", "node.format", "make a data directory for one node"),
        ("run", "node.run", "run one node in the foreground"),
        ("append", "quorum.append", "append records through the quorum"),
        ("read", "quorum.read", "read committed records"),
        ("quorum describe", "quorum.describe", "leader, high watermark, voters, lag"),
        ("broker list", "broker.list", "every registered broker"),
        ("broker describe", "broker.describe", "one broker: its registration, and what it holds"),
        ("broker fence", "broker.fence", "take a broker out of service before its session ends"),
        ("broker unregister", "broker.unregister", "remove the registration of a broker that is gone for good"),
        ("topic create", "topic.create", "create a topic"),
        ("topic list", "topic.list", "every topic"),
        ("topic describe", "topic.describe", "topics with their partitions and configurations"),
        ("topic delete", "topic.delete", "delete a topic, with all its records"),
        ("topic reassign", "topic.reassign", "move replicas to other brokers, as a plan says"),
        ("top", "top", "the quorum live: roles, rates, lags, percentiles"),
        ("metrics list", "metrics.list", "every metric, its type and meaning"),
        ("metrics grafana", "metrics.grafana", "the Grafana dashboard"),
        ("log dump", "log.dump", "print a log's batches and records"),
        ("log verify", "log.verify", "check every byte of a log directory"),
        ("log export", "log.export", "a table of stored logs as Parquet or Arrow files"),
        ("log trim", "log.trim", "close a log after a crash, for Kafka's tools"),
        ("image", "image.command", "brokers, topics and configurations of a metadata log, at an offset"),
        ("image diff", "image.diff", "what changed in a metadata log between two offsets"),
        ("shell", "shell.command", "look around in a metadata log as in a file system"),
        ("handover", "node.handover", "hand a data directory over between our node and Apache Kafka's"),
        ("load", "load.command", "put a quorum under load, and measure its throughput and latency"),
        ("load compare", "load.compare", "two results of load, as ratios"),
        ("profile", "load.profile", "a load with its nodes profiled: flame graph, time off the processor, syncs"),
        ("wire decode", "wire.decode", "frames in hex to JSON"),
        ("wire encode", "wire.encode", "JSON to frames in hex"),
        ("wire sniff", "wire.sniff", "a recording proxy in front of a node"),
        ("wire replay", "wire.replay", "send a recording's requests again, and compare the responses"),
        ("wire spec", "wire.spec", "the fields and versions of APIs and records"),
        ("sim run", "sim.run", "simulate one seed"),
        ("sim sweep", "sim.sweep", "simulate many seeds"),
        ("sim replay", "sim.replay", "simulate a seed again, with its trace"),
        ("generate", "generate", "metadata logs of made-up clusters, of real size, with faults on request"),
        *((words, _module_of(question), QUESTIONS[question]) for question, words in IN_ONE_PROCESS.items()),
        *((f"spark {question}", _module_of(question), summary) for question, summary in QUESTIONS.items()),
        ("spark sim-sweep", "spark.sim_sweep", "simulate many seeds on Spark's executors, and shrink those that fail"),
        ("spark demo", "spark.demo", "an audit of a real Kafka cluster's directories, and its history"),
        ("guide", "guide", "the guide: how to embed, operate and test it, and its limits"),
        ("help", "help", "explain a command"),
        ("version", "version", "print the version"),
        ("deploy", "deploy", "a systemd unit, a Containerfile or a compose file, to be changed"),
        ("completion", "completion", "let the shell complete commands and options by Tab"),
        ("doctor", "doctor.command", "what is installed here, how fast it syncs, what is wrong"),
    )
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; its exit code. Never raises for a user's mistake."""
    open_streams()
    try:
        try:
            arguments = _parse(list(sys.argv[1:] if argv is None else argv))
            interrupts.undo_first()
            gc.enable()  # see __main__
            return _run(arguments)
        except (KeyboardInterrupt, Terminated):
            drop(sys.stdout)  # it may be this that kept us: a reader that hangs
            raise
        finally:
            interrupts.nothing_to_undo()
            sys.stdout.flush()
    except KeyboardInterrupt:
        return interrupts.EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE  # the reader of the output has gone
    except StdoutClosed:
        complain("fastquorum: stdout is closed, and the output is lost; send it to a file, or to /dev/null")
        return 1
    except MemoryError:
        complain("fastquorum: there is not enough memory; raise the limit of the container, or ulimit -v")
        return 1
    except OSError as error:
        error.filename = error.filename or "stdout"  # of a stream that is not the process's own, in its place
        complain(f"fastquorum: {_text(error)}")
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            settle(stream)


def _run(arguments: argparse.Namespace) -> int:
    try:
        with arguments.output(arguments):
            return _attempt(arguments)
    except FastQuorumError as error:  # of making the output
        return _failed(arguments, error)


def _attempt(arguments: argparse.Namespace) -> int:
    try:
        check_places(arguments)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except (BrokenPipeError, StdoutClosed):
        raise
    except FileNotFoundError as error:
        return _failed(arguments, _as_meant(error))
    except (FastQuorumError, OSError) as error:
        return _failed(arguments, error)


def _as_meant(error: FileNotFoundError) -> FastQuorumError | OSError:
    """Return the error to show. One without a file name means the current directory, if that was deleted."""
    if error.filename is None:
        try:
            check_is_somewhere()
        except UsageError as nowhere:
            return nowhere
    return error


def _failed(arguments: argparse.Namespace, error: FastQuorumError | OSError) -> int:
    if arguments.debug:
        complain(traceback.format_exc())
    complain(f"fastquorum {arguments.command}: {_text(error)}")
    settle(sys.stdout)  # if it was that which failed, it would be told again
    # The disk's errors are FastQuorumErrors; what is left is a file or a stream of the user's own.
    return error.exit_code if isinstance(error, FastQuorumError) else 1


def _text(error: FastQuorumError | OSError) -> str:
    """Errors of this package say it all; those of the system lack what to do."""
    if isinstance(error, FastQuorumError):
        return str(error)
    where = f"{error.filename}: " if error.filename is not None else ""
    todo = remedy(error.errno or 0)
    return f"{where}{reason(error)}{f'; {todo}' if todo else ''}"


def _plain_output(_: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def parser_of(configured: Collection[Command]) -> tuple[CommandParser, dict[str, CommandParser]]:
    """Return the parser of the whole command line, and every command's by its words; only the modules of the
    `configured` commands are imported, and only they have arguments. If there are some, the others are left out."""
    parser = CommandParser(
        prog="fastquorum", description="A Kafka-KRaft-compatible metadata quorum.", epilog=EXIT_CODES
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parsers = {"": parser}
    choices = {"": parser.add_subparsers(metavar="COMMAND", title="commands")}
    for group, summary in GROUPS.items():
        if configured and all(each.words[0] != group for each in configured):
            continue
        parsers[group] = _add_parser(choices[""], group, summary)
        choices[group] = parsers[group].add_subparsers(metavar="COMMAND", title="commands")
    for command in COMMANDS:
        if any(command.words[:-1] == each.words for each in configured):
            # Not a choice any more: its word would have been the command's.
            _mention(parsers[" ".join(command.words[:-1])], command)
        is_above = any(command.words == each.words[:-1] for each in configured)
        if configured and command not in configured and not is_above:
            continue
        group = "".join(command.words[:-1])
        if group not in choices:
            # A command that has commands below it, as `load` has.
            choices[group] = parsers[group].add_subparsers(metavar="[COMMAND]", title="commands", required=False)
        added = parsers[" ".join(command.words)] = _add_parser(choices[group], command.words[-1], command.summary)
        if command in configured:
            module = importlib.import_module(command.module)
            added.set_defaults(output=_plain_output)
            module.configure(added)
            _add_debug(added)
            added.offline_command = offline_command(command.words)
            added.set_defaults(run=module.run, command=" ".join(command.words), places=places_of(added))
    return parser, parsers


def _parse(words: list[str]) -> argparse.Namespace:
    chosen = _chosen(words)
    parser, parsers = parser_of([chosen] if chosen is not None else [])
    if chosen is not None:
        meant = parsers[" ".join(chosen.words)]
        meant.option_elsewhere = lambda name: _option_elsewhere(chosen, name)
        _refuse_mistyped_below(chosen, words, meant)
        meant.refuse_unknown_options(words)
    else:
        parser.other_names = _other_names()
        before, group, behind = _around_command(words)
        parser.refuse_unknown_options(before)
        meant = parsers.get(group, parser)
        meant.refuse_unknown_options(list(takewhile(_is_option, behind)))
    arguments: argparse.Namespace
    arguments, unknown = parser.parse_known_args(words)
    if "options_anywhere" in arguments and not _is_option((*arguments.words, *unknown, "")[0]):
        # argparse takes words up to the first option only; an option behind a command is that command's to refuse.
        arguments.words += unknown
    elif unknown:
        meant.refuse_surplus(unknown)
    if arguments.version:
        from fastquorum.version import __version__

        print(f"fastquorum {__version__}")
        parser.exit(0)
    if not hasattr(arguments, "run"):
        parsers.get(_around_command(words)[1], parser).error("which command? See --help")
    return arguments


def _refuse_mistyped_below(chosen: Command, words: Sequence[str], parser: CommandParser) -> None:
    """Exit where a command below this one may be meant, as by `image dif`: a path of that name there is not."""
    rest = _typed(words)[len(chosen.words) :]
    if not rest or _is_option(rest[0]) or os.path.lexists(rest[0]):
        return
    near = nearest(rest[0], [each.words[-1] for each in COMMANDS if each.words[:-1] == chosen.words])
    if near is not None:
        parser.error(f"there is no command {rest[0]!r}; did you mean {near}? `{parser.prog} --help` lists them")


def _option_elsewhere(chosen: Command, name: str) -> str:
    """What to add to an error about an option that this command lacks: which command of its group, or which one that
    does the same with a running quorum, or with a directory, has it. Only their modules are imported."""
    counterparts = [online_command(chosen.words), offline_command(chosen.words)]
    for other in COMMANDS:
        words = " ".join(other.words)
        is_near = other.words[0] == chosen.words[0] or any(f"{each} ".startswith(f"{words} ") for each in counterparts)
        if other == chosen or not is_near:
            continue
        found = related(name, parser_of([other])[1][words]._option_string_actions)
        if found is not None:
            return f"; `fastquorum {words}` has {'it' if found == name else found}"
    return ""


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _around_command(words: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the options in front of the first word that is none, that word, and what stands behind it."""
    before = list(takewhile(_is_option, words))
    rest = words[len(before) :]
    return before, rest[0] if rest else "", rest[1:]


def _other_names() -> dict[str, str]:
    """What people type for the commands of a group: without the group, or in one word; the first one takes a name."""
    names: dict[str, str] = {}
    for command in COMMANDS:
        if len(command.words) > 1 and command.words[0] in GROUPS:
            for name in (command.words[-1], "-".join(command.words)):
                names.setdefault(name, " ".join(command.words))
    taken = {command.words[0] for command in COMMANDS}
    return {name: words for name, words in names.items() if name not in taken}


def _chosen(words: list[str]) -> Command | None:
    """The subcommand that is meant: only its module is imported."""
    typed = _typed(words)
    meant = [command for command in COMMANDS if typed[: len(command.words)] == command.words]
    return max(meant, key=lambda command: len(command.words), default=None)


def _typed(words: Sequence[str]) -> tuple[str, ...]:
    """Without the options that may stand in front of a command."""
    return tuple(word for word in words if word not in ("--debug", "--version"))


def _add_parser(choices: "argparse._SubParsersAction[CommandParser]", name: str, summary: str) -> CommandParser:
    return choices.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")


def _mention(parser: argparse.ArgumentParser, below: Command) -> None:
    """In the help of a command that has commands below it."""
    title = "" if "\ncommands:" in (parser.epilog or "") else "\n\ncommands:"
    parser.epilog = f"{parser.epilog}{title}\n  fastquorum {' '.join(below.words)}  {below.summary}"


def _add_debug(parser: argparse.ArgumentParser) -> None:
    # Suppressed, not False: a default here would overwrite what was said in front of the subcommand.
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
