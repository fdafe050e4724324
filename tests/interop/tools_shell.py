"""What kafka-metadata-shell sees in the files of the controller that was active, when the script of `tools_campaign` is
over: in its log, which holds all of it, and in its last snapshot."""

from pathlib import Path
from typing import Final

from fastquorum.kernels import Kernels, load
from fastquorum.storage.names import LOG_DIRECTORY, segment_name

from .brokers import Cluster, wait_for
from .kafka import Kafka
from .metadata_shell import answers

SHELL: Final = "org.apache.kafka.shell.MetadataShell"
SETTINGS: Final = {"metadata.log.max.snapshot.interval.ms": 3_000}
"""For controllers: the log is kept from its beginning, and soon there is a snapshot of what is in it."""
FILES: Final = ("log", "checkpoint")
COMMANDS: Final = (
    "ls",
    "ls /image /image/cluster/brokers /image/topics/byName",
    "ls /image/configs",
    "find /image/topics/byName/one /image/topics/byName/two /image/topics/byName/read",
    "find /image/features",
    "tree /image/features",
    "tree /image/cluster",
    "tree /image/topics/byName/{one,two,read}",
    "tree /image/configs",
    "tree /image/clientQuotas",
    "tree /image/scram /image/acls /image/delegationToken /image/producerIds",
    "cat /image/topics/byName/{one,two}/*",
    "cat /image/configs/TOPIC:one/*",
    "cat /image/features/metadataVersion",
    "cat /image/provenance",
    "cat /image/topics/byName/spread/0",
    "cat /image/nowhere",
    "cd /image/topics/byName/one",
    "pwd",
    "ls",
    "find ..",
    "cd /image/nowhere",
)
"""Commands of Kafka's shell. Topics that Kafka's brokers make are left out: their replicas are anywhere."""


def look(kafka: Kafka, kafkas: Cluster) -> list[str]:
    """What it prints for each command, of one file after the other. The active controller is stopped."""
    wait_for("the replicas to be in sync", kafkas.is_whole)
    active = kafkas.active_controller()
    directory = active.directory / LOG_DIRECTORY
    end = kafkas.high_watermark()
    wait_for(f"a snapshot of what is below {end}", lambda: _last_checkpoint(directory)[0] >= end)
    active.stop()
    kernels = load("native")
    files = (directory / segment_name(0), _last_checkpoint(directory)[1])
    return [each for file in files for each in answers(kafka, file, COMMANDS, _ready(kernels, file))]


def _last_checkpoint(directory: Path) -> tuple[int, Path]:
    """The end of what is in it, and the file; -1 if there is none."""
    found = [(int(path.name.partition("-")[0]), path) for path in directory.glob("*-*.checkpoint")]
    return max(found, default=(-1, directory))


def _ready(kernels: Kernels, file: Path) -> str:
    """How the provenance begins when all of a file is read: its last records are no control records."""
    batches = [each for each in kernels.batch_headers(file.read_bytes()) if not each.is_control]
    last = batches[-1]
    return f"offset {last.last_offset}, epoch {last.leader_epoch}, "
