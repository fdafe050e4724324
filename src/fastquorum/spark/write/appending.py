"""The rows of one partition of a write, appended through a quorum exactly once.

How: a partition is cut into chunks, and each chunk is the one batch of a named producer of its own (KIP-98; see
`fastquorum.api.producer`): its id is made of writer, partition and the chunk's number, its epoch is the number of the
write (a streaming query's batch), and its sequences begin at 0. The quorum's own log remembers what each of them has,
on every node, so that nothing has to be asked before, or kept anywhere else:

* A chunk that is sent again, by a retry after an election, by a task's second attempt, by a speculative one at the same
  time, or by a query that was killed and goes on from its checkpoint, is recognised, and not appended again. A chunk is
  sent once the one before it is committed: what a killed attempt left is a prefix, in order, and the next one goes on
  behind it. A partition that fits into one batch is there as a whole, or not at all.
* One chunk, one batch, one producer: so the quorum's answer to a chunk that it has always says where that lies, however
  long the partition was. What lay there before this attempt began, all that follows such a chunk (who wrote it may not
  be dead), and every partition's first chunk, is read and compared with the rows at hand, byte for byte: other rows, or
  another order, are refused, and never written beside the first. Of two that begin to write under one name at the same
  time, one is told, if already their first chunks differ.
* Epochs: once a query writes batch n + 1, whoever still writes batch n is fenced. The same producers serve a query
  batch after batch: the quorum remembers the 65,536 that appended last, that is, so many chunks of 8 MiB.

* Into how many partitions the rows are divided, Spark does not tell a task, and they must be divided alike when they
  are written again: else what one partition has taken up may be there already, from another. When a job with a
  writer's name is done its driver notes the number in the log (`note_done`), and from then on whoever writes under that
  name again only compares: nothing more is appended.

What it cannot know: the number of a job that was never done, or of a query's batch. One partition (`coalesce(1)`) is
always divided alike. Nor does it miss rows at the very end of a partition, if all that is left fills whole chunks.
Needs pyarrow, and no JVM.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import pyarrow as pa

from fastquorum.api.producer import producer_id
from fastquorum.client.producer import BatchPlace, ResumedProducer
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import OutOfOrderSequence, ProducerFenced, RecordTooLarge, ReplayDiffers
from fastquorum.kernels import Kernels
from fastquorum.kernels.producers import Stamp
from fastquorum.spark.write.chunks import Chunk, chunks, encoded
from fastquorum.spark.write.write_options import WriteOptions
from fastquorum.types import Offset

EPOCHS: Final = 1 << 15
"""A producer's epoch has 15 bits: after so many batches a query's producers are others."""
_CRC: Final = 17
"""From here on a batch is what its producer made of it; what precedes it, is given by the leader."""


class WritePart(NamedTuple):
    """Identity of the rows that one task writes: the writer, the write, and its part."""

    writer: str
    batch: int
    """The writer's writes are numbered; a later one fences those before it."""
    partition: int
    is_named_job: bool = False
    """A job whose user gave the writer's name; it has one batch, 0."""

    @property
    def division_id(self) -> int:
        """The producer that notes into how many partitions a named job's rows were divided."""
        return producer_id(f"spark:{self.writer}:partitions")

    def __str__(self) -> str:
        return f"partition {self.partition} of batch {self.batch} of {self.writer}"

    def stamp(self, chunk: int, record_count: int) -> Stamp:
        name = f"spark:{self.writer}:{self.batch // EPOCHS}:{self.partition}:{chunk}"
        return Stamp(producer_id(name), self.batch % EPOCHS, 0, record_count)


class Appended(NamedTuple):
    """Result of a partition's write."""

    rows: int = 0
    chunks: int = 0
    found: int = 0
    """Chunks, of these, that had been appended before."""
    first_offset: Offset = -1
    """-1: there were no rows."""
    end_offset: Offset = -1
    """Exclusive. What lies between may be others' as well."""

    def and_chunk(self, record_count: int, placed: BatchPlace) -> "Appended":
        first_offset = self.first_offset if self.chunks else placed.base_offset
        end_offset = placed.base_offset + record_count
        return Appended(self.rows + record_count, self.chunks + 1, self.found + placed.is_old, first_offset, end_offset)


