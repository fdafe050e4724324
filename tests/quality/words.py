"""Find what the house's rule on words does not allow, each with what to write in its place.

    python -m tests.quality.words [PATH...]

A docstring is a noun phrase (a class, an attribute), or an imperative or "Return ..." (a function). A name says what a
thing is, in the field's terms. Exit code 1 if anything is found.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.quality.imports import ROOT

OPENINGS: Final = {
    "Of ": "name the thing that it is of",
    "As ": "say what it is, or what it does, then how",
    "Those ": "a plural noun",
    "What is ": "a noun phrase, or 'Return ...'",
    "Who ": "a noun phrase, or 'Return ...'",
    "Whose ": "a noun phrase, or 'Return ...'",
}
"""Beginnings of docstrings that have to be decoded, and what takes their place."""

NAMES: Final = {
    "told": "reported, notified, announced; metadata pushed by control requests is `pushed`",
    "said": "reported, stated, printed, logged; a response is `response`, a message `message`",
    "heard": "received, acknowledged, contacted",
    "asked": "request, requested, query, pending",
    "those": "a plural noun",
    "whose": "owner, or select_rows(...) and the like",
    "herd": "sim_brokers",
    "door": "clients, ClientApis",
    "terms": "session (of a lane), or conditions",
}
"""Parts of names that are banned, and what may take their place."""

BLOCKING: Final = {
    "api/blocking_producer.py",
    "broker/io/blocking.py",
    "node/io/callers/port.py",
    "sync.py",
}
"""Modules with what blocks: a class here has the name of its asyncio twin."""

LANGUAGES: Final = {".py", ".pyx", ".pxd", ".h", ".cpp"}
NOT_CODE: Final = re.compile(
    r'"""(?:.|\n)*?"""|//[^\n]*|/\*(?:.|\n)*?\*/|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
)
PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Finding:
    """One place that the rule does not allow."""

    path: str
    line: int
    problem: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}: {self.instead}"


def findings(path: Path, root: Path = ROOT) -> Iterator[Finding]:
    """Yield what the rule does not allow in one file of code."""
    name, text = str(path.relative_to(root)), path.read_text()
    for line, opening, instead in _openings(path, text):
        yield Finding(name, line, f"a docstring begins with {opening.strip()!r}", instead)
    for line, identifier in _identifiers(path, text):
        for part in PART.findall(identifier):
            if part.lower() in NAMES:
                yield Finding(name, line, f"{part.lower()!r} in {identifier}", NAMES[part.lower()])


def sources(*paths: str) -> list[Path]:
    """List the tracked files of code under these paths: all of src, ext, bench and tests, if none are given."""
    command = ["git", "ls-files", "--", *(paths or ("src", "ext", "bench", "tests"))]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [ROOT / each for each in listed if Path(each).suffix in LANGUAGES and (ROOT / each).exists()]


def public_classes() -> dict[str, list[str]]:
    """Return where each public class of the sources is defined; the wire's messages and twins aside."""
    found: dict[str, list[str]] = {}
    for path in sources("src/fastquorum"):
        parts = path.relative_to(ROOT / "src").parts[1:]
        is_twin = parts[:2] == ("kernels", "pure") or "/".join(parts) in BLOCKING
        if path.suffix != ".py" or parts[0] == "wire" or is_twin:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append("/".join(parts))
    return found


def _openings(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    strings: Iterator[tuple[int, str]]
    if path.suffix == ".py":
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr))
        constants = (node.value for node in nodes if isinstance(node.value, ast.Constant))
        strings = ((node.lineno, node.value) for node in constants if isinstance(node.value, str))
    else:
        matches = re.finditer(r'^\s*"""([^"])', text, re.MULTILINE)
        strings = ((text.count("\n", 0, match.start(1)) + 1, text[match.start(1) :]) for match in matches)
    for line, string in strings:
        for opening, instead in OPENINGS.items():
            if string.startswith(opening):
                yield line, opening, instead


def _identifiers(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield where a name is given, in Python; any use of one, in C++ and Cython."""
    if path.suffix != ".py":
        blank = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
        for number, line in enumerate(blank.splitlines(), 1):
            yield from ((number, identifier) for identifier in re.findall(r"[A-Za-z_]\w*", line))
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if not node.name.startswith("test_"):  # a sentence, not a name
                    yield node.lineno, node.name
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.arg():
                yield node.lineno, node.arg
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((node.lineno, alias.asname) for alias in aliases if alias.asname not in (None, alias.name))


def main() -> None:
    found = [each for path in sources(*sys.argv[1:]) for each in findings(path)]
    for each in found:
        print(each)
    print(f"{len(found)} findings", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
