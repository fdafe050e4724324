"""Import paths of former versions."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wire.fetch", "wire.messages.fetch"),
        ("wire.metadata", "wire.messages.metadata"),
        ("raft.follower", "raft.roles.follower"),
        ("node.io.resolving", "node.io.sockets.resolving"),
    ],
)
def test_a_module_that_moved_into_a_room_is_found_where_it_was(old: str, new: str) -> None:
    sys.modules.pop(f"fastquorum.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"fastquorum.{old} is now fastquorum.{new}"):
        found = importlib.import_module(f"fastquorum.{old}")
    assert found is importlib.import_module(f"fastquorum.{new}")
    assert found.__spec__ is not None
    assert found.__spec__.name == f"fastquorum.{new}"


@pytest.mark.parametrize("name", ["wire.nowhere", "cli.command", "nowhere"])
def test_what_no_room_has_or_several_have_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'fastquorum.{name}'"):
        importlib.import_module(f"fastquorum.{name}")
