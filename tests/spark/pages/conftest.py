"""The command, as the command line's own tests call it."""

from tests.cli.conftest import fastquorum as fastquorum
