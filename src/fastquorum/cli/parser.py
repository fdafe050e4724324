"""The parser of the command line: what is mistyped is told by the command that was meant, with what may be meant."""

import argparse
import contextlib
import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

PATHS: Final = frozenset({"DIR", "FILE", "PATH", "IN", "OUT", "PLAN", "PREFIX"})
"""What stands for a place in the file system, in the metavar of an option or argument."""
_NEAR: Final = 0.6
"""From here on something may be meant (`difflib`)."""


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

    def refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Exit with this command's usage at the first option among `words` that it does not have."""
        if self._takes_the_rest:
            return
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if word.startswith("--") and " " not in word and name not in self._option_string_actions:
                self.error(f"there is no option {name}{_meant(name, self._option_string_actions)}")

    def refuse_surplus(self, words: Sequence[str]) -> NoReturn:
        """Exit with this command's usage: nothing here takes these words."""
        said = f"unrecognized arguments: {' '.join(words)}"
        single = [each for each in self._get_positional_actions() if each.nargs in (None, "?")]
        paths = [each for each in single if names_a_path(each)]
        if len(paths) == 1:
            self.error(f"{said}; it takes one {paths[0].metavar}: ask for each of several in turn")
        if not single and not words[0].startswith("-"):
            option = next((each for each in self._actions if each.option_strings and names_a_path(each)), None)
            example = f", as {option.option_strings[-1]} {words[0]}" if option is not None else ""
            self.error(f"{said}; a value stands behind its option here{example}")
        self.error(said)

    @property
    def _takes_the_rest(self) -> bool:
        return any(each.nargs == argparse.REMAINDER for each in self._get_positional_actions())

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse's, and says which choice is near."""
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
        """As argparse's, but help that cannot be written is an error; the reason of a refusal is not."""
        target = sys.stderr if file is None else file
        with contextlib.suppress(OSError) if target is sys.stderr else contextlib.nullcontext():
            target.write(message)


def names_a_path(action: argparse.Action) -> bool:
    """Is the value of this option or argument a place in the file system?"""
    return isinstance(action.metavar, str) and not PATHS.isdisjoint(action.metavar.split("|"))


def _meant(typed: str, known: Iterable[str], meanings: Mapping[str, str] = MappingProxyType({})) -> str:
    """What to add to an error: which of the known words is near, if one is, or what it means."""
    plain = {each.lower(): each for each in known}
    near = difflib.get_close_matches(typed.lower(), plain, n=1, cutoff=_NEAR)
    if not near:
        return ""
    found = plain[near[0]]
    return f"; did you mean {meanings.get(found, found)}?"
