"""`fastquorum shell` at a prompt: lines typed with completion, or lines that a program writes.

Ctrl-C ends the command or the line, Ctrl-D the shell. Source: Kafka `InteractiveShell`.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from typing import Final

from fastquorum.cli.shell.commands import COMMANDS, ShellSession
from fastquorum.cli.shell.paths import completions
from fastquorum.cli.terminal.output import tell
from fastquorum.errors import FastQuorumError

PROMPT: Final = ">> "
_DELIMITERS: Final = " \t\n/"
"""Where the text begins that readline replaces: names of one directory are offered without those above."""
_LAST_WORD: Final = re.compile(r"(?:[^\s\\]|\\.)*\\?\Z")
_TO_ESCAPE: Final = re.compile(r"([\s\\'\"])")


class Prompt:
    """A person at a terminal."""

    def __init__(self, shell: ShellSession) -> None:
        self.lines: list[str] = []
        self._shell = shell
        shell.terminal = self

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def run(self) -> int:
        """Until they leave. Exit code 0: they have read what went wrong."""
        _complete_with(lambda line: offered(self._shell, line))
        while not self._shell.is_left:
            line = None
            try:
                line = input(PROMPT)
                self.lines += [line] if line.strip() else []
                run_line(self._shell, line)
            except KeyboardInterrupt:
                print("^C" if line is None else "")  # while a command runs, the terminal has shown it
            except EOFError:
                print()
                break
            except FastQuorumError as error:
                self._shell.complain(str(error))
        return 0


class Script:
    """Lines that come from a file or a pipe."""

    width = 0

    def __init__(self, shell: ShellSession) -> None:
        self.lines: list[str] = []
        self._shell = shell
        shell.terminal = self

    def run(self) -> int:
        """All of them. Exit code 2 if a command failed."""
        code = 0
        for line in sys.stdin:
            self.lines.append(line.rstrip("\n"))
            if not run_line(self._shell, line):
                code = 2
            if self._shell.is_left:
                break
        return code


def run_line(shell: ShellSession, line: str) -> bool:
    """Words are split as by sh, without its variables; whether all went well."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        shell.complain(f"{error}".lower())
        return False
    return shell.run(words) if words else True


def offered(shell: ShellSession, line: str) -> list[str]:
    """What the last word of a line may become: commands, or paths; those that are complete end with a space."""
    match = _LAST_WORD.search(line)
    assert match is not None
    typed = match[0]
    before = line[: match.start()].split()
    command = COMMANDS.get(before[0]) if before else None
    if not before or (command is not None and command.completes == "commands"):
        return [f"{name} " for name in COMMANDS if name.startswith(typed)]
    if command is None or command.completes != "paths":
        return []
    plain = re.sub(r"\\(.)", r"\1", typed)
    paths = completions(shell.look(), shell.working, plain)
    escaped = (_TO_ESCAPE.sub(r"\\\1", path) for path in paths)
    return [path if path.endswith("/") else f"{path} " for path in escaped]


def _complete_with(offer: Callable[[str], list[str]]) -> None:
    try:
        import readline
    except ImportError:
        tell("fastquorum shell: this Python has no readline: there is no completion and no history")
        return
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            match = _LAST_WORD.search(line)
            assert match is not None
            above = len(match[0]) - len(text)
            matches[:] = [each[above:] for each in offer(line)]
        return matches[state] if state < len(matches) else None

    readline.set_completer_delims(_DELIMITERS)
    readline.set_completer(complete)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
