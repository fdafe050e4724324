"""What the tests of tables share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest


@pytest.fixture
def in_memory() -> Iterator[Callable[[Path], str]]:
    """Copies a directory to an object store; its path there."""
    store = fsspec.filesystem("memory")

    def copied(directory: Path) -> str:
        store.put(str(directory), "/tables", recursive=True)
        return "memory://tables"

    yield copied
    if store.exists("/tables"):
        store.rm("/tables", recursive=True)
