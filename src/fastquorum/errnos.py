"""What the system's error numbers mean to an operator of a node, and what to do about them. Source: errno(3).

Whatever turns an OSError into an error of this package takes its words from here: a number that is not known keeps the
system's own, and none is taken for another.
"""

import errno
from typing import Final

REFUSALS: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ELOOP)
"""This user may not do it, no user may, or what is there is not a file: nothing was done, and no device has failed."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The file system is full, or what this user or this process may have of it is: nothing was written."""
_PERMISSION: Final = "check its owner and mode, those of the directories above it, and the rules of SELinux or AppArmor"
_LIMIT: Final = "raise the limit of open files (ulimit -n; LimitNOFILE= of systemd)"
_NETWORK: Final = "check the file server and the network, or keep the data on a local disk"
_REMEDIES: Final = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION + "; a file may be immutable (lsattr)",
    errno.EROFS: "mount its file system read-write; the kernel makes it read-only after an error (dmesg)",
    errno.ENOSPC: "make room on its file system",
    errno.EDQUOT: "make room, or have the quota of this user raised",
    errno.EMFILE: _LIMIT,
    errno.ENFILE: "the whole machine has no more file handles: raise fs.file-max",
    errno.ENOMEM: "give the machine, or the container, more memory",
    errno.EFBIG: "raise the limit of this process (ulimit -f), or use a file system that supports larger files",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is a file",
    errno.EISDIR: "check the path: a directory is where a file should be",
    errno.ELOOP: "check the path: its symbolic links form a loop",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.EEXIST: "something is there already: move it away",
    errno.ENOLCK: "its file system offers no locks (NFS needs rpc.statd): start its lock service, or use a local disk",
    errno.ENOSYS: "its file system, or a sandbox around this process, does not offer this call: use another",
    errno.EOPNOTSUPP: "its file system does not offer this: use a local one, as ext4 or XFS",
    errno.EINVAL: "its file system does not offer this: use a local one, as ext4 or XFS",
    errno.ETXTBSY: "a program is running from it: stop that first",
    errno.EBUSY: "another program uses it: stop that first",
    errno.ESTALE: _NETWORK,
    errno.ETIMEDOUT: _NETWORK,
    errno.EHOSTDOWN: _NETWORK,
    errno.EREMOTEIO: _NETWORK,
    errno.ENOTCONN: "the program that serves its file system (FUSE) is gone: mount it again",
    errno.EIO: "check the device (dmesg, smartctl)",
    errno.ENODEV: "the device is gone: check it",
    errno.ENXIO: "the device is gone: check it",
}


def reason(error: OSError) -> str:
    """Return the system's words for it, never empty; the number and the path are left out."""
    return error.strerror or str(error) or type(error).__name__


def remedy(code: int) -> str:
    """Return what to do about an error number; empty if nothing special is known."""
    return _REMEDIES.get(code, "")
