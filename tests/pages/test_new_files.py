"""Files and directories that are there whole, or not at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.pages.new_files import new_directory, new_file, replaced_file


def half_file(path: str) -> None:
    with new_file(path) as file:
        file.write("half")
        raise KeyboardInterrupt


def half_directory(path: str) -> None:
    with new_directory(path):
        with new_file(f"{path}/whole") as file:
            file.write("whole")
        raise KeyboardInterrupt


@pytest.mark.parametrize("write", [half_file, half_directory])
def test_what_is_cut_off_is_not_there(write: Callable[[str], None], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with new_file(str(path)) as file:
        file.write("whole")
    with pytest.raises(FileExistsError), new_file(str(path)):
        pytest.fail("it was there")
    assert path.read_text() == "whole"
    with pytest.raises(FileExistsError), new_directory(str(tmp_path)):
        pytest.fail("it was there")
    assert path.read_text() == "whole"


def test_what_is_replaced_is_there_as_it_was_or_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(text: str) -> None:
        with replaced_file(str(path)) as draft, open(draft, "w") as file:
            file.write(text)
            if text == "half":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("half")
    assert path.read_text() == "old"
    write("new")
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]
    with replaced_file("/dev/null") as draft, open(draft, "w") as file:
        file.write("a device stays one")
    assert draft == "/dev/null"
