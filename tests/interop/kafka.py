"""Apache Kafka's own code: where its jars are, and how one of its tools is run.

The jars are looked for in $KAFKA_LIB, else in a cache directory that Maven fills once.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

VERSION = "4.3.0"
POM = Path(__file__).with_name("pom.xml")
LIB_VARIABLE = "KAFKA_LIB"
# Tools that run for a second: the second compiler and a parallel collector only cost time.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dfile.encoding=UTF-8")


class Missing(Exception):
    """Kafka cannot be run here; the message says why and what to install."""


class Kafka(NamedTuple):
    """An installation."""

    lib: Path

    def run(self, *arguments: str | Path, cwd: Path | None = None, extra: Path | None = None) -> str:
        """Run a class; what it prints. `extra` goes before the jars on the class path."""
        path = f"{self.lib}/*" if extra is None else f"{extra}{os.pathsep}{self.lib}/*"
        command = [*JAVA, "-cp", path, *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def dump_log(self, *arguments: str | Path, cwd: Path) -> str:
        """kafka-dump-log."""
        return self.run("org.apache.kafka.tools.DumpLogSegments", *arguments, cwd=cwd)

    def storage(self, *arguments: str | Path) -> str:
        """kafka-storage."""
        return self.run("kafka.tools.StorageTool", *arguments)

    def jar(self, name: str) -> Path:
        """One of Kafka's own, without its version."""
        return self.lib / f"{name}-{VERSION}.jar"


def check() -> None:
    """Raises Missing if Kafka cannot be had here. Fetches nothing."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise Missing("no Java compiler; Debian, Ubuntu: apt install default-jdk-headless maven")
    given = os.environ.get(LIB_VARIABLE)
    if given and not (Path(given) / f"kafka-clients-{VERSION}.jar").exists():
        raise Missing(f"{LIB_VARIABLE}={given} does not hold the jars of Apache Kafka {VERSION}")
    if not given and not _cache().exists() and shutil.which("mvn") is None:
        raise Missing(f"no jars of Apache Kafka {VERSION}; install maven, or set {LIB_VARIABLE} to where they are")


def find() -> Kafka:
    """Fetches the jars if they are not there. Raises Missing."""
    check()
    given = os.environ.get(LIB_VARIABLE)
    return Kafka(Path(given) if given else _cached())


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastquorum" / f"kafka-{VERSION}"


def _cached() -> Path:
    lib = _cache()
    if lib.exists():
        return lib
    lib.parent.mkdir(parents=True, exist_ok=True)
    with open(lib.parent / "kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes
        if not lib.exists():
            _download(lib)
    return lib


def _download(lib: Path) -> None:
    """All or nothing: the directory appears when it is complete."""
    partial = lib.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", "--file", str(POM), *goal], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not partial.exists():
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no message"]
        raise Missing(f"maven could not fetch the jars of Apache Kafka: {lines[0]}")
    partial.rename(lib)
