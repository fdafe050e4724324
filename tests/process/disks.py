"""File systems that lose power: a real ext4 on a loop device, shut down as a power loss would leave it.

FS_IOC_SHUTDOWN without flushing the journal: every byte that was only in the page cache is lost.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import wait_until
from tests.privileges import missing
from tests.process.processes import WAIT_S

FS_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
NO_LOG_FLUSH = 2


class Disk:
    """An ext4 in a file. `lose_power`, then `unmount` and `mount` again."""

    def __init__(self, image: Path, place: Path) -> None:
        self.place = place
        self._image = image
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-qF", str(image)], check=True)

    def mount(self) -> None:
        """With power. Where another process's mount namespace, a copy of this one's, has the former mount still,
        the kernel gives the same file system again, without."""
        wait_until(self._has_power, WAIT_S)

    def _has_power(self) -> bool:
        self._mount()
        probe = self.place / "probe"
        try:
            probe.touch()
            probe.unlink()
        except OSError:
            self.unmount()
            return False
        return True

    def _mount(self) -> None:
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
        """Once nobody holds a file there any more: the kernel takes a moment to bury a process that was killed. What is
        mounted over one that is still there would be the same file system, without power."""
        wait_until(self._is_unmounted, WAIT_S)

    def _is_unmounted(self) -> bool:
        done = subprocess.run(["umount", str(self.place)], check=False, capture_output=True)
        return done.returncode == 0 or not os.path.ismount(self.place)


@contextmanager
def powered(root: Path, name: str = "disk") -> Iterator[Disk]:
    """A mounted one at `root / name`."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        missing("a file system of its own needs root and mkfs.ext4")
    disk = Disk(root / f"{name}.img", root / name)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()
