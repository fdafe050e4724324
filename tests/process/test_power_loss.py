"""Power fails under all three nodes at once: what was never synced is gone, what was acknowledged is not.

A real ext4 on a loop device is shut down as a power loss would leave it (FS_IOC_SHUTDOWN without flushing its journal):
every byte that was only in the page cache is lost.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.privileges import missing
from tests.process.cluster import Cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

FS_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
NO_LOG_FLUSH = 2
LOSSES = 3


class Disk:
    """An ext4 in a file. `lose_power`, then `mount` again."""

    def __init__(self, image: Path, place: Path) -> None:
        self.place = place
        self._image = image
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-qF", str(image)], check=True)

    def mount(self) -> None:
        done = subprocess.run(
            ["mount", "-o", "loop", str(self._image), str(self.place)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            missing(f"a loop mount is not allowed here: {done.stderr.strip()}")

    def lose_power(self) -> None:
        """From now on every access fails; what was not synced is lost."""
        fd = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.place)], check=False, capture_output=True)


@contextmanager
def powered(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        missing("a file system of its own needs root and mkfs.ext4")
    disk = Disk(tmp_path / "disk.img", tmp_path / "disk")
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()


def test_a_power_loss_of_all_three_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    history = History()
    with powered(tmp_path) as disk:
        quorum = Cluster(tmp_path)
        for node_id in quorum.ids:
            (tmp_path / f"node{node_id}").symlink_to(disk.place / f"n{node_id}")
            (disk.place / f"n{node_id}").mkdir()
        try:
            quorum.start(*quorum.ids)
            quorum.ready()
            with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
                for _ in range(LOSSES):
                    assert history.wait_acked(200, WAIT_S)
                    disk.lose_power()
                    for node_id in quorum.ids:
                        quorum.nodes[node_id].kill()
                    disk.unmount()
                    disk.mount()
                    for node_id in quorum.ids:
                        quorum.note_state(node_id)
                    quorum.start(*quorum.ids)
                    quorum.ready()
                assert history.wait_acked(20, WAIT_S)
                load.pause()
                read = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
            assert history.judge(read).problems == []
            assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
            assert quorum.ballots.violations == []
        finally:
            quorum.close()
