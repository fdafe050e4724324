"""Errors in our own words: found on the driver, or brought from a worker."""

import os
import pickle
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fastquorum.spark
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, NotReady, UsageError
from fastquorum.spark import plain_errors, read
from fastquorum.spark.plain import our_error
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from tests.spark.damage import change
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

C1 = str(CLUSTER / "c1")


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (C1, {"tabel": "batches"}, "there is no option 'tabel'; the options are asOfOffset, asOfTimestamp"),
        (C1, {"table": "leaders"}, "there is no table 'leaders'; the tables are base, batches"),
        (C1, {"columns": "offset,when"}, "table 'records' has no column 'when'; the columns are"),
        (C1, {"fromOffset": -1}, "option fromOffset is '-1'; it is a whole number from 0 on"),
        (C1, {"startingOffset": "latest"}, "option startingOffset means nothing to a batch read"),
        (
            C1,
            {"startingOffset": "middle"},
            "option startingOffset is 'middle'; it is earliest, latest, or a whole number",
        ),
        (C1, {"fromOffset": 9, "toOffset": 8}, "fromOffset 9 lies behind toOffset 8; give the earlier one first"),
        (C1, {"fromEpoch": 2, "toEpoch": 1}, "fromEpoch 2 lies behind toEpoch 1"),
        (C1, {"fromTimestamp": "2026-11-24", "toTimestamp": 5}, "fromTimestamp 2026-11-24 lies behind toTimestamp 5"),
        (C1, {"bootstrap": "h:1"}, "both a path and bootstrap are given"),
        ("", {}, "no path is given"),
        ("/nope", {}, "/nope: is not there; name a data directory"),
        ([C1, "/nope"], {}, "/nope: is not there; name a data directory"),
        (["/a,b"], {}, "'/a,b' has a comma in it"),
        ("/nope/*", {}, "there is no log at /nope/*; name a data directory"),
    ],
)
def test_what_is_wrong_with_a_read_is_told_before_spark_hears_of_it(
    path: str | list[str], options: dict[str, object], message: str
) -> None:
    nobody: SparkSession = object()  # type: ignore[assignment]
    with pytest.raises(UsageError) as caught:
        read(nobody, path, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (UsageError, "there is no option 'x'; the options are y"),
        (DirectoryError, "/x: is a file; name a directory"),
        (CorruptionError, "/x.log: corrupt: crc at byte 7 (offset 3)"),
        (NotReady, "not ready"),
    ],
)
def test_an_error_of_a_worker_is_of_its_class_and_says_what_it_said(kind: type[FastQuorumError], message: str) -> None:
    text = f"An exception was thrown:\n  File ...\nfastquorum.errors.{kind.__name__}: {message}\n\n SQLSTATE: 38000"
    error = our_error(text)
    assert isinstance(error, kind)
    assert str(error) == message
    assert error.exit_code == kind.exit_code
    again = pickle.loads(pickle.dumps(error))
    assert (again, str(again), isinstance(again, kind)) == (error, message, True)
    assert error != UsageError("other")
    assert repr(error)
    assert our_error("org.apache.spark.SparkException: Job aborted") is None


def test_rows_and_errors_are_as_without_spark(spark: "SparkSession", tmp_path: Path) -> None:
    assert {"read", "plain_errors"} <= set(dir(fastquorum.spark))
    assert read(spark, C1, table="batches", mode="quarantine").count() > 0
    assert read(spark, [C1, str(CLUSTER / "c2")]).select("directory").distinct().count() == 2
    shutil.copytree(C1, tmp_path / "bad")
    path = tmp_path / "bad" / LOG_DIRECTORY / segment_name(0)
    change(path, os.path.getsize(path) - 200, b"\xff\x00\xff")
    with pytest.raises(CorruptionError) as caught, plain_errors():
        read(spark, str(tmp_path / "bad")).count()
    assert str(caught.value).startswith(f"{path}: corrupt: magic at byte")
    assert "option mode=quarantine has damaged bytes in columns" in str(caught.value.__cause__), "how to read on"
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException), plain_errors():
        read(spark, C1).select("nothing")
    with pytest.raises(UsageError) as refused, plain_errors():
        spark.read.format("fastquorum").option("tabel", "x").load(C1)
    assert str(refused.value).startswith("there is no option 'tabel'; the options are asOfOffset")
