"""A Spark session that is quiet, leaves nothing behind where it was started, and knows the data source."""

import atexit
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions.environment import check_packages, is_local, prepare
from fastquorum.spark.sessions.masters import check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_directories: "list[tempfile.TemporaryDirectory[str]]" = []
"""Scratch directories of this process's sessions."""


def session(
    app_name: str = "fastquorum", master: str = "local[*]", config: Mapping[str, object] | None = None
) -> "SparkSession":
    """A session of Spark with the data source registered: a new one, or the one that this process has.

    The environment is made ready first (see `environment.prepare`). A session that this process already has is given
    back with `config` applied, as far as Spark can change it later; `app_name` and `master` are then not looked at.

    Args:
        master: `local[N]` for N threads of this machine (`*`: one a core), `local-cluster[N,CORES,MIB]`, a cluster's
            URL, or `sc://HOST:PORT` for a Spark Connect server, which needs no Java here.
        config: Spark's settings by name; they win over the ones that are set here: no web UI, warnings and errors only,
            progress only on a terminal, tables in a temporary directory, and, with a local master, no port that other
            machines can reach.
    Raises:
        SparkEnvironmentError: Spark cannot run here as things are; it says what to do.
        UsageError: nothing answers at the address that `master` names.
    """
    spark = open_session(app_name, master, config)
    register(spark)
    return spark


def register(spark: "SparkSession") -> None:
    """Make the data source known to a session, as `spark.read.format("fastquorum")`. Its executors need fastquorum
    installed as well. What needs a newer PySpark than this one is refused from then on, in one line."""
    from pyspark.errors import AnalysisException

    from fastquorum.spark.newer import refuse_early
    from fastquorum.spark.source import FastQuorumSource

    refuse_early(spark)
    try:
        spark.dataSource.register(FastQuorumSource)
    except AnalysisException as error:
        # Spark 4.0 refuses what it has found by itself.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def open_session(app_name: str, master: str, config: Mapping[str, object] | None = None) -> "SparkSession":
    """`session` without registering: it knows the data source if it finds it by itself."""
    check_packages()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    wanted: dict[str, Any] = {key: _text(value) for key, value in (config or {}).items()}
    if SparkSession.getActiveSession() is None:
        check_master(master)
    if master.startswith("sc://"):
        return SparkSession.builder.appName(app_name).config(map=wanted).remote(master).getOrCreate()
    if SparkSession.getActiveSession() is not None:
        return SparkSession.builder.config(map=wanted).getOrCreate()
    java = prepare(master).java
    scratch = _scratch()
    settings = {**_defaults(master, scratch), "spark.app.name": app_name, "spark.master": master, **wanted}
    with _environment(_of_the_jvm(master, scratch)), warnings.catch_warnings():
        # With spark.api.mode=connect, PySpark sets again in the session what it has just started the server with.
        warnings.filterwarnings("ignore", r"Failed to set spark\.", UserWarning)
        try:
            return SparkSession.builder.config(map=settings).getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise SparkEnvironmentError(
                f"Java {java.version} ({java.executable}, {java.why}) ended before Spark was up",
                "its output stands above; fastquorum doctor --spark looks for the reason",
            ) from error


def _scratch() -> Path:
    """Make a directory for Spark's leftovers. It goes with this process, or with `end_scratch`."""
    directory = tempfile.TemporaryDirectory(prefix="fastquorum-spark-", ignore_cleanup_errors=True)
    if not _directories:
        atexit.register(end_scratch)
    _directories.append(directory)
    return Path(directory.name)


def end_scratch() -> None:
    """Remove directories of sessions whose JVM has ended; a process that a signal ends would leave them."""
    while _directories:
        _directories.pop().cleanup()


def _defaults(master: str, scratch: Path) -> dict[str, str]:
    java_options = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} -Dderby.system.home={scratch}"
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": _text(sys.stderr.isatty()),
        "spark.log.level": "WARN",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        # Spark puts these before the extraJavaOptions, which are the user's.
        "spark.driver.defaultJavaOptions": java_options,
    }
    if is_local(master):
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        # With Spark's own 1 GiB, what tasks hand to one another of a million partitions leaves them waiting for room.
        found["spark.driver.memory"] = "2g"
        found["spark.executor.defaultJavaOptions"] = java_options
    return found


def _of_the_jvm(master: str, scratch: Path) -> dict[str, str]:
    """Return environment variables for the JVM alone; a later session of this process may be of a cluster."""
    found = {"SPARK_LOCAL_IP": LOOPBACK} if is_local(master) else {}
    if master.startswith("local-cluster"):
        found["SPARK_HOME"] = str(_home(scratch / "home"))
    return {name: value for name, value in found.items() if name not in os.environ}


def _home(directory: Path) -> Path:
    """Spark's directory as links: workers of a local-cluster write to its `work`, among the installed packages."""
    import pyspark

    directory.mkdir()
    for entry in Path(str(pyspark.__file__)).parent.iterdir():
        if entry.name != "work":
            (directory / entry.name).symlink_to(entry)
    return directory


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


def _text(value: object) -> str:
    """Return a value as Spark's settings are written."""
    return str(value).lower() if isinstance(value, bool) else str(value)
