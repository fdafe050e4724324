"""`fastquorum completion`: a script that has a shell complete commands, options and their values."""

import argparse
from typing import Final

from fastquorum.cli.terminal.arguments import explain
from fastquorum.cli.terminal.parser import PATHS

SHELLS: Final = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print a script with which the shell completes commands, options and their values by Tab. It belongs to this "
        "version: print it again after an upgrade.",
        'eval "$(fastquorum completion bash)"                                              # in ~/.bashrc',
        'fastquorum completion zsh > "${fpath[1]}/_fastquorum"',
        "fastquorum completion fish > ~/.config/fish/completions/fastquorum.fish",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> int:
    import shtab

    from fastquorum import guide
    from fastquorum.cli.main import COMMANDS, parser_of  # which knows all commands, and imports this one

    root, parsers = parser_of(COMMANDS)
    for parser in parsers.values():
        for action in parser._actions:
            names = action.metavar if isinstance(action.metavar, str) else ""
            if action.choices is None and any(each in names for each in PATHS):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    for action in parsers["help"]._get_positional_actions():
        action.choices = sorted({command.words[0] for command in COMMANDS})
    for action in parsers["guide"]._get_positional_actions():
        action.choices = guide.names()
    print(shtab.complete(root, arguments.shell))
    return 0
