"""Every command, as its parser describes it, with what people get wrong: all of it within one process."""

import argparse
import contextlib
import fcntl
import io
import os
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO, cast

import pytest

from fastquorum.cli.completion import SHELLS
from fastquorum.cli.main import COMMANDS, Command, main, parser_of
from fastquorum.cli.terminal.parser import CommandParser, names_a_path
from fastquorum.cli.terminal.places import places_of
from tests.cli.conftest import Ran
from tests.privileges import unprivileged
from tests.wire.golden import CLUSTER

NOWHERE = "/proc/nowhere/file"
BY_WORDS = [pytest.param(command, id=" ".join(command.words)) for command in COMMANDS]


def parser_for(command: Command) -> CommandParser:
    return parser_of([command])[1][" ".join(command.words)]


def usage(command: Command) -> str:
    return f"usage: fastquorum {' '.join(command.words)} "


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (each for each in parser._actions if each.option_strings)


def positionals(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (each for each in parser._actions if not each.option_strings)


def value_for(action: argparse.Action, path: str) -> str:
    """Something that this argument takes, wherever that leads."""
    if action.choices:
        return str(next(iter(action.choices)))
    if names_a_path(action):
        return path
    for value in ("127.0.0.1:1", "1", "0:1", "x"):
        try:
            action.type(value) if callable(action.type) else None
        except (ValueError, argparse.ArgumentTypeError):
            continue
        return value
    return "x"


def least(parser: argparse.ArgumentParser, path: str) -> list[str]:
    """The words without which the command does not begin."""
    needed = [each for each in options(parser) if each.required]
    needed += [group._group_actions[0] for group in parser._mutually_exclusive_groups if group.required]
    words = []
    for each in needed:
        words += [each.option_strings[-1]] if each.nargs == 0 else [each.option_strings[-1], value_for(each, path)]
    for each in positionals(parser):
        if each.nargs in (None, "+") or (each.nargs in ("?", "*") and names_a_path(each)):
            words.append(value_for(each, path))
    return words


class Bad(NamedTuple):
    """Paths that cannot be used, however a command means to."""

    places: Mapping[str, str]

    @classmethod
    def below(cls, root: Path) -> "Bad":
        """`unprivileged` needed: root may do all of it."""
        for name, mode in (("locked", 0), ("read-only", 0o555)):
            (root / name).mkdir()
            (root / name / "file").write_text("x")
            (root / name / "file").chmod(0o444 if mode else 0)
            (root / name).chmod(mode)
        (root / "unreadable").write_text("{}")
        (root / "unreadable").chmod(0)
        return cls(
            {
                "missing": NOWHERE,
                "behind a locked directory": str(root / "locked" / "file"),
                "unreadable": str(root / "unreadable"),
                "read-only": str(root / "read-only" / "file"),
                "in a read-only directory": str(root / "read-only" / "new"),
            }
        )


@pytest.mark.parametrize("command", BY_WORDS)
def test_a_mistyped_option_or_value_is_told_by_the_command_that_was_meant(
    fastquorum: Callable[..., Ran], command: Command
) -> None:
    parser = parser_for(command)
    if any(each.nargs == argparse.REMAINDER for each in positionals(parser)):
        return  # whatever follows is another command's
    long = next(each.option_strings[-1] for each in options(parser) if len(each.option_strings[-1]) > 5)
    ran = fastquorum(*command.words, long[:4] + long[5:])
    assert (ran.code, ran.err.startswith(usage(command))) == (2, True), ran.err
    assert f"; did you mean {long}?" in ran.err
    for option in options(parser):
        if option.choices and option.nargs is None:
            ran = fastquorum(*command.words, option.option_strings[-1], f"{next(iter(option.choices))}x")
            assert (ran.code, ran.err.startswith(usage(command))) == (2, True), ran.err
            assert "; did you mean " in ran.err or option.type is not None  # a number is no word
            break


@pytest.mark.parametrize("command", BY_WORDS)
def test_a_mistyped_command_is_told_with_what_may_be_meant(fastquorum: Callable[..., Ran], command: Command) -> None:
    *group, word = command.words
    ran = fastquorum(*group, f"{word}x")
    assert ran.code == 2
    assert f"there is no command '{word}x'; did you mean {word}?" in ran.err


def test_a_path_that_is_there_is_no_mistyped_command(
    fastquorum: Callable[..., Ran], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    data.rename("dif")
    assert "there is no command" not in fastquorum("image", "dif").err
    Path("dif").rename("n1")
    assert "there is no command 'dif'; did you mean diff?" in fastquorum("image", "dif", "--from", "0").err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["verify", "n1"], "fastquorum: error: there is no command 'verify'; did you mean log verify?"),
        (["log-verify"], "did you mean log verify?"),
        (["audit-replicas", "n1"], "did you mean audit replicas?"),
        (["describe"], "did you mean quorum describe?"),
        (["sweeep"], "did you mean sim sweep?"),
        (["log", "-x"], "fastquorum log: error: unrecognized arguments: -x"),
        (["log", "--formt", "verify"], "fastquorum log: error: there is no option --formt"),
        (["--dbug", "log", "verify"], "fastquorum: error: there is no option --dbug; did you mean --debug?"),
    ],
)
def test_what_stands_elsewhere_is_found_and_a_group_tells_of_its_own_options(
    fastquorum: Callable[..., Ran], words: list[str], expected: str
) -> None:
    ran = fastquorum(*words)
    assert (ran.code, expected in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("command", BY_WORDS)
def test_what_is_missing_and_what_is_too_much_is_told_by_the_command_that_was_meant(
    fastquorum: Callable[..., Ran], command: Command
) -> None:
    parser = parser_for(command)
    if any(each.required for each in options(parser)) or any(each.nargs in (None, "+") for each in positionals(parser)):
        ran = fastquorum(*command.words)
        assert (ran.code, ran.err.startswith(usage(command))) == (2, True), ran.err
        assert "required" in ran.err
    if all(each.nargs in (None, "?") for each in positionals(parser)):
        ran = fastquorum(*command.words, *least(parser, NOWHERE), "one", "two")
        assert (ran.code, ran.err.startswith(usage(command))) == (2, True), ran.err
        assert "unrecognized arguments:" in ran.err
        assert "two" in ran.err


@pytest.mark.parametrize("command", BY_WORDS)
def test_a_path_that_cannot_be_used_is_told_before_any_work_is_done(
    fastquorum: Callable[..., Ran], command: Command, tmp_path: Path
) -> None:
    parser = parser_for(command)
    soon = ("--timeout", "0.1") if "--timeout" in parser._option_string_actions else ()
    for name, bad in Bad.below(tmp_path).places.items():
        for action in parser._actions:
            if not names_a_path(action) or action.nargs == argparse.REMAINDER or not fits(name, action, command):
                continue
            words = least(parser, bad)
            if any(action in group._group_actions for group in parser._mutually_exclusive_groups if group.required):
                words = [action.option_strings[-1], bad]
            elif action.option_strings and action.option_strings[-1] not in words:
                words += [action.option_strings[-1], bad]
            with unprivileged():
                ran = fastquorum(*command.words, *words, *soon)
            assert ran.code in (1, 2, 3), (name, words, ran)
            assert len((ran.err + ran.out).splitlines()) <= 3 or command.words == ("doctor",), (name, words, ran)
            assert "Traceback" not in ran.err


def fits(name: str, action: argparse.Action, command: Command) -> bool:
    """Whether such a path is bad here: what may not be written may be read, a prefix names other files, and what Spark
    reads it reads as whoever started its JVM."""
    if name == "read-only" and (not action.option_strings or command.words == ("report", "latency")):
        return False
    is_file = name in ("read-only", "unreadable")
    return not is_file or (action.metavar != "PREFIX" and command.words != ("spark", "latency"))


@pytest.mark.parametrize("command", BY_WORDS)
def test_a_blank_path_or_address_is_refused_by_its_name(
    fastquorum: Callable[..., Ran], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parser = parser_for(command)
    for place in places_of(parser):
        action = next(each for each in parser._actions if each.dest == place.dest)
        blank = " " if place.may_be_empty or place.is_address else ""
        words = least(parser, NOWHERE)
        if not place.option:
            words = [(blank if each == NOWHERE else each) for each in words]
        elif any(action in group._group_actions for group in parser._mutually_exclusive_groups if group.required):
            words = [place.option, blank]
        elif place.option in words:
            words[words.index(place.option) + 1] = blank
        else:
            words += [place.option, blank]
        if not place.option and blank not in words:
            words.append(blank)
        ran = fastquorum(*command.words, *words)
        assert (ran.code, ran.out) == (2, ""), (words, ran)
        assert f"{place.shown} is {'blank' if blank else 'empty'}; was a variable not set?" in ran.err, (words, ran)
        assert len(ran.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@contextlib.contextmanager
def stdout_of(path: str) -> Iterator[None]:
    before = sys.stdout
    sys.stdout = open(path, "w")  # noqa: SIM115 - closed below, and not by an error of closing
    try:
        yield
    finally:
        opened, sys.stdout = sys.stdout, before
        opened.close()


@contextlib.contextmanager
def stdout_closed() -> Iterator[None]:
    """Set stdout to what Python finds after `>&-`."""
    before, sys.stdout = sys.stdout, cast("TextIO", None)
    try:
        yield
    finally:
        opened, sys.stdout = sys.stdout, before
        opened.close()


def test_a_node_goes_on_without_its_output_and_others_say_that_it_is_lost(data: Path) -> None:
    def closed(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "fastquorum.cli", *words]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert closed("run", "--data", str(data), "--until-stdin-ends").returncode == 0
    verified = closed("log", "verify", str(data))
    assert verified.returncode == 1
    assert verified.stderr.startswith("fastquorum: stdout is closed")
    assert len(verified.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", BY_WORDS)
def test_help_fits_a_narrow_terminal_without_colours_and_says_where_it_cannot_be_written(
    command: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit) as ended:
        main([*command.words, "--help"])
    assert ended.value.code == 0
    shown = capfd.readouterr().out
    assert "\x1b" not in shown
    options_shown = shown[shown.index("options:") :].partition("\nexample")[0]
    assert max(map(len, options_shown.splitlines())) <= 40 or any(len(word) > 36 for word in options_shown.split())
    with stdout_of("/dev/full"):
        assert main([*command.words, "--help"]) == 1
    assert capfd.readouterr().err == "fastquorum: stdout: No space left on device; make room on its file system\n"
    with stdout_closed():
        assert main([*command.words, "--help"]) == 1
    assert capfd.readouterr().err.startswith("fastquorum: stdout is closed")


C1 = str(CLUSTER / "c1")
REAL: Mapping[str, tuple[str, ...]] = {
    "random-uuid": (),
    "version": (),
    "help": (),
    "completion": ("bash",),
    "deploy": ("systemd",),
    "guide": ("start",),
    "metrics list": (),
    "metrics grafana": (),
    "log verify": (C1,),
    "log dump": ("DATA",),
    "log export": ("DATA", "--out", "NEW"),
    "log trim": ("DATA",),
    "image": (C1,),
    "image diff": (C1, "--from", "1816", "--to", "1836"),
    "shell": (C1, "ls", "/image"),
    "format": ("--data", "NEW", "--node-id", "1", "--voters", "1@127.0.0.1:9093"),
    "wire spec": ("Fetch",),
    "wire decode": (),
    "wire encode": (),
    "sim run": ("--seed", "7", "--nodes", "1"),
    "sim replay": ("--seed", "7", "--nodes", "1"),
    "generate": ("--out", "NEW", "--brokers", "3", "--partitions", "10", "--hours", "1"),
    "audit replicas": (C1, str(CLUSTER / "c2"), str(CLUSTER / "c3")),
    "audit invariants": (C1,),
    "report timeline": (C1,),
    "report placement": (C1,),
    "report anomalies": (C1,),
    "report image-diff": (C1, "--from", "1816", "--to", "1836"),
    "doctor": ("--data", "DATA"),
}
"""What each command prints something by, that needs neither a running quorum, nor runs of load, nor Spark, nor long."""
OTHERS = (
    *(
        "append",
        "broker",
        "demo",
        "handover",
        "load",
        "profile",
        "quorum",
        "read",
        "report latency",
        "run",
        "spark",
        "top",
    ),
    *("sim sweep", "topic", "wire replay", "wire sniff"),  # a sweep starts processes of its own, for seconds
)


def test_every_command_has_an_output_to_try_or_needs_a_quorum_or_spark() -> None:
    left = {" ".join(each.words) for each in COMMANDS} - set(REAL)
    assert {each for each in left if not each.startswith(OTHERS)} == set()


@pytest.mark.parametrize("name", REAL)
def test_output_goes_to_a_narrow_terminal_without_colours_and_says_where_it_cannot_be_written(
    name: str, data: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    def ran(number: int) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FRAMES.get(name, "").encode())))
        places = {"DATA": str(data), "NEW": str(tmp_path / f"new{number}")}
        try:
            return main([*name.split(), *(places.get(word, word) for word in REAL[name])])
        except SystemExit as ended:  # argparse's way
            return int(ended.code or 0)

    capfd.readouterr()
    with terminal(40) as shown:
        code = ran(0)
    assert code == 0 or name == "doctor", capfd.readouterr().err
    assert (b"\x1b" in shown, bool(shown.strip())) == (False, True)
    capfd.readouterr()
    with stdout_of("/dev/full"):
        assert ran(1) == 1
    printed = capfd.readouterr().err
    assert "No space left on device; make room on its file system\n" in printed
    assert "Traceback" not in printed
    with stdout_closed():
        assert ran(2) == 1
    printed = capfd.readouterr().err
    assert "fastquorum: stdout is closed" in printed
    assert "Traceback" not in printed


FRAMES = {
    "wire decode": '{"api_key": 18, "api_version": 0, "request": "00120000000000010000"}\n',
    "wire encode": '{"api_key": 18, "api_version": 0, "request_header": {"requestApiKey": 18, "requestApiVersion": 0, '
    '"correlationId": 1, "clientId": ""}, "request_json": {}}\n',
}


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[bytearray]:
    """Stdout is one of this width meanwhile; what it has shown."""
    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = bytearray()

    def look() -> None:
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while part := os.read(outer, 1 << 16):
                shown.extend(part)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with stdout_of(os.ttyname(inner)):
            os.close(inner)
            yield shown
    finally:
        looking.join()
        os.close(outer)


def test_the_shells_complete_every_command_and_option(fastquorum: Callable[..., Ran]) -> None:
    scripts = [fastquorum("completion", shell).out for shell in SHELLS]
    _, parsers = parser_of(COMMANDS)
    for command in COMMANDS:
        names = [each.option_strings[-1].removeprefix("--") for each in options(parsers[" ".join(command.words)])]
        assert all(name in script for name in (*command.words, *names) for script in scripts), command
    done = subprocess.run(["bash", "-n"], input=scripts[0], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_of_a_command_is_what_its_option_says(fastquorum: Callable[..., Ran]) -> None:
    assert fastquorum("help", "log", "verify") == fastquorum("log", "verify", "--help")
    assert fastquorum("help") == fastquorum("--help")
    assert fastquorum("version").out == fastquorum("--version").out
    assert fastquorum("help", "log", "vrify").code == 2


def test_several_directories_are_looked_at_in_turn_though_one_is_none(
    fastquorum: Callable[..., Ran], data: Path
) -> None:
    ran = fastquorum("log", "verify", data, "/proc/nowhere", data, "--format", "json")
    assert (ran.code, len(ran.out.splitlines())) == (2, 2)
    assert ran.err == "fastquorum log verify: /proc/nowhere: there is no such directory\n"
    assert fastquorum("log", "verify", data, data).code == 0
    assert os.path.basename(data) in fastquorum("log", "dump", data, data).out


def test_what_takes_one_path_by_its_nature_says_so_of_a_second_one(fastquorum: Callable[..., Ran], data: Path) -> None:
    for words, printed in (
        (("image", "diff", data, data, "--from", 0), "it takes one DIR: run it for each of them"),
        (("wire", "replay", data, data, "--to", "127.0.0.1:1"), "it takes one FILE: run it for each of them"),
        (("shell", data, data), f"it shows one log, and {data} is another one; fastquorum image shows several"),
        (("shell", data, data, "ls"), "it shows one log, and"),
    ):
        ran = fastquorum(*words)
        assert (ran.code, ran.out, printed in ran.err) == (2, "", True), ran
