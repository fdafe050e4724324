"""A path that begins with `~` lies in the home directory, wherever a path is taken."""

from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.cli.main import main
from fastquorum.errors import ConfigError, UsageError
from fastquorum.home import expanded
from tests.api.nodes import QUICK, WAIT_S


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def test_it_does_for_whatever_takes_a_path(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "n.properties").write_text("node.id=1\n")
    with sync.open("~/n1", **QUICK, config_file="~/n.properties") as quorum:
        quorum.wait_ready(WAIT_S)
        with quorum.trace("~/trace.json"):
            quorum.append(b"x")
    assert (home / "n1" / "meta.properties").exists()
    assert (home / "trace.json").exists()
    assert [record.value for record in fq.log.open("~/n1").records()] == [b"x"]
    assert main(["log", "verify", "~/n1"]) == 0
    assert main(["log", "verify", "./~/n1"]) != 0, "a directory of that very name"
    (home / "n2.properties").write_text("node.id=1\nmetadata.log.dir=~/n2\n")
    words = ["--cluster-id", "x", "--voters", "1@127.0.0.1:19091", "--node-id", "1"]
    assert main(["format", "--data=~/n3", *words]) == 0
    assert (home / "n3" / "meta.properties").exists()
    assert not Path("~").exists()
    capfd.readouterr()


@pytest.mark.parametrize(("path", "text"), [("", "empty"), (" ", "blank")])
def test_a_blank_path_is_told_as_that(path: str, text: str) -> None:
    with pytest.raises(ConfigError, match="it is empty"), sync.open(path):
        pass
    for read in (expanded, fq.log.open):
        with pytest.raises(UsageError, match=f"the path is {text}"):
            read(path)


def test_where_no_home_is_known_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    for path in ("~", "~/n1"):
        with pytest.raises(UsageError, match="set HOME"):
            expanded(path)
    assert expanded("./~/n1") == "./~/n1"
