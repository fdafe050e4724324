"""`--html` of every command, on the session that the tests share: the page has what `--format json` says."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fastquorum.cli.main import COMMANDS, Command, main
from fastquorum.load.reports import history
from fastquorum.pages import report_of
from tests.pages.reading import looked_at
from tests.spark.pipelines.test_latency import spread
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit-replicas", CLUSTER), "28,538 bytes from offset 3,836 on"),
        (("audit-invariants", CLUSTER), "Every promise that could be checked is kept."),
        (("anomalies", CLUSTER), "Nothing is unusual."),
        (("sim-sweep", "--seeds", "3:4"), "Every promise was kept in every seed."),
        (("timeline", CLUSTER), "Who led the quorum"),
        (("placement", CLUSTER), "610, leads 434"),
        (("image-diff", CLUSTER, "--from", "1800", "--to", "1836"), "From offset 1,800 to 1,836"),
    ],
)
def test_the_page_has_the_report(
    words: tuple[object, ...],
    message: str,
    shared: "SparkSession",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.html"
    assert main(["spark", *map(str, words), "--html", str(page), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    drawn = page.read_text()
    assert message in looked_at(drawn).words
    assert report_of(drawn) == report


def test_the_page_of_runs_has_the_report(
    shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    for each in spread(1000, 3):
        history.save(str(tmp_path / "runs"), each)
    assert main(["spark", "latency", str(tmp_path / "runs"), "--html", str(page), "--format", "json"]) == 0
    assert report_of(page.read_text()) == json.loads(capsys.readouterr().out)
    assert "Latency by percentile" in looked_at(page.read_text()).words


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if each.words[0] == "spark"], ids=lambda each: each.words[1]
)
def test_every_command_of_spark_has_a_page(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command.words, "--help"])
    assert "--html FILE" in capsys.readouterr().out
