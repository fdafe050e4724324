"""The places that a command line names, paths and addresses: none is blank, and neither stands for the other.

An unset variable leaves a blank one (`--data "$DATA"`), which the system takes for the current directory in some
places, and for a file that is missing in others.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.addresses import is_address
from fastquorum.cli.terminal.counterparts import offline_command, online_command
from fastquorum.cli.terminal.parser import names_a_path, names_an_address
from fastquorum.errors import UsageError
from fastquorum.home import check_not_blank, expanded

_LISTS: Final = ("HOST:PORT,...", "IN")
"""Metavars of what may be several places with commas between."""
_OTHERS: Final = ("URL", "ID@HOST:PORT[:DIRID],...", "LISTEN=TARGET")
"""Metavars of what names a place in other words."""


class ArgumentPlace(NamedTuple):
    """An argument whose value is a path, an address, or has one in it."""

    dest: str
    metavar: str
    option: str
    """"" if it stands without one."""
    is_path: bool
    is_address: bool
    may_be_empty: bool
    """The option alone says something, and is the same as with an empty value."""

    @property
    def shown(self) -> str:
        """The name that a user knows: the option or the metavar."""
        return self.option or self.metavar

    @property
    def is_read(self) -> bool:
        """Is it a path that has to be there?"""
        return self.is_path and (not self.option or self.metavar == "IN")


def places_of(parser: argparse.ArgumentParser) -> list[ArgumentPlace]:
    return [
        ArgumentPlace(
            each.dest,
            str(each.metavar),
            each.option_strings[-1] if each.option_strings else "",
            names_a_path(each),
            names_an_address(each),
            each.const == "",
        )
        for each in parser._actions
        if names_a_path(each) or names_an_address(each) or each.metavar in _OTHERS
    ]


def check_places(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a place that cannot be meant; expand `~` in paths, as the shell leaves `--data=~/n1`."""
    places: Sequence[ArgumentPlace] = arguments.places
    for place in places:
        value = getattr(arguments, place.dest)
        if value is None:
            continue
        for each in value if isinstance(value, list) else [value]:
            _check(arguments, place, each)
        if place.is_path:
            setattr(arguments, place.dest, [*map(expanded, value)] if isinstance(value, list) else expanded(value))


def _check(arguments: argparse.Namespace, place: ArgumentPlace, value: str) -> None:
    if place.is_path:
        check_not_blank(place.shown, value)
    elif value or not place.may_be_empty:
        check_not_blank(place.shown, value, "was a variable not set?")
    parts = [each.strip() for each in value.split(",")] if place.metavar in _LISTS else [value]
    if place.is_read and all(map(is_address, parts)) and not os.path.lexists(value):
        detail = f"{place.shown}: {value!r} is an address, and a path is expected"
        raise UsageError(detail, _where_addresses_go(arguments, value))
    path = next((each for each in parts if place.is_address and not is_address(each) and os.path.exists(each)), None)
    if path is not None:
        detail = f"{place.shown}: {path!r} is a path, and an address is expected ({place.metavar})"
        raise UsageError(detail, _where_paths_go(arguments, place, path))


def _where_addresses_go(arguments: argparse.Namespace, value: str) -> str:
    option = next((each.option for each in arguments.places if each.is_address), "")
    if option:
        return f"it belongs after {option}"
    online = online_command(tuple(arguments.command.split()))
    return f"`fastquorum {online} --bootstrap {value}` queries a running quorum" if online else ""


def _where_paths_go(arguments: argparse.Namespace, place: ArgumentPlace, path: str) -> str:
    argument = next((each.metavar for each in arguments.places if each.is_path and not each.option), "")
    if argument:
        return f"{argument} stands without an option"
    offline = offline_command(tuple(arguments.command.split()))
    return f"`fastquorum {offline} {path}` reads a directory" if offline and place.option == "--bootstrap" else ""
