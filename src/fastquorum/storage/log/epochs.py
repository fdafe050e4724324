"""`leader-epoch-checkpoint`, Kafka's text file of (epoch, start offset).

Only a convenience for Kafka's tools and for readers: recovery rebuilds the epochs from the batches, and the log wins.
Source: Kafka `LeaderEpochCheckpointFile`; KIP-101.
"""

from collections.abc import Sequence

from fastquorum.errors import CorruptionError
from fastquorum.storage import names
from fastquorum.storage.ports import Disk
from fastquorum.types import UNKNOWN_OFFSET, Epoch, Offset


def format_epochs(entries: Sequence[tuple[Epoch, Offset]]) -> bytes:
    lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
    return ("\n".join(lines) + "\n").encode("ascii")


def write_epochs(disk: Disk, directory: str, entries: Sequence[tuple[Epoch, Offset]]) -> None:
    disk.replace_file(names.join(directory, names.EPOCH_CHECKPOINT), format_epochs(entries))


def parse_epochs(data: bytes, path: str = "") -> list[tuple[Epoch, Offset]]:
    """Raises CorruptionError(reason="epoch_checkpoint") if the text is not one."""
    try:
        lines = data.decode("ascii").splitlines()
        version, count = int(lines[0]), int(lines[1])
        entries = [(int(epoch), int(start)) for epoch, start in (line.split(" ") for line in lines[2:])]
    except (ValueError, IndexError) as error:
        raise CorruptionError("epoch_checkpoint", path=path) from error
    if version != 0 or count != len(entries):
        raise CorruptionError("epoch_checkpoint", path=path)
    return entries


def last_start(disk: Disk, directory: str) -> Offset:
    """Return where the last epoch began of those that are written down; -1: the file is missing, damaged or empty."""
    name = names.join(directory, names.EPOCH_CHECKPOINT)
    try:
        entries = parse_epochs(disk.read_file(name)) if disk.exists(name) else []
    except CorruptionError:
        return UNKNOWN_OFFSET
    return entries[-1][1] if entries else UNKNOWN_OFFSET
