"""The parser of the command line: what is mistyped is told by the command that was meant, with what may be meant."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from fastquorum.addresses import is_address
from fastquorum.meant import nearest, related

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

PATHS: Final = frozenset({"DIR", "FILE", "PATH", "IN", "OUT", "PLAN", "PREFIX"})
"""What stands for a place in the file system, in the metavar of an option or argument."""
ADDRESSES: Final = ("HOST:PORT", "HOST:PORT,...")
"""What stands for addresses of nodes there."""
_WITHOUT_OPTION: Final = {
    **dict.fromkeys(PATHS, frozenset(("data", "dir", "directory", "file", "files", "in", "input", "path", "snapshot"))),
    "ID": frozenset(("broker", "broker-id", "id", "node-id")),
    "NAME": frozenset(("name", "topic")),
}
"""By the metavar of an argument: the options that people, or other tools, name it by."""


class CommandParser(argparse.ArgumentParser):
    """A parser of one command, or of a group of them.

    argparse itself hands what a command does not know to the root, which shows its own usage, and reports a required
    option as missing where it is only mistyped.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.other_names: dict[str, str] = {}
        """What people type for a command that stands elsewhere, as `verify` for `log verify`, and the command."""
        self.option_elsewhere: Callable[[str], str] = lambda name: ""
        """What to add to an error about an option that this command lacks: which related command has it."""
        self.offline_command = ""
        """The command that reads a directory where this one queries a running quorum, as `log verify`; "" if none."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse like argparse, but report an unexpected word before a missing one: it may be the missing one."""
        several: list[Any] = [*self._actions, *self._mutually_exclusive_groups]
        demands = [each for each in several if each.required]
        if demands and not self._is_open:
            with _lifted(demands):
                _, surplus = super().parse_known_args(args, argparse.Namespace())
            if surplus:
                self.refuse_surplus(surplus)
        return super().parse_known_args(args, namespace)

    def refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Exit with this command's usage at the first option among `words` that it does not have."""
        if self._takes_the_rest:
            return
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if name in self._option_string_actions or not self._is_mistyped(name):
                continue
            if " " not in word:
                self.error(f"there is no option {name}{self._meant_by_option(name)}")

    def _is_mistyped(self, name: str) -> bool:
        """Is this an option in words, as -bootstrap is? `ls -la` is one of another command's, which answers for it."""
        if name.startswith("--") or not self.get_default("options_anywhere"):
            return name.startswith("-") and name.lstrip("-")[:1].isalpha() and len(name) > len("-x")
        return name.startswith("-") and related(name, self._option_string_actions) is not None

    def _meant_by_option(self, name: str) -> str:
        """What to add to an error about an option that there is not."""
        plain = name.lstrip("-")
        for each in self._actions:
            if each.option_strings and each.choices is not None and plain in each.choices:
                return f"; did you mean {each.option_strings[-1]} {plain}?"
        for each in self._get_positional_actions():
            metavars = each.metavar.split("|") if isinstance(each.metavar, str) else ()
            if any(plain in _WITHOUT_OPTION.get(metavar, ()) for metavar in metavars):
                return f"; {each.metavar} stands without an option"
        return self.option_elsewhere(name) or _meant(name, self._option_string_actions)

    def refuse_surplus(self, words: Sequence[str]) -> NoReturn:
        """Exit with this command's usage: nothing here takes these words."""
        problem = f"unrecognized arguments: {' '.join(words)}"
        single = [each for each in self._get_positional_actions() if each.nargs in (None, "?")]
        paths = [each for each in single if names_a_path(each)]
        if len(paths) == 1 and not words[0].startswith("-"):
            self.error(f"{problem}; it takes one {paths[0].metavar}: run it for each of them")
        if self.offline_command and not is_address(words[0]) and os.path.exists(words[0]):
            self.error(
                f"{problem}; it queries a running quorum, by --bootstrap; "
                f"`fastquorum {self.offline_command} {words[0]}` reads a directory"
            )
        if not single and not words[0].startswith("-"):
            takes = (names_an_address,) if is_address(words[0]) else (names_a_path, _names_a_text)
            options = [each for each in self._actions if each.option_strings]
            option = next((each for fits in takes for each in options if fits(each)), None)
            if option is not None:
                others = (each._group_actions for each in self._mutually_exclusive_groups)
                either = next((each for each in others if option in each), [option])
                examples = " or ".join(f"{each.option_strings[-1]} {words[0]}" for each in either if each.nargs is None)
                self.error(f"{problem}; a value follows its option here, as {examples}")
        self.error(problem)

    @property
    def _takes_the_rest(self) -> bool:
        return any(each.nargs == argparse.REMAINDER for each in self._get_positional_actions())

    @property
    def _is_open(self) -> bool:
        """Is it a group of commands, or does a command of its own follow, to which surplus words belong?"""
        return self._takes_the_rest or self._subparsers is not None or bool(self.get_default("options_anywhere"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check like argparse, and name the nearest choice."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        near = _meant(str(value), choices)
        if isinstance(action, argparse._SubParsersAction):
            todo = (
                _meant(str(value), [*choices, *self.other_names], self.other_names)
                or f" (choose from {', '.join(choices)});"
            )
            raise argparse.ArgumentError(None, f"there is no command {value!r}{todo} `{self.prog} --help` lists them")
        raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {', '.join(choices)}){near}")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Print like argparse, but raise if help cannot be written; for the reason of a refusal do not."""
        target = sys.stderr if file is None else file
        with contextlib.suppress(OSError) if target is sys.stderr else contextlib.nullcontext():
            target.write(message)


def names_a_path(action: argparse.Action) -> bool:
    """Is the value of this option or argument a place in the file system?"""
    return isinstance(action.metavar, str) and not PATHS.isdisjoint(action.metavar.split("|"))


def names_an_address(action: argparse.Action) -> bool:
    """Is the value of this option the address of a node, or of several?"""
    return action.metavar in ADDRESSES


def _names_a_text(action: argparse.Action) -> bool:
    return action.metavar == "TEXT"


@contextlib.contextmanager
def _lifted(demands: Sequence[Any]) -> Iterator[None]:
    """None of these arguments and groups is required meanwhile."""
    for each in demands:
        each.required = False
    try:
        yield
    finally:
        for each in demands:
            each.required = True


def _meant(typed: str, known: Iterable[str], meanings: Mapping[str, str] = MappingProxyType({})) -> str:
    """What to add to an error: which of the known words is near, if one is, or what it means."""
    found = nearest(typed, known)
    return "" if found is None else f"; did you mean {meanings.get(found, found)}?"
