"""`fastquorum guide`: the guide, a chapter at a time in the terminal, or whole as a page."""

import argparse
import os
import pydoc
import re
import sys
from typing import Final

from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.cli.terminal.outputs import check_directory
from fastquorum.errors import UsageError
from fastquorum.guide import CHAPTERS, Chapter, chapter_of

WIDTH_MAX: Final = 100
"""Longer lines are hard to read, however wide the terminal is."""
_CHAPTER_LINK: Final = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.md(?:#[\w-]+)?\)")


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Read the guide: its chapters, or one of them. In a terminal a chapter is laid out and shown by $PAGER (less); "
        "elsewhere it is Markdown. --html writes all chapters as one page with a search box, which needs no network.",
        "fastquorum guide",
        "fastquorum guide embed",
        "fastquorum guide limits > limits.md",
        "fastquorum guide --html guide                              # then open guide/index.html",
    )
    parser.add_argument("chapter", metavar="CHAPTER", nargs="?", help="which one; without it they are listed")
    parser.add_argument("--html", metavar="DIR", help="write the whole guide as a page into this new directory")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.html is not None:
        if arguments.chapter is not None:
            raise UsageError("--html writes all chapters", f"leave {arguments.chapter} out")
        _write(arguments.html)
        print(os.path.join(arguments.html, "index.html"))
    elif arguments.chapter is None:
        _print_list(arguments.format)
    else:
        _show(chapter_of(arguments.chapter), arguments.format)
    return 0


def _print_list(how: str) -> None:
    if how == "json":
        print_json([{"chapter": each.name, "title": each.title, "summary": each.summary} for each in CHAPTERS])
    else:
        print_table(("CHAPTER", "WHAT IS IN IT"), [(each.name, each.summary) for each in CHAPTERS])


def _show(chapter: Chapter, how: str) -> None:
    if how == "json":
        print_json({"chapter": chapter.name, "title": chapter.title, "text": chapter.text})
    elif sys.stdout.isatty():
        os.environ.setdefault("LESS", "FRX")  # show colours, and end at once where one screen is enough
        pydoc.pager(_laid_out(chapter.text))
    else:
        print(chapter.text, end="")


def _laid_out(text: str) -> str:
    """Return the Markdown as this terminal shows it."""
    from rich.console import Console
    from rich.markdown import Markdown

    plain = _CHAPTER_LINK.sub(r"\1 (`fastquorum guide \2`)", text)
    console = Console(file=sys.stdout)
    console = Console(
        file=sys.stdout,
        width=min(console.width, WIDTH_MAX),
        color_system=None if console.no_color or console.is_dumb_terminal else "auto",
    )
    with console.capture() as shown:
        console.print(Markdown(plain, code_theme="ansi_dark", hyperlinks=False))
    return shown.get()


def _write(directory: str) -> None:
    from fastquorum.guide.site import PAGE, site
    from fastquorum.pages.new_files import new_directory, new_file

    check_directory("--html", directory)
    text = site(CHAPTERS)
    with new_directory(directory), new_file(os.path.join(directory, PAGE)) as file:
        file.write(text)
