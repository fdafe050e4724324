"""What an older PySpark than this one cannot do is refused in one line, before Spark is asked."""

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from fastquorum.errors import UsageError
from fastquorum.spark.newer import NEEDS, newer, refuse_early
from tests.conftest import ROOT
from tests.spark.versions import DELTA, VERSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_with_an_older_pyspark_a_stream_is_refused_before_there_is_a_query(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    for builder in (DataStreamReader, DataStreamWriter):
        monkeypatch.setattr(builder, "format", builder.format)
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    refuse_early(spark)
    refuse_early(spark)
    with pytest.raises(UsageError, match=r"^streams from a log need PySpark 4\.2 or later, and this is 4\.0\.5; pip"):
        spark.readStream.format("FastQuorum")
    numbers = spark.readStream.format("rate").load()
    with pytest.raises(UsageError, match=r"^streams to a log need PySpark 4\.1 or later, and this is 4\.0\.5; pip"):
        numbers.writeStream.format("fastquorum")
    assert numbers.writeStream.format("noop") is not None


def test_with_this_pyspark_nothing_is_changed_or_refused(spark: "SparkSession") -> None:
    from pyspark.sql.streaming.readwriter import DataStreamReader

    before = DataStreamReader.format
    refuse_early(spark)
    assert DataStreamReader.format is before
    assert {newer(name).__name__ for name in NEEDS} == {f"fastquorum.spark.{name}" for name in NEEDS}


@pytest.mark.parametrize(("version", "missing"), [("4.0.0", 2), ("4.1.4", 1), ("4.2.0.dev1", 0), ("4.10.0", 0)])
def test_each_part_is_there_from_its_version_on(monkeypatch: pytest.MonkeyPatch, version: str, missing: int) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", version)
    refused = []
    for name in NEEDS:
        try:
            newer(name)
        except UsageError as error:
            refused.append(str(error))
    assert len(refused) == missing
    assert all(version in each and "\n" not in each for each in refused)


def test_no_extra_asks_for_a_newer_pyspark_than_delta_has() -> None:
    """Delta, Iceberg's runtime and hosted Sparks are behind the newest PySpark."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [each for extra in extras.values() for each in extra if re.match(r"pyspark\b", each)]
    assert len(wanted) == 2
    assert all(each.endswith(">=4.0,<5") for each in wanted), wanted
    assert DELTA.startswith("io.delta:delta-spark_2.13:4.")
    assert VERSIONS[0] == "4.0.*"
