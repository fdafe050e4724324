"""Audits and reports of several paths, as the shell's glob gives them: what is a replica's directory is looked at, what
is none is named, and only a path that cannot be looked at decides the exit code."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fastquorum.cli.main import main
from fastquorum.data import unpack_cluster
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.spark.pipelines.latency.files import files_at
from fastquorum.spark.stored.logs import find, find_all
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUDITS = [("audit", "replicas"), ("audit", "invariants")]
REPORTS = [
    ("report", "timeline"),
    ("report", "placement"),
    ("report", "anomalies"),
    ("report", "image-diff", "--from", "1800", "--to", "1836"),
]
DANGLING = "is a link to what is not there; mount or restore its target, or remove the link"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Three replicas beside a file and a directory that are none, as `fastquorum generate --out` leaves them."""
    backup = tmp_path / "backup"
    for name in ("c1", "c2", "c3"):
        shutil.copytree(CLUSTER / name, backup / name)
    (backup / "planted.json").write_text("[]\n")
    (backup / "lost+found").mkdir()
    return backup


def ways(backup: Path) -> dict[str, list[str]]:
    """How people name all that is in a directory."""
    return {
        "by the shell's glob": sorted(map(str, backup.iterdir())),
        "by a quoted glob": [f"{backup}/*"],
        "as a directory of directories": [str(backup)],
        "with commas": [",".join(map(str, backup.iterdir()))],
    }


@pytest.mark.parametrize("words", [*AUDITS, *REPORTS])
def test_what_is_none_is_named_in_a_line_and_all_else_is_looked_at(
    words: tuple[str, ...], backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for way, paths in ways(backup).items():
        assert main([*words, *paths]) == 0, way
        output = capsys.readouterr()
        assert f"note: {backup}/planted.json is passed over: is a file" in output.out.splitlines(), way
        assert f"note: {backup}/lost+found is passed over: holds no log" in output.out.splitlines(), way
        assert main([*words, *paths, "--format", "json"]) == 0, way
        report = json.loads(capsys.readouterr().out)
        assert sorted(report["passed_over"], key=lambda each: str(each["path"])) == [
            {"path": f"{backup}/lost+found", "why": "holds no log"},
            {"path": f"{backup}/planted.json", "why": "is a file"},
        ], way


@pytest.mark.parametrize("words", [*AUDITS, *REPORTS])
def test_a_path_that_leads_nowhere_keeps_none_from_being_looked_at_and_is_the_exit_code(
    words: tuple[str, ...], backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (backup / "gone").symlink_to(backup / "not-mounted")
    missing = [str(backup / each) for each in ("c1", "c2", "c3", "nowhere")]
    for way, paths in {**ways(backup), "one is mistyped": missing}.items():
        text = "nowhere: is not there" if paths is missing else f"gone: {DANGLING}"
        assert main([*words, *paths]) == 1, way
        output = capsys.readouterr()
        assert text in " ".join((output.out if words in AUDITS else output.err).split()), (way, output)
        assert "Traceback" not in output.err
        main([*words, *paths, "--format", "json"])
        assert text in json.dumps(json.loads(capsys.readouterr().out)), way


@pytest.mark.parametrize("words", [*AUDITS, *REPORTS])
def test_where_nothing_can_be_looked_at_it_is_a_refusal(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "not-mounted")
    for paths, text in (
        ([tmp_path / "file", tmp_path / "empty"], "there is no log at"),
        ([tmp_path / "file", tmp_path / "gone"], f"gone: {DANGLING}"),
        ([tmp_path / "nowhere", tmp_path / "neither"], "neither: is not there"),
        ([f"{tmp_path}/*"], f"gone: {DANGLING}"),
    ):
        assert main([*words, *map(str, paths)]) == 2, paths
        output = capsys.readouterr()
        assert (output.out, text in output.err, len(output.err.splitlines())) == ("", True, 1), output


def test_a_program_that_names_what_is_no_log_is_refused_as_ever(backup: Path) -> None:
    with pytest.raises(UsageError, match="there is no log at"):
        find(f"{backup}/c1,{backup}/lost+found")
    with pytest.raises(DirectoryError, match="is not there"):
        find(f"{backup}/c1,{backup}/nowhere")
    assert len(find(f"{backup}/*").logs) == len(find_all(f"{backup}/*").logs) == 3


def test_results_of_load_are_found_beside_what_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "gone.json").symlink_to(tmp_path / "not-mounted")
    for way, paths in ways(tmp_path).items():
        text = ",".join(paths)
        assert files_at(text).found == [str(tmp_path / "run.json")], way
        assert [path for path, _ in files_at(text).unread] == [str(tmp_path / "gone.json")], way
        assert main(["report", "latency", *paths, "--format", "json"]) == 1
        output = capsys.readouterr()
        assert f"{tmp_path}/gone.json" in json.dumps(json.loads(output.out)["errors"]), way
    (tmp_path / "run.json").unlink()
    assert main(["report", "latency", *ways(tmp_path)["by the shell's glob"]]) == 2
    assert "gone.json" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("words", [("audit", "replicas"), ("report", "timeline")])
def test_spark_looks_at_the_same(
    words: tuple[str, ...], shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "backup"
    unpack_cluster(backup)
    (backup / "planted.json").write_text("[]\n")
    (backup / "gone").symlink_to(tmp_path / "not-mounted")
    for paths in ways(backup).values():
        reports = []
        for more in ([], ["--master", "local[2]"]):
            assert main([*words, *paths, "--format", "json", *more]) == 1
            reports.append(json.loads(capsys.readouterr().out))
        assert reports[0] == reports[1]
        assert [each["path"] for each in reports[0]["passed_over"]] == [f"{backup}/planted.json"]
