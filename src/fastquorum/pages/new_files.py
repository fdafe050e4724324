"""What a command writes for its user: it is there whole, or not at all, also if Ctrl-C comes meanwhile."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def new_file(path: str) -> Iterator[TextIO]:
    """A text that is written there. FileExistsError, and nothing changed, if something is there."""
    with open(path, "x", encoding="utf-8") as file:
        try:
            yield file
            file.flush()
        except BaseException:
            os.unlink(path)
            raise


@contextmanager
def replaced_file(path: str) -> Iterator[str]:
    """Yield where to write what is to be there: it takes the place of a file of that name once it is whole. What is
    there and is no file, as a device, is written to as it is."""
    if os.path.lexists(path) and not os.path.isfile(path):
        yield path
        return
    whole = os.path.realpath(path)
    draft = os.path.join(os.path.dirname(whole), f".{os.getpid()}-{os.path.basename(whole)}")
    try:
        yield draft
        os.replace(draft, whole)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


@contextmanager
def new_directory(path: str) -> Iterator[None]:
    """With what is put into it. FileExistsError, and nothing changed, if something is there."""
    os.makedirs(path)
    try:
        yield
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
