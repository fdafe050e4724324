"""Apache Kafka's own code: where its jars are, and how one of its tools is run.

Each release's jars are looked for in the directory that its environment variable names, else in a cache directory that
Maven fills once. Two releases never share a class path.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

# Tools that run for a second: the second compiler and a parallel collector only cost time. What they log would stand
# between what they print.
JAVA = (
    "java",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Dfile.encoding=UTF-8",
    "-Dlog4j2.level=OFF",
)

TOOL_S: Final = 120
"""A tool that takes longer hangs."""


class Release(NamedTuple):
    """Jars that are fetched together."""

    name: str
    version: str
    pom: Path
    variable: str
    """The environment variable that names a directory with the jars."""
    jars: tuple[str, ...] = ("kafka-clients",)
    """Kafka's own that tests cannot do without: a directory that lacks one is refused."""


KAFKA: Final = Release(
    "kafka",
    "4.3.0",
    Path(__file__).with_name("pom.xml"),
    "KAFKA_LIB",
    ("kafka-clients", "kafka-shell", "kafka-tools", "kafka_2.13"),
)
"""The Kafka whose protocol and formats are ours."""
OLD_CLIENTS: Final = Release(
    "kafka-clients", "3.9.1", Path(__file__).with_name("pom-3.9.1.xml"), "KAFKA_CLIENTS_3_9_LIB"
)
"""The last to define what KIP-380 is about."""


class Missing(Exception):
    """Kafka cannot be run here; the message says why and what to install."""


class Kafka(NamedTuple):
    """An installation."""

    lib: Path
    version: str

    def run(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        extra: Path | None = None,
        stdin: str = "",
        timeout_s: float = TOOL_S,
    ) -> str:
        """Run a class; what it prints. `extra` goes before the jars on the class path."""
        command = [*JAVA, "-cp", self.class_path(extra), *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def class_path(self, extra: Path | None = None) -> str:
        return f"{self.lib}/*" if extra is None else f"{extra}{os.pathsep}{self.lib}/*"

    def dump_log(self, *arguments: str | Path, cwd: Path) -> str:
        """kafka-dump-log."""
        return self.run("org.apache.kafka.tools.DumpLogSegments", *arguments, cwd=cwd)

    def storage(self, *arguments: str | Path) -> str:
        """kafka-storage."""
        return self.run("kafka.tools.StorageTool", *arguments)

    def shell(self, file: Path, *command: str, stdin: str = "", timeout_s: float = TOOL_S) -> str:
        """kafka-metadata-shell: what it makes of a checkpoint, or of a segment, as an image. One command, or lines."""
        words = ("org.apache.kafka.shell.MetadataShell", "--snapshot", file, *command)
        return self.run(*words, stdin=stdin, timeout_s=timeout_s)

    def jar(self, name: str) -> Path:
        """One of Kafka's own, without its version."""
        return self.lib / f"{name}-{self.version}.jar"


def check(release: Release = KAFKA) -> None:
    """Raises Missing if Kafka cannot be had here. Fetches nothing."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise Missing("no Java compiler; Debian, Ubuntu: apt install default-jdk-headless maven")
    name, given = f"Apache Kafka {release.version}", os.environ.get(release.variable)
    for jar in release.jars if given else ():
        if not (Path(str(given)) / f"{jar}-{release.version}.jar").exists():
            raise Missing(f"{release.variable}={given} does not hold {jar} of {name}")
    if not given and not _cache(release).exists() and shutil.which("mvn") is None:
        raise Missing(f"no jars of {name}; install maven, or set {release.variable} to where they are")


def find(release: Release = KAFKA) -> Kafka:
    """Fetches the jars if they are not there. Raises Missing."""
    check(release)
    given = os.environ.get(release.variable)
    return Kafka(Path(given) if given else _cached(release), release.version)


def _cache(release: Release) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wanted = hashlib.sha256(release.pom.read_bytes()).hexdigest()[:8]  # jars fetched for another list are not enough
    return root / "fastquorum" / f"{release.name}-{release.version}-{wanted}"


def _cached(release: Release) -> Path:
    lib = _cache(release)
    if lib.exists():
        return lib
    lib.parent.mkdir(parents=True, exist_ok=True)
    with open(lib.parent / "kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes
        if not lib.exists():
            _download(release, lib)
    return lib


def _download(release: Release, lib: Path) -> None:
    """All or nothing: the directory appears when it is complete."""
    partial = lib.with_name(f"{lib.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", "--file", str(release.pom), *goal],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not partial.exists():
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no message"]
        raise Missing(f"maven could not fetch the jars of Apache Kafka {release.version}: {lines[0]}")
    partial.rename(lib)
