"""`fastquorum deploy`: files that run nodes as services or in containers."""

import argparse
from importlib import resources
from typing import Final

from fastquorum.cli.terminal.arguments import explain

FILES: Final = {
    "systemd": "fastquorum@.service",
    "container": "Containerfile",
    "compose": "compose.yaml",
}


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print a systemd unit (a template: one instance for each node), a Containerfile, or a compose file with three "
        "nodes. Each begins with how it is used. Change what is printed as you need it.",
        "fastquorum deploy systemd > /etc/systemd/system/fastquorum@.service",
        "fastquorum deploy container > Containerfile",
        "fastquorum deploy compose > compose.yaml",
    )
    parser.add_argument("kind", metavar="KIND", choices=tuple(FILES), help=", ".join(FILES))


def run(arguments: argparse.Namespace) -> int:
    text = resources.files("fastquorum").joinpath("deploy", FILES[arguments.kind]).read_text(encoding="utf-8")
    print(text, end="")
    return 0
