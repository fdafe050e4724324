"""Nodes of ours and Apache Kafka's controllers that are to be one quorum: formatted, started, paused, killed."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastquorum.kernels import Kernels
from fastquorum.storage.names import LOG_DIRECTORY

from .directories import fastquorum
from .kafka import Kafka

HEAP: Final = "-Xmx256m"
STOP_S: Final = 30
LOGGING: Final = """\
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%p %c %m%n
"""
"""What `log_lines` reads."""

Settings = Mapping[str, object]


class Member:
    """One node: a process of ours, or of Kafka's."""

    def __init__(
        self, node_id: int, port: int, directory: Path, command: list[str], config: Path, *, is_ours: bool
    ) -> None:
        self.id = node_id
        self.port = port
        self.directory = directory
        self.config = config
        self.output = config.with_suffix(".out")
        self.is_ours = is_ours
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._before = 0
        """How much it had said when it was last started."""

    def __repr__(self) -> str:
        return f"{'our' if self.is_ours else 'Kafka'} node {self.id}"

    def start(self) -> None:
        assert self._process is None
        with open(self.output, "ab") as out:
            self._before = out.tell()
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """SIGTERM; nothing if it does not run."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def is_up(self) -> bool:
        """All of it: a controller of Kafka's takes part in the quorum before, and may not be stopped then."""
        return ("listens" if self.is_ours else "Kafka Server started").encode() in self.output.read_bytes()[
            self._before :
        ]

    def check(self) -> None:
        """Whoever was started and not killed runs."""
        if self._process is not None and self._process.poll() is not None:
            last = "\n".join(self.printed().splitlines()[-30:])
            raise AssertionError(f"{self} ended with exit code {self._process.returncode}:\n{last}")

    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""


def properties(path: Path, settings: Settings) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def jvm_controller(
    kafka: Kafka,
    directory: Path,
    node_id: int,
    port: int,
    cluster: str,
    *,
    voters: str = "",
    bootstrap: str = "",
    static: bool = False,
    formatted: bool = False,
    settings: Settings | None = None,
) -> Member:
    """Formatted by Kafka's own tool: as one of the voters with their directory ids (kraft.version 1), as a static voter
    (`static`: kraft.version 0), or as an observer of whom `bootstrap` leads to. `formatted`: the directory is already.
    """
    config = properties(
        directory.with_suffix(".kafka.properties"),
        {
            "process.roles": "controller",
            "node.id": node_id,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "log.dirs": directory,
            **({"controller.quorum.voters": voters} if static else {"controller.quorum.bootstrap.servers": bootstrap}),
            **(settings or {}),
        },
    )
    if not formatted:
        how = [] if static else ["--initial-controllers", voters] if voters else ["--no-initial-controllers"]
        kafka.storage("format", "-t", cluster, "-c", config, *how)
    logging = directory.with_name("log4j2.properties")
    logging.write_text(LOGGING)
    command = ["java", HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging}"]
    command += ["-cp", kafka.class_path(), "kafka.Kafka", str(config)]
    return Member(node_id, port, directory, command, config, is_ours=False)


def our_node(
    directory: Path,
    node_id: int,
    port: int,
    cluster: str,
    voters: str,
    *more: str,
    settings: Settings | None = None,
) -> Member:
    """`more` goes to `format`."""
    fastquorum(
        "format", "--data", directory, "--node-id", str(node_id), "--cluster-id", cluster, "--voters", voters,
        "--log", "metadata", *more,
    )  # fmt: skip
    config = properties(directory.with_suffix(".ours.properties"), settings or {})
    command = [sys.executable, "-m", "fastquorum.cli", "run", "--data", str(directory), "--verbose"]
    command += ["--config", str(config), "--listen", f"127.0.0.1:{port}"]
    return Member(node_id, port, directory, command, config, is_ours=True)


def batches(kernels: Kernels, member: Member) -> dict[int, tuple[int, bytes]]:
    """Every whole batch of its log on disk, by base offset: its epoch, its bytes."""
    found = {}
    for path in sorted((member.directory / LOG_DIRECTORY).glob("*.log")):
        data = path.read_bytes()
        for info in kernels.batch_headers(data):
            assert info.crc_valid, f"{path} at {info.position}"
            found[info.base_offset] = info.leader_epoch, data[info.position : info.position + info.size_bytes]
    return found
