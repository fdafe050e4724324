"""A log directory, opened offline and read-only: ours, or Apache Kafka's `__cluster_metadata-0`."""

from collections.abc import Iterator
from typing import Literal

from fastquorum.api.committed import CommittedRecord
from fastquorum.api.offsets import check_position
from fastquorum.api.options import Path
from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import Difference, differences
from fastquorum.home import expanded
from fastquorum.kernels import Kernels, load
from fastquorum.storage.findings import Finding, Severity
from fastquorum.storage.images import fold_log, two_images
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.offline import OfflineLog, StoredBatch
from fastquorum.storage.verifying import Verification
from fastquorum.types import Offset

__all__ = ["Difference", "Finding", "Image", "Log", "Severity", "StoredBatch", "Verification", "open"]


def open(path: Path, *, kernels: Literal["native", "pure"] = "native") -> "Log":
    """The log at a data directory, or at a log directory. Nothing is changed, no lock is taken.

    >>> log = fastquorum.log.open(directory)
    >>> [record.value for record in log.records()]
    [b'one', b'two']
    >>> log.verify().is_sound
    True

    Raises:
        DirectoryError: there is no log.
    """
    kernel_set = load(kernels)
    return Log(open_offline(expanded(path), kernel_set), kernel_set)


class Log:
    """An offline log. Reads go to the disk each time; there is nothing to close.

    Beyond what `verify` calls the end nothing is known: a crash may have left records that were never committed, so a
    single directory cannot tell which of the last ones were.
    """

    def __init__(self, offline: OfflineLog, kernels: Kernels) -> None:
        self._offline = offline
        self._kernels = kernels

    @property
    def path(self) -> str:
        """The log directory."""
        return self._offline.path

    def batches(self, from_offset: Offset = 0) -> Iterator[StoredBatch]:
        """Every batch from the one that holds the offset on, control batches included, as it lies in its file.

        >>> [batch.info.is_control for batch in fastquorum.log.open(directory).batches()]
        [True, False, False]

        Raises:
            UsageError: that is no offset.
            CorruptionError: at the first bytes that are neither a good batch that continues the log nor zeros.
        """
        check_position(from_offset, "from_offset")
        return self._offline.batches(from_offset)

    def records(self, from_offset: Offset = 0) -> Iterator[CommittedRecord]:
        """Every record of a data batch from the offset on. Errors as `batches`; CorruptionError for a record that does
        not parse, too.

        >>> [record.offset for record in fastquorum.log.open(directory).records(from_offset=2)]
        [2]
        """
        for batch in self.batches(from_offset):
            if batch.info.is_control:
                continue
            for record in self._kernels.decode_records(batch.data, verify_crc=False):
                if record.offset >= from_offset:
                    yield CommittedRecord(
                        record.offset,
                        batch.info.leader_epoch,
                        record.timestamp_ms,
                        record.value,
                        record.key,
                        record.headers,
                    )

    def verify(self) -> Verification:
        """Check every byte that can be checked, and whether a node would start with the quorum state. Damage is
        reported in the result, not raised."""
        return self._offline.verify_directory()

    def image(self, at: Offset | None = None) -> Image:
        """What the metadata records below offset `at` come to: brokers, topics, configurations. None: all there are.

        A snapshot that ends at an offset holds the image at that offset. Of records at the end of a single directory
        it is unknown whether they were committed; inside a batch or a transaction the image is as before it.

        >>> image = fastquorum.log.open(directory).image(at=145)
        >>> sorted(image.brokers)
        [11, 12, 13]

        Raises:
            UsageError: that is no offset.
            OffsetOutOfRange: the log does not reach so far, or what precedes it is gone.
            ImageFailed: a record contradicts those before it, or is not a metadata record.
            CorruptionError: bytes that are needed are damaged.
            DirectoryError: the log holds user records.
        """
        if at is not None:
            check_position(at, "at")
        return fold_log(self._offline, self._kernels, at).image

    def diff(self, from_offset: Offset, to_offset: Offset | None = None) -> Iterator[Difference]:
        """What changed between the images at two offsets (None: the end), thing by thing. Errors as `image`; UsageError
        if the second offset is below the first.

        >>> [each.words for each in fastquorum.log.open(directory).diff(45, 46)]
        ['broker 12: fenced true -> false']
        """
        check_position(from_offset, "from_offset")
        if to_offset is not None:
            check_position(to_offset, "to_offset")
        return differences(*two_images(self._offline, self._kernels, from_offset, to_offset))
