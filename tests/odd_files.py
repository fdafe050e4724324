"""What may lie in place of a file, by accident or after a restore."""

from pathlib import Path


def turned_into_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def linked_to_itself(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def linked_to_nothing(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.parent / "not-mounted" / path.name)
