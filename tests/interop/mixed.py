"""Quorums of our nodes and Apache Kafka's controllers: formatted, started, killed, and their logs compared."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from fastquorum.kernels import Kernels
from fastquorum.storage.names import LOG_DIRECTORY

from .directories import fastquorum
from .kafka import Kafka

HEAP: Final = "-Xmx256m"
NO_OP: Final = "01140000"
"""A NoOpRecord's bytes."""


class Member:
    """One voter: a process of ours, or of Kafka's."""

    def __init__(self, node_id: int, directory: Path, command: list[str]) -> None:
        self.id = node_id
        self.directory = directory
        self.output = directory.with_suffix(".out")
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.output, "ab") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")


def jvm_controller(
    kafka: Kafka,
    root: Path,
    node_id: int,
    port: int,
    cluster: str,
    *,
    voters: str = "",
    bootstrap: str = "",
    static: bool = False,
    directory: Path | None = None,
) -> Member:
    """Formatted by Kafka's own tool: as one of the voters with their directory ids (kraft.version 1), as a static voter
    (`static`: kraft.version 0), or as an observer of whom `bootstrap` leads to. Not formatted if a `directory` is
    given."""
    is_formatted = directory is not None
    directory = directory or root / f"kafka-{node_id}"
    config = root / f"kafka-{node_id}.properties"
    settings: dict[str, object] = {
        "process.roles": "controller",
        "node.id": node_id,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "log.dirs": directory,
    }
    if static:
        settings["controller.quorum.voters"] = voters
    else:
        settings["controller.quorum.bootstrap.servers"] = bootstrap
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    how = [] if static else ["--initial-controllers", voters] if voters else ["--no-initial-controllers"]
    if not is_formatted:
        kafka.storage("format", "-t", cluster, "-c", config, *how)
    logging = root / "log4j2.properties"
    logging.write_text(
        "rootLogger.level=INFO\nrootLogger.appenderRef.out.ref=out\nappender.out.type=Console\nappender.out.name=out\n"
        "appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%p %m%n\n"
    )
    command = ["java", HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging}"]
    return Member(node_id, directory, [*command, "-cp", kafka.class_path(), "kafka.Kafka", str(config)])


def our_node(root: Path, node_id: int, voters: str, cluster: str, *more: str, run: tuple[str, ...] = ()) -> Member:
    """`more` goes to `format`, `run` to `run`."""
    directory = root / f"ours-{node_id}"
    fastquorum(
        "format", "--data", directory, "--node-id", str(node_id), "--cluster-id", cluster, "--voters", voters,
        "--log", "metadata", *more,
    )  # fmt: skip
    command = [sys.executable, "-m", "fastquorum.cli", "run", "--data", str(directory), "--verbose", *run]
    return Member(node_id, directory, command)


def batches(kernels: Kernels, member: Member) -> dict[int, bytes]:
    """Every whole batch of its log on disk, by base offset."""
    found = {}
    for path in sorted((member.directory / LOG_DIRECTORY).glob("*.log")):
        data = path.read_bytes()
        for info in kernels.batch_headers(data):
            assert info.crc_valid, f"{path} at {info.position}"
            found[info.base_offset] = data[info.position : info.position + info.size_bytes]
    return found


def committed_below(kernels: Kernels, member: Member, end_offset: int) -> bytes:
    """Its log below an offset, byte for byte."""
    found = batches(kernels, member)
    return b"".join(found[base] for base in sorted(found) if base < end_offset)