def append_rows(
    batches: Iterable[pa.RecordBatch],
    part: WritePart,
    options: WriteOptions,
    kernels: Kernels,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> Appended:
    """Append what is not there yet; everything is committed when it returns.

    Args:
        batches: of columns as `write_options.check_columns` has them.
    Raises:
        ReplayDiffers: other rows were written in the same batch before.
        ProducerFenced: the writer has written later batches.
        RecordTooLarge, UsageError: a row that is no record, or that the quorum does not take; it is named.
        NotReady, NotSent, Overloaded, AppendTimeout: it was tried for the timeout. What is there already, is found when
            the same rows are written again.
    """
    done = Appended()
    with QuorumClient(options.bootstrap, kernels) as client:
        producer = ResumedProducer(client, kernels, options.timeout_s)
        try:
            is_done = part.is_named_job and producer.is_known(part.division_id)
            for number, chunk in enumerate(chunks(batches, options.batch_bytes_max)):
                stamp = part.stamp(number, chunk.rows.num_rows)
                if is_done and not producer.is_known(stamp.producer_id):
                    raise ReplayDiffers(_differs(part, chunk, "none here, or in another partition"))
                placed = _append(producer, chunk, kernels, stamp, part, clock_ms(), has_others=done.found > 0)
                done = done.and_chunk(stamp.record_count, placed)
        except RecordTooLarge as error:
            text = f"{part}: {error}"
            raise RecordTooLarge(text, size_bytes=error.size_bytes, limit_bytes=error.limit_bytes) from error
    return done


def note_done(part: WritePart, partitions: int, options: WriteOptions, kernels: Kernels) -> None:
    """Note that every partition of a named job is committed: nothing more is ever to be appended by it.

    Raises ReplayDiffers if it was done before with another number of partitions; NotReady and the like as
    `append_rows`.
    """
    with QuorumClient(options.bootstrap, kernels) as client:
        try:
            ResumedProducer(client, kernels, options.timeout_s).note(part.division_id, partitions)
        except ProducerFenced as error:
            raise ReplayDiffers(
                f"{part.writer}: it was written before with another number of partitions than {partitions}; what is "
                "written again must be divided alike (coalesce)"
            ) from error


def _append(
    producer: ResumedProducer,
    chunk: Chunk,
    kernels: Kernels,
    stamp: Stamp,
    part: WritePart,
    timestamp_ms: int,
    *,
    has_others: bool,
) -> BatchPlace:
    """`has_others`: somebody else has written chunks of this partition, and may not be dead."""
    try:
        placed = producer.append(encoded(chunk, kernels, stamp, timestamp_ms))
    except OutOfOrderSequence as error:
        raise ReplayDiffers(_differs(part, chunk, f"fewer, or more, than {stamp.record_count}")) from error
    except ProducerFenced as error:
        raise ProducerFenced(
            f"{part} is over: the quorum has later batches of that writer. Either the query goes on from a checkpoint "
            "that is older than what it wrote, or another one goes on from a copy of it",
            producer_id=stamp.producer_id,
            epoch=stamp.epoch,
        ) from error
    except RecordTooLarge as error:
        text = f"rows {chunk.first_row} to {chunk.last_row}: {error}"
        hint = 'with option("batchBytes", ...) batches are smaller'
        raise RecordTooLarge(text if chunk.rows.num_rows == 1 else f"{text}; {hint}") from error
    if placed.is_old or has_others or chunk.first_row == 0:
        _check_same(producer.batch_at(placed), chunk, kernels, stamp, part)
    return placed


def _check_same(found: bytes, chunk: Chunk, kernels: Kernels, stamp: Stamp, part: WritePart) -> None:
    """Raise ReplayDiffers if an appended chunk is not the same; only its time may differ."""
    (info,) = kernels.batch_headers(found)
    again = encoded(chunk, kernels, stamp, info.base_timestamp_ms)
    if found[_CRC:] != again[_CRC:]:
        raise ReplayDiffers(_differs(part, chunk, f"other bytes, at offset {info.base_offset}"))


def _differs(part: WritePart, chunk: Chunk, how: str) -> str:
    return (
        f"{part}: its rows {chunk.first_row} to {chunk.last_row} are not those that were written before ({how}). "
        "What is written again must be the same rows, in the same order and partitions, with the same batchBytes"
    )
